/** The schemas of all kinds of documents as data, so that those of a released version can be stored. */
import { type JsonSchema, Schema } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { formatOf, type Step } from "../../src/engine/log/Document.ts"
import { KINDS } from "../../src/payments/Formats.ts"

type JsonSchemaDocument = JsonSchema.Document<"draft-2020-12">

export interface Shape {
  readonly format: number
  readonly value: JsonSchemaDocument
  /** Null for kinds without a hidden part. */
  readonly hidden: JsonSchemaDocument | null
}

/** Schemas by the names of kinds. */
export type Shapes = Readonly<Record<string, Shape>>

interface Shaped {
  readonly name: string
  readonly steps?: ReadonlyArray<Step>
  readonly shape: { readonly value: Schema.Constraint; readonly hidden?: Schema.Constraint }
}

const documentOf = (schema: Schema.Constraint): JsonSchemaDocument =>
  Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" })

export const shapeOf = (kind: Shaped): Shape => {
  const { hidden, value } = kind.shape
  return {
    format: formatOf(kind),
    value: documentOf(value),
    hidden: hidden === undefined ? null : documentOf(hidden)
  }
}

/** The schemas of this Till. */
export const shapes: Shapes = Object.fromEntries(KINDS.map((kind) => [kind.name, shapeOf(kind)]))

/** Returns the file with the schemas of a released version. */
export const shapesFileOf = (version: string): string => Path.join(import.meta.dirname, `${version}.shapes.json`)

export const loadShapes = (version: string): Shapes => JSON.parse(fs.readFileSync(shapesFileOf(version), "utf8"))

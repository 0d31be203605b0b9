/** What documents of each kind look like: their schemas as data, so that those of a released version can be kept. */
import type { JsonSchema } from "effect"
import { Schema } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { formatOf } from "../../src/engine/Document.ts"
import { KINDS } from "../../src/payments/Formats.ts"

type JsonSchemaDocument = JsonSchema.Document<"draft-2020-12">

export interface Shape {
  readonly format: number
  readonly value: JsonSchemaDocument
  /** Null stands for nothing hidden. */
  readonly hidden: JsonSchemaDocument | null
}

/** By the names of kinds. */
export type Shapes = Readonly<Record<string, Shape>>

const describe = (schema: Schema.Constraint): JsonSchemaDocument =>
  Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" })

/** Those that this Till writes. */
export const shapes: Shapes = Object.fromEntries(
  KINDS.map((kind) => {
    const { hidden, value } = kind.shape as (typeof kind)["shape"] & { readonly hidden?: Schema.Constraint }
    return [
      kind.name,
      { format: formatOf(kind), value: describe(value), hidden: hidden === undefined ? null : describe(hidden) }
    ]
  })
)

/** The file with those that a released version wrote. */
export const shapesFileOf = (version: string): string => Path.join(import.meta.dirname, `${version}.shapes.json`)

export const loadShapes = (version: string): Shapes => JSON.parse(fs.readFileSync(shapesFileOf(version), "utf8"))

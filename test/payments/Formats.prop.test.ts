/**
 * Documents of released Tills are readable (semantics versions.documents): a document generated from a release's stored
 * schemas fits today's schemas exactly, after the steps of its kind.
 *
 * Fails if a field was added, dropped, renamed or narrowed without a step; `src/payments/shared/Documents.ts` describes
 * how to add one.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Checksum from "../../src/engine/log/Checksum.ts"
import { Schema, SchemaRepresentation } from "effect"
import { type Document, formatOf, type Step } from "../../src/engine/log/Document.ts"
import type { DocumentFormatsShape } from "../../src/engine/views/DocumentFormats.ts"
import * as EngineFormats from "../../src/engine/views/DocumentFormats.ts"
import { EMITTED_EVENT_TYPES } from "../../src/domain/Event.ts"
import { KINDS } from "../../src/payments/Formats.ts"
import { migrations } from "../../src/postgres/Migrations.ts"
import { load, versions } from "../corpus/Corpus.ts"
import { loadShapes, type Shape, shapeOf, shapes } from "../corpus/Shapes.ts"

/** A kind without the types of its documents. */
interface AnyKind {
  readonly name: string
  readonly shape: { readonly value: Schema.Constraint; readonly hidden?: Schema.Constraint }
  readonly steps?: ReadonlyArray<Step>
  readonly labels?: (value: never) => object
}
const kinds: ReadonlyArray<AnyKind> = KINDS

const formatsOf = (of: ReadonlyArray<AnyKind>): DocumentFormatsShape =>
  EngineFormats.make(of, (type) => (EMITTED_EVENT_TYPES as Readonly<Record<string, string>>)[type])

/** Restores a stored schema, to generate values from it. */
const revived = (document: Shape["value"]): Schema.Codec<unknown> =>
  SchemaRepresentation.fromJsonSchemaDocument(document, { patterns: "apply" }) as Schema.Top & Schema.Codec<unknown>

const ROW = {
  account: "mer_1:test",
  version: 1,
  labels: {},
  documentSpan: { at: 0, length: 1 },
  hiddenSpan: null,
  search: null
}

/** Reads a document of a kind as today's Till does. */
const readBack = (kind: AnyKind, format: number, value: unknown, hidden: unknown): Document => {
  const row = { ...ROW, id: (value as { readonly id: string }).id, kind: kind.name, format }
  const texts = { document: JSON.stringify(value), hidden: hidden === null ? null : JSON.stringify(hidden) }
  const checksum = Checksum.ofDocument(row, texts.document, texts.hidden)
  return formatsOf([kind]).document({ ...row, ...texts, checksum }) as Document
}

const fits = (schema: Schema.Constraint, value: unknown): void =>
  void Schema.decodeUnknownSync(schema as Schema.Decoder<unknown>, { onExcessProperty: "error" })(value)

const requireReadable = (kind: AnyKind, { format }: Shape, value: unknown, hidden: unknown): void => {
  const document = readBack(kind, format, value, hidden)
  fits(kind.shape.value, document.value)
  fits(kind.shape.hidden ?? Schema.Undefined, document.hidden)
  assert.strictEqual(document.format, formatOf(kind))
  // Stored labels are never recomputed, so a step must not change the fields they derive from.
  assert.deepStrictEqual(kind.labels?.(document.value as never), kind.labels?.(value as never))
}

describe.each(versions)("documents of Till %s", (version) => {
  const released = loadShapes(version)

  it("all have a kind that still exists", () => {
    assert.includeMembers(Object.keys(shapes), Object.keys(released))
    for (const [name, { format }] of Object.entries(released)) {
      assert.isAtMost(format, shapes[name]!.format, `${name}: a released step is missing`)
    }
  })

  it("are not written in newer formats without a migration, by which that version refuses the database", () => {
    const isNewer = Object.entries(released).some(([name, { format }]) => format < shapes[name]!.format)
    const done = load(version).tables["effect_sql_migrations"]!.map((row) => Number(JSON.parse(row).migration_id))
    const newest = Math.max(...Object.keys(migrations).map((name) => Number.parseInt(name, 10)))
    assert.isTrue(!isNewer || newest > Math.max(...done))
  })

  for (const kind of kinds) {
    const shape = released[kind.name]
    if (shape === undefined) continue
    const values = revived(shape.value)
    const hidden = shape.hidden === null ? Schema.Null : revived(shape.hidden)
    it.prop(`are read as today's: ${kind.name}`, [values, hidden], ([value, hidden]) =>
      requireReadable(kind, shape, value, hidden)
    )
  }
})

describe("the check of documents", () => {
  const nullable = Schema.NullOr(Schema.String)
  const fields = { id: Schema.String, email: Schema.String, name: nullable, phone: nullable }
  const labels = ({ email }: { readonly email: string }) => ({ email })
  const released = shapeOf({ name: "person", shape: { value: Schema.Struct(fields) } })
  const older = { id: "person_1", email: "a@example.com", name: null, phone: null }
  const check = (changed: Schema.Struct.Fields, steps: ReadonlyArray<Step> = []) => {
    const kind = { name: "person", labels, shape: { value: Schema.Struct(changed) }, steps }
    return () => requireReadable(kind, released, older, null)
  }

  it("fails for a field that was added, dropped, renamed or narrowed without a step, and not with one", () => {
    const { phone, ...others } = fields
    const added = { ...fields, tax_id: nullable }
    const renamed = { ...others, mobile: phone }
    assert.doesNotThrow(check(fields))
    assert.throws(check(added), /tax_id/)
    assert.doesNotThrow(check(added, [{ value: EngineFormats.adding({ tax_id: null }) }]))
    assert.throws(check(others), /phone/)
    assert.throws(check(renamed), /phone/)
    assert.doesNotThrow(check(renamed, [{ value: EngineFormats.renaming({ phone: "mobile" }) }]))
    assert.throws(check({ ...fields, name: Schema.String }), /name/)
    assert.throws(check(fields, [{ hidden: () => ({ secret: 1 }) }]))
  })

  it("fails for a step that changes a field that lists filter by", () => {
    assert.throws(check(fields, [{ value: EngineFormats.adding({ email: "b@example.com" }) }]), /b@example\.com/)
  })
})

/**
 * Records read back byte for byte, and every change of a chain is detected.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { hash } from "node:crypto"
import {
  type Change,
  FORMAT,
  GENESIS,
  JournalCorrupt,
  type JournalRecord,
  type JournalRow,
  RELEASED,
  seal,
  type Sealed,
  type SealedRecord,
  type Span,
  textOf,
  timeOf,
  unseal
} from "../../../src/engine/log/Record.ts"
import { parseJson } from "../../../src/json/JsonParse.ts"
import { Random, Seed } from "../../support/Random.ts"

const AWKWARD_KEYS = [
  "__proto__",
  "constructor",
  "toString",
  "10",
  "9",
  "-1",
  "",
  "\u0000",
  "of",
  "😀",
  "\ud800",
  '"\\'
]
const AWKWARD_STRINGS = ["", "\u0000", "\udfff\ud800", "\u2028</script>", "é", "é", "x".repeat(70_000), '{"of":"a"}']

/** Makes a JSON value, often of the kinds that parsers handle badly. */
const value = (seed: Random, depth: number): unknown => {
  switch (seed.below(depth > 0 ? 8 : 6)) {
    case 0:
      return null
    case 1:
      return seed.chance(0.5)
    case 2:
      return seed.pick([0, -0, 1e21, 1e-7, Number.MAX_SAFE_INTEGER, Number.MAX_VALUE, -5e-324, seed.next()])
    case 3:
      return seed.below(1000)
    case 4:
      return seed.pick(AWKWARD_STRINGS)
    case 5:
      return String.fromCharCode(...Array.from({ length: seed.below(9) }, () => seed.below(0x1_0000)))
    case 6:
      return Array.from({ length: seed.below(4) }, () => value(seed, depth - 1))
    default:
      return Object.fromEntries(
        Array.from({ length: seed.below(5) }, () => [seed.pick(AWKWARD_KEYS), value(seed, depth - 1)])
      )
  }
}

const text = (seed: Random): string => JSON.stringify(value(seed, 4))

/** Makes a record as of a command: events and responses often repeat a document. */
const record = (seed: Random, version: number, account: string): JournalRecord => {
  const changes = Array.from({ length: seed.below(4) }, (_, i) => ({
    id: seed.chance(0.2) ? `${seed.pick(AWKWARD_KEYS)}${i}` : `ctr_${i}`,
    kind: "counter",
    document: seed.chance(0.2) ? null : JSON.stringify({ id: `ctr_${i}`, value: value(seed, 3) }),
    hidden: seed.chance(0.5) ? null : text(seed),
    format: 1 + seed.below(3),
    labels: seed.chance(0.5) ? {} : Object.fromEntries([[seed.pick(AWKWARD_KEYS), seed.pick(AWKWARD_STRINGS)]]),
    created: seed.chance(0.5)
  }))
  const body = (): string => {
    const change = changes.length === 0 ? null : seed.pick(changes)
    // Also a text that looks like a change.
    if (change?.document != null && seed.chance(0.1)) {
      return `{"id":${JSON.stringify(change.id)},"kind":"counter","document":${change.document}}`
    }
    return change?.document != null && seed.chance(0.6) ? change.document : text(seed)
  }
  const events = Array.from({ length: seed.below(3) }, (_, i) => {
    const object = body()
    return {
      id: `evt_${i}`,
      type: "counter.created",
      object,
      format: changes.find(({ document }) => document === object)?.format ?? 1 + seed.below(3),
      previous: seed.chance(0.5) ? null : { count: parseJson(text(seed)) }
    }
  })
  const at = seed.below(2 ** 42)
  const clock = seed.chance(0.5) ? 0 : seed.below(2 ** 40)
  return {
    account,
    version,
    at,
    now: seed.chance(0.5) ? at + clock : seed.below(2 ** 43),
    clock,
    advanced: seed.chance(0.8) ? 0 : seed.below(2 ** 40),
    wiped: seed.chance(0.1),
    sequence: seed.below(2 ** 52),
    request: seed.chance(0.3)
      ? null
      : {
          id: "req_1",
          idempotencyKey: seed.chance(0.3) ? null : seed.pick(AWKWARD_STRINGS),
          fingerprint: "fingerprint",
          apiVersion: "2026-03-09"
        },
    changes,
    events,
    apiVersion: events.length === 0 ? null : seed.pick(["2026-03-09", "2025-01-01"]),
    timers: Array.from({ length: seed.below(3) }, (_, i) => ({
      id: `timer_${i}`,
      name: "increment",
      dueAt: seed.chance(0.3) ? null : seed.below(2 ** 42)
    })),
    subscriptions: Array.from({ length: seed.below(3) }, (_, i) => ({
      destination: `we_${i}`,
      types: seed.chance(0.3) ? null : ["counter.created", "*"].slice(seed.below(2))
    })),
    deliveries: Array.from({ length: seed.below(3) }, (_, i) => ({
      id: `whd_${i}`,
      destination: `we_${i}`,
      event: "evt_0",
      eventVersion: version - seed.below(2)
    })),
    attempts: Array.from({ length: seed.below(3) }, (_, i) => ({
      id: `whd_${i}`,
      destination: `we_${i}`,
      attempt: 1 + seed.below(8),
      startedAt: seed.below(2 ** 42),
      durationMillis: seed.below(30_000),
      status: seed.chance(0.5) ? null : 200 + seed.below(300),
      error: seed.chance(0.5) ? null : seed.pick(AWKWARD_STRINGS),
      ...(seed.chance(0.3) && { body: seed.pick(AWKWARD_STRINGS) }),
      state: seed.pick(["pending", "delivered", "exhausted"] as const),
      nextAttemptAt: seed.chance(0.5) ? null : seed.below(2 ** 42)
    })),
    hastened: Array.from({ length: seed.below(3) }, (_, i) => {
      return { id: `whd_${i}`, destination: `we_${i}`, attempt: 2 + seed.below(7) }
    }),
    response: seed.pick([
      null,
      { awaits: `opn_${version}` },
      RELEASED,
      { status: 200 + seed.below(300), body: body() },
      { status: 200, body: body() }
    ])
  }
}

const chainOf = (seed: Random, length: number, account: string): ReadonlyArray<Sealed> => {
  const chain: Array<Sealed> = []
  for (let version = 1; version <= length; version++) {
    chain.push(seal(chain.at(-1)?.hash ?? GENESIS, record(seed, version, account)))
  }
  return chain
}

const rowOf = ({ bytes, hash, record }: Sealed): JournalRow => ({
  account: record.account,
  version: record.version,
  hash,
  bytes
})

/** Edits the text of a first record, and computes its hash anew. */
const edited = (sealed: Sealed, from: string, to: string): JournalRow => {
  const { account, version } = sealed.record
  const bytes = Buffer.from(textOf(sealed.bytes).replace(from, to))
  return { ...rowOf(sealed), bytes, hash: hash("sha256", ` ${account} ${version} ${textOf(bytes)}`, "hex") }
}

/** Returns the parsed document of a change. */
const valueOf = ({ document }: Change): unknown => document && parseJson(document)

/** Reads a whole chain; returns the records or the problem. */
const readAll = (rows: ReadonlyArray<JournalRow>): ReadonlyArray<SealedRecord> | JournalCorrupt => {
  let head = { version: 0, hash: GENESIS }
  try {
    return rows.map((row) => {
      const sealed = unseal(head, row)
      head = { version: sealed.record.version, hash: sealed.hash }
      return sealed.record
    })
  } catch (error) {
    if (error instanceof JournalCorrupt) return error
    throw error
  }
}

/** Flips one bit, as a disk would. */
const flipped = (bytes: Uint8Array, seed: Random): Uint8Array => {
  const at = seed.below(bytes.length)
  return bytes.with(at, bytes[at]! ^ (1 << seed.below(8)))
}

const length = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 6 }))
const long = Schema.Int.check(Schema.isBetween({ minimum: 3, maximum: 8 }))

describe("a record", () => {
  it.prop("reads back as it was written, byte for byte", [Seed, length], ([seed, length]) => {
    const chain = chainOf(new Random(seed), length, "mer_1:test")
    assert.deepStrictEqual(
      readAll(chain.map(rowOf)),
      chain.map(({ record }) => ({
        ...record,
        changes: record.changes.map((change) => ({ ...change, created: false, value: valueOf(change) }))
      }))
    )
  })

  it.prop("contains a repeated document only once", [Seed], ([seed]) => {
    const marker = "a text that is long enough to count"
    const document = JSON.stringify({ id: "ctr_1", marker })
    const base = record(new Random(seed), 1, "mer_1:test")
    const { bytes } = seal(GENESIS, {
      ...base,
      changes: [{ id: "ctr_1", kind: "counter", document, hidden: null, labels: {}, format: 1, created: true }],
      events: [{ id: "evt_1", type: "counter.created", object: document, format: 1, previous: null }],
      apiVersion: "2026-03-09",
      response: { status: 200, body: document }
    })
    assert.strictEqual(textOf(bytes).split(marker).length - 1, 1)
  })

  it.prop("has the positions of its documents in its bytes", [Seed], ([seed]) => {
    const { bytes, record: sealed } = seal(GENESIS, record(new Random(seed), 1, "mer_1:test"))
    const cut = (span: Span | null) => span && textOf(bytes.subarray(span.at, span.at + span.length))
    for (const { document, documentSpan, hidden, hiddenSpan } of sealed.changes) {
      assert.deepStrictEqual([cut(documentSpan), cut(hiddenSpan)], [document, hidden])
    }
  })

  it.prop("is reported wherever a bit of it flips", [Seed, length], ([seed, length]) => {
    const random = new Random(seed)
    const rows = chainOf(random, length, "mer_1:test").map(rowOf)
    const at = random.below(length)
    const row = rows[at]!
    const field = random.pick(["bytes", "hash", "account"] as const)
    const broken =
      field === "bytes"
        ? { ...row, bytes: flipped(row.bytes, random) }
        : { ...row, [field]: textOf(flipped(Buffer.from(row[field]), random)) }
    const outcome = readAll(rows.with(at, broken))
    assert.instanceOf(outcome, JournalCorrupt)
    assert.strictEqual((outcome as JournalCorrupt).version, at + 1)
  })

  it.prop("is reported as missing, wherever in the chain it was", [Seed, long], ([seed, length]) => {
    const random = new Random(seed)
    const rows = chainOf(random, length, "mer_1:test").map(rowOf)
    const at = random.below(length - 1)
    const outcome = readAll(rows.toSpliced(at, 1))
    assert.instanceOf(outcome, JournalCorrupt)
    assert.match(
      (outcome as JournalCorrupt).message,
      new RegExp(`^Record ${at + 1} of account mer_1:test is missing`, "u")
    )
    // Renumbering what follows does not help.
    const renumbered = rows.toSpliced(at, 1).map((row, i) => ({ ...row, version: i + 1 }))
    assert.instanceOf(readAll(renumbered), JournalCorrupt)
  })

  it.prop("is reported when it is swapped with another, or duplicated", [Seed, long], ([seed, length]) => {
    const random = new Random(seed)
    const rows = chainOf(random, length, "mer_1:test").map(rowOf)
    const i = random.below(length)
    const j = (i + 1 + random.below(length - 1)) % length
    const texts = rows
      .with(i, { ...rows[i]!, bytes: rows[j]!.bytes, hash: rows[j]!.hash })
      .with(j, { ...rows[j]!, bytes: rows[i]!.bytes, hash: rows[i]!.hash })
    assert.instanceOf(readAll(texts), JournalCorrupt)
    assert.instanceOf(readAll(rows.with(i, rows[j]!).with(j, rows[i]!)), JournalCorrupt)
    assert.instanceOf(readAll(rows.toSpliced(i, 0, rows[i]!)), JournalCorrupt)
    const twice = rows.toSpliced(i, 0, rows[i]!).map((row, n) => ({ ...row, version: n + 1 }))
    assert.instanceOf(readAll(twice), JournalCorrupt)
  })

  it.prop("of one account is no record of another", [Seed], ([seed]) => {
    const random = new Random(seed)
    const [mine] = chainOf(random, 1, "mer_1:test").map(rowOf)
    const [other] = chainOf(random, 1, "mer_2:test").map(rowOf)
    assert.instanceOf(readAll([{ ...other!, account: mine!.account }]), JournalCorrupt)
  })

  it.prop("of a newer format is refused, with both formats in the message", [Seed], ([seed]) => {
    const [sealed] = chainOf(new Random(seed), 1, "mer_1:test")
    const newer = edited(sealed!, `{"format":${FORMAT},`, `{"format":${FORMAT + 1},`)
    assert.throws(() => timeOf(newer), `format ${FORMAT + 1}, which a newer Till wrote`)
    const outcome = readAll([newer])
    assert.instanceOf(outcome, JournalCorrupt)
    assert.include((outcome as JournalCorrupt).message, `format ${FORMAT + 1}, which a newer Till wrote`)
    assert.include((outcome as JournalCorrupt).message, `formats up to ${FORMAT}`)
  })

  it.prop("of an older format is read", [Seed], ([seed]) => {
    const [sealed] = chainOf(new Random(seed), 1, "mer_1:test")
    for (let format = 1; format < FORMAT; format++) {
      const older = edited(sealed!, `{"format":${FORMAT},`, `{"format":${format},`)
      assert.strictEqual(timeOf(older), sealed!.record.at)
      const { record } = unseal({ version: 0, hash: GENESIS }, older)
      assert.deepStrictEqual(record, unseal({ version: 0, hash: GENESIS }, rowOf(sealed!)).record)
    }
  })

  it.prop("of a format before the first is refused", [Seed], ([seed]) => {
    const [sealed] = chainOf(new Random(seed), 1, "mer_1:test")
    const older = edited(sealed!, `{"format":${FORMAT},`, `{"format":0,`)
    assert.instanceOf(readAll([older]), JournalCorrupt)
  })

  it.prop("has its time at its beginning", [Seed], ([seed]) => {
    const written = record(new Random(seed), 1, "mer_1:test")
    assert.strictEqual(timeOf(rowOf(seal(GENESIS, written))), written.at)
  })

  it.prop("that is damaged is reported with the damage", [Seed], ([seed]) => {
    const document = '{"id":"ctr_1","count":1}'
    const sealed = seal(GENESIS, {
      ...record(new Random(seed), 1, "mer_1:test"),
      changes: [{ id: "ctr_1", kind: "counter", document, hidden: null, labels: {}, format: 1, created: true }],
      events: [{ id: "evt_1", type: "counter.created", object: document, format: 1, previous: null }],
      apiVersion: "2026-03-09"
    })
    const row = rowOf(sealed)
    const damages: ReadonlyArray<readonly [JournalRow, string]> = [
      [{ ...row, version: 3 }, "is missing: record 3 follows"],
      [{ ...row, hash: "" }, "is not what was written: its hash does not match"],
      [{ ...row, account: "mer_2:test" }, "is not what was written: its hash does not match"],
      [edited(sealed, "{", "["), "is not JSON"],
      [edited(sealed, '"of":0', '"of":1'), "refers to 1, which it does not change"],
      [edited(sealed, '"count":1', '"count": 1'), "holds a document that is not canonical JSON"]
    ]
    for (const [damaged, problem] of damages) {
      const outcome = readAll([damaged])
      assert.instanceOf(outcome, JournalCorrupt)
      assert.strictEqual((outcome as JournalCorrupt).message, `Record 1 of account ${damaged.account} ${problem}`)
    }
  })

  it.prop("refuses a response that it could not replay byte for byte", [Seed], ([seed]) => {
    const base = record(new Random(seed), 1, "mer_1:test")
    for (const body of ["", "{", '{"a": 1}', '{"b":1,"1":2}', "1.0", '{"a":1,"a":2}', "undefined"]) {
      assert.throws(() => seal(GENESIS, { ...base, changes: [], response: { status: 200, body } }))
    }
  })
})

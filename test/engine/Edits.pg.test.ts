/**
 * An intruder or a disk changes Postgres' data. Every later read returns the written data or is refused: an answer is
 * unchanged, or an error that names a record. A change after which no search finds a row (a key's text, an object's
 * label) may make it missing, but no other row takes its place (semantics storage.damage).
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { runOnce } from "../../src/engine/Accounts.ts"
import type { Identified } from "../../src/engine/log/Document.ts"
import { JournalCorrupt } from "../../src/engine/log/Record.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import { Random, Seed } from "../support/Random.ts"
import * as Harness from "./Harness.ts"
import * as PostgresStorage from "./PostgresStorage.ts"
import * as Toy from "./Toy.ts"

const ACCOUNT = "mer_1:test"
const OTHER = "mer_2:test"
const TABLES = [
  "journal",
  "objects",
  "revisions",
  "events",
  "idempotency",
  "timers",
  "subscriptions",
  "checkpoints",
  "running_time"
] as const
const SAVED = [...TABLES, "deliveries"]
type Table = (typeof TABLES)[number]

/** Columns whose change may hide a row from searches. */
const FINDING: Readonly<Record<Table, ReadonlyArray<string>>> = {
  journal: [],
  objects: ["account", "id", "kind", "labels", "term_numbers", "measure"],
  revisions: ["account", "id", "version"],
  events: ["account", "id", "type"],
  idempotency: ["account", "key"],
  timers: [],
  subscriptions: [],
  checkpoints: [],
  running_time: []
}

/** Tables in which a change affects only an object, an event or a key, and the lists that contain it. */
const OF_ONE: ReadonlyArray<Table> = ["objects", "revisions", "events", "idempotency"]

const KEYS = Array.from({ length: 6 }, (_, i) => `key_${i}`)

/** Counters in all states, with events and stored answers. */
const fill = Effect.fnUntraced(function* (engine: Harness.RunningEngine) {
  const send = (account: string, key: string, operation: Toy.Operation) =>
    runOnce(engine.accounts, account, Toy.request(key), () => Toy.command(operation))
  for (const account of [ACCOUNT, OTHER]) {
    yield* send(account, KEYS[0]!, { op: "create", slot: "a", name: "ünï→😀" })
    yield* send(account, KEYS[1]!, { op: "create", slot: "b", name: "plain" })
    yield* send(account, KEYS[2]!, { op: "create", slot: "c", name: "plain" })
    yield* send(account, KEYS[3]!, { op: "increment", slot: "a", by: 3 })
    yield* send(account, KEYS[4]!, { op: "delete", slot: "b" })
    yield* send(account, KEYS[5]!, { op: "keep", slot: "c" })
    yield* engine.accounts.run(
      account,
      Effect.map(Transaction, (transaction) => {
        transaction.setTimer({ id: "timer_a", name: "increment", dueAt: transaction.now + 1e9 })
        transaction.subscribe("we_1", ["counter.created", "counter.renamed"])
      })
    )
  }
  yield* engine.projector.drained
})

type Answer = ReadonlyArray<unknown>

/** All possible reads by their names. The result of each is a list. */
const questions = (engine: Harness.RunningEngine, ids: ReadonlyArray<string>, events: ReadonlyArray<string>) => {
  const { accounts } = engine
  const all = new Map<string, Effect.Effect<Answer, unknown>>()
  const textsOf = (
    documents: ReadonlyArray<{ readonly id: string; readonly json: string; readonly hidden: unknown }>
  ) => documents.map(({ hidden, id, json }) => ({ id, json, hidden }))
  for (const account of [ACCOUNT, OTHER]) {
    for (const id of ids) {
      const read = Effect.map(accounts.read(account, id), (found) =>
        found === undefined ? [] : found.deleted ? ["deleted"] : textsOf([found])
      )
      all.set(`read ${account} ${id}`, read)
      const history = Effect.map(accounts.history(account, { ids: [id], limit: 10 }), ({ entries }) =>
        entries.map(({ documents, events, id }) => [id, documents, events])
      )
      all.set(`history ${account} ${id}`, history)
    }
    for (const kind of ["counter", "slot"]) {
      for (const labels of [{}, { slot: "a" }, { name: "plain" }]) {
        for (const limit of [1, 10]) {
          const list = Effect.map(accounts.list(account, { kind, labels, limit }), ({ documents }) =>
            textsOf(documents)
          )
          all.set(`list ${account} ${kind} ${JSON.stringify(labels)} ${limit}`, list)
        }
      }
    }
    const filters = [{ all: ["slot=a"], any: [], none: [] }]
    const matches = (value: Identified) => (value as Toy.Counter).slot === "a"
    const search = accounts.search(account, { kind: "counter", prefix: "ctr", filters, matches, limit: 5 })
    all.set(
      `search ${account}`,
      Effect.map(search, ({ documents }) => textsOf(documents))
    )
    for (const type of ["counter.created", "counter.deleted", "counter.incremented"]) {
      const page = accounts.events(account, { type: { exact: type }, limit: 10 })
      all.set(
        `events ${account} ${type}`,
        Effect.map(page, ({ events }) => events)
      )
    }
    all.set(
      `events ${account}`,
      Effect.map(accounts.events(account, { limit: 3 }), ({ events }) => events)
    )
    for (const id of events) {
      all.set(
        `event ${account} ${id}`,
        Effect.map(accounts.event(account, id), (event) => (event === undefined ? [] : [event]))
      )
    }
    for (const key of KEYS) {
      const replay = runOnce(accounts, account, Toy.request(key), () => Toy.command({ op: "look", slot: "a" }))
      all.set(`replay ${account} ${key}`, Effect.map(replay, Array.of))
    }
  }
  return all
}

const answersOf = Effect.fnUntraced(function* (
  storage: Harness.Storage,
  ids: ReadonlyArray<string>,
  events: ReadonlyArray<string>
) {
  const engine = yield* Harness.startEngine(storage, { schedulers: 0 })
  const answers = new Map<string, Exit.Exit<Answer, unknown>>()
  for (const [name, question] of questions(engine, ids, events)) answers.set(name, yield* Effect.exit(question))
  yield* engine.stop
  return answers
})

/** All results of an account's reads. */
const itemsOf = (answers: ReadonlyMap<string, Exit.Exit<Answer, unknown>>, account: string): ReadonlySet<string> =>
  new Set(
    [...answers].flatMap(([question, answer]) =>
      question.split(" ")[1] === account && Exit.isSuccess(answer)
        ? answer.value.map((item) => JSON.stringify(item))
        : []
    )
  )

interface Cell {
  readonly ctid: string
  readonly text: string
  readonly type: string
}

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** A value with one changed byte, as text. */
const changed = ({ text, type }: Cell, random: Random): string => {
  if (type === "int4" || type === "int8") {
    return String(BigInt(text) ^ (1n << BigInt(random.below(type === "int4" ? 31 : 52))))
  }
  const places = [...text].flatMap((c, i) =>
    type === "bytea" ? (i >= 2 ? [i] : []) : /[0-9a-zA-Z]/.test(c) ? [i] : []
  )
  const at = random.pick(places)
  const old = [...text][at]!
  const others = /[0-9]/.test(old) || type === "bytea" ? "0123456789" : "abcXYZ"
  const other = random.pick([...others].filter((c) => c !== old))
  return [...text].with(at, other).join("")
}

/**
 * Fails unless a result is the same as before an edit, or refused. If an edit may hide rows, the remaining ones must be
 * `known`.
 */
const judge = (
  table: Table,
  name: string,
  edit: string,
  before: Answer,
  after: Exit.Exit<Answer, unknown>,
  known: ReadonlySet<string> | null
) => {
  const place = `${name} after ${edit}`
  if (Exit.isFailure(after)) {
    // Without its checkpoint an account is projected anew, and conflicts with the existing rows.
    if (table === "checkpoints" && edit.includes("SET account") && String(after.cause).includes("Unavailable")) return
    const [defect] = after.cause.reasons.filter(Cause.isDieReason).map((reason) => reason.defect)
    assert.instanceOf(defect, JournalCorrupt, `${place}: ${Cause.pretty(after.cause)}`)
    return
  }
  if (known === null) return assert.deepStrictEqual(after.value, before, place)
  // A key that is not found counts as new.
  if (name.startsWith("replay")) return
  // Only rows that come after it may take its place.
  for (const item of after.value) assert.isTrue(known.has(JSON.stringify(item)), place)
}

describe("a database in which a byte was changed", () => {
  it.live.prop(
    "gives the same answers as before, or refuses them with the name of a record",
    { seed: Seed },
    ({ seed }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const random = new Random(seed)
          const postgres = yield* PostgresStorage.make
          const storage = yield* postgres.connect("engine")
          const first = yield* Harness.startEngine(storage, { schedulers: 0 })
          yield* fill(first)
          yield* first.stop
          const ids = (yield* postgres.readRows<{ id: string }>("SELECT DISTINCT id FROM objects")).map(({ id }) => id)
          const events = (yield* postgres.readRows<{ id: string }>("SELECT id FROM events")).map(({ id }) => id)
          for (const table of SAVED) yield* postgres.edit(`CREATE TABLE saved_${table} AS TABLE ${table}`)
          const before = yield* answersOf(storage, ids, events)
          const known = new Map([ACCOUNT, OTHER].map((account) => [account, itemsOf(before, account)]))
          let refused = 0
          for (let round = 0; round < 30; round++) {
            const table = random.pick(TABLES)
            const columns = yield* postgres.readRows<{ name: string; type: string }>(
              `SELECT column_name::text AS name, udt_name::text AS type FROM information_schema.columns
                WHERE table_name = '${table}' ORDER BY column_name`
            )
            const { name, type } = random.pick(columns)
            const cells = yield* postgres.readRows<Omit<Cell, "type">>(
              `SELECT ctid::text AS ctid, ${name}::text AS text FROM ${table}
                WHERE ${name} IS NOT NULL AND ${name}::text NOT IN ('', '{}', '\\x') ORDER BY 1`
            )
            if (cells.length === 0) continue
            const cell = { ...random.pick(cells), type }
            const value = changed(cell, random)
            const edit = `UPDATE ${table} SET ${name} = ${quoted(value)}::${type} WHERE ctid = '${cell.ctid}'`
            // Postgres itself refuses some edits.
            if (Exit.isFailure(yield* Effect.exit(postgres.edit(edit)))) continue
            const mayHide = FINDING[table].includes(name)
            // A document's row names the newest record of its history. Reads of the document itself are refused.
            const mayHideHistory = mayHide || (table === "objects" && name === "version")
            const after = yield* answersOf(storage, ids, events)
            for (const [question, answer] of after) {
              const was = before.get(question)!
              assert.isTrue(Exit.isSuccess(was), question)
              const [kind, account] = question.split(" ")
              const hides = kind === "history" ? mayHideHistory : mayHide
              if (Exit.isSuccess(was)) {
                judge(
                  table,
                  question,
                  `${edit} (was ${cell.text})`,
                  was.value,
                  answer,
                  hides ? known.get(account!)! : null
                )
              }
            }
            const failures = [...after].filter(([, answer]) => Exit.isFailure(answer)).map(([question]) => question)
            if (failures.length > 0) refused++
            if (OF_ONE.includes(table)) assert.isBelow(failures.length, after.size / 2, edit)
            for (const each of SAVED) {
              yield* postgres.edit(`DELETE FROM ${each}`)
              yield* postgres.edit(`INSERT INTO ${each} SELECT * FROM saved_${each}`)
            }
          }
          assert.isAbove(refused, 0)
        })
      ),
    { arbitrary: { runs: 1, maxShrinks: 0 } }
  )

  it.live("does not count a key as new whose row names no record", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const postgres = yield* PostgresStorage.make
        const storage = yield* postgres.connect("engine")
        const first = yield* Harness.startEngine(storage, { schedulers: 0 })
        yield* fill(first)
        yield* first.stop
        const edit = "UPDATE idempotency SET version = 0 WHERE key = 'key_3'"
        yield* postgres.edit(edit)
        for (const [question, answer] of yield* answersOf(storage, [], [])) {
          if (!question.startsWith("replay")) continue
          assert.strictEqual(Exit.isFailure(answer), question.endsWith("key_3"), question)
          if (Exit.isFailure(answer)) judge("idempotency", question, edit, [], answer, null)
        }
      })
    )
  )
})

/**
 * One byte of the database is changed: in every column of every table, each in a copy of the database on which a Till
 * then starts. Every answer must be the earlier one or a 5xx. A row that nothing references may be missing (semantics
 * storage.damage) if `till verify` reports it.
 */
import { execFile } from "node:child_process"
import * as Path from "node:path"
import type { Client } from "pg"
import { type Answer, type HttpExchange, inParallel } from "../../support/HttpExchange.ts"
import { Random } from "../../support/SeededRandom.ts"
import { Findings } from "../Finding.ts"
import { madeBy } from "../Operations.ts"
import { type Context, type Row, scene, type Scene } from "../Scene.ts"
import { type Server, withServer } from "../Server.ts"
import { Service } from "../Service.ts"
import { answerOf, type Deed, pathOf, show } from "../Traffic.ts"

const FAULT = "a byte is changed"
const BASE = "corruption_base"
/** Records hold most of the data, in several places. */
const RECORD_EDITS = 8
const REQUESTS = 250
const CASES_AT_ONCE = 2
const CONCURRENCY = 16

interface Column {
  readonly table: string
  readonly column: string
  readonly type: string
  /** Restricts the change of bytes to the last character of a match in their text. */
  readonly only?: RegExp
}

/** The earlier answers, by path and by key. */
interface Truth {
  readonly texts: ReadonlyMap<string, string>
  readonly deeds: ReadonlyArray<Deed>
}

export const run = async (context: Context): Promise<ReadonlyArray<Row>> => [
  await corruption(context, (columns) => [
    ...Array.from({ length: context.times }, () => columns).flat(),
    ...Array.from({ length: RECORD_EDITS * context.times }, () => RECORD)
  ])
]

const RECORD: Column = { table: "journal", column: "record", type: "bytea" }

/** A digit of an amount, in an object or a stored answer: the text stays valid. */
const AMOUNT: Column = { ...RECORD, only: /"amount\\*":[1-9]/g }

/** Changes amounts in records alone. */
export const amountEdits = (context: Context, count: number): Promise<Row> =>
  corruption(context, () => Array.from({ length: count }, () => AMOUNT))

const corruption = (
  context: Context,
  chosen: (columns: ReadonlyArray<Column>) => ReadonlyArray<Column>
): Promise<Row> =>
  withServer(Path.join(context.folder, "server"), async (server) => {
    const variables = {
      TILL_DATA_DIR: Path.join(context.folder, "shared"),
      TILL_PUBLIC_URL: "http://till.test",
      TILL_WEBHOOK_TEST_HOSTS: "127.0.0.1"
    }
    const databaseUrl = await server.createDatabase(BASE)
    let truth: Truth | undefined
    const options = { fault: FAULT, service: { databaseUrl, variables }, judgedBefore: true }
    const base = await scene(context, options, async (made) => {
      truth = await worked(made)
      // A database can be copied only without connections.
      await made.service.kill("SIGTERM")
    })
    if (truth === undefined) return base
    const columns = await server.query(columnsOf, BASE)
    const cases = chosen(columns)
    const tried = new Tried()
    await inParallel([...cases.entries()], CASES_AT_ONCE, async ([number, column]) => {
      if (context.time.aborted) return void tried.untried++
      const one = new Case(context, server, number, column, variables)
      await one.run(truth!, tried)
    })
    return tried.row(base, cases.length)
  })

const worked = async ({ judge, service, traffic }: Scene): Promise<Truth> => {
  traffic.start()
  await traffic.work(REQUESTS)
  await traffic.stop()
  await traffic.settle()
  await judge.checkAll()
  const texts = new Map<string, string>()
  const lists = ["payment_intents", "customers", "refunds", "charges", "events", "webhook_endpoints"]
  const made = traffic.deeds.flatMap(({ answer, operation }) => madeBy(operation, answer!) ?? [])
  for (const path of [...lists.map((name) => `/v1/${name}?limit=100`), ...made.map(({ id }) => pathOf(id))]) {
    texts.set(path, (await service.http.request("GET", path)).text)
  }
  return { texts, deeds: traffic.deeds }
}

const columnsOf = async (client: Client): Promise<ReadonlyArray<Column>> => {
  const { rows } = await client.query<Column>(
    `SELECT c.relname AS table, a.attname AS column, format_type(a.atttypid, NULL) AS type
      FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
      WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND attnum > 0 AND NOT attisdropped
        AND c.relname <> 'effect_sql_migrations'
      ORDER BY 1, attnum`
  )
  return rows
}

/** Outcomes of all changes. */
class Tried {
  readonly findings = new Findings()
  unaffected = 0
  refused = 0
  hidden = 0
  impossible = 0
  /** Changes for which the time was too short. */
  untried = 0

  row(base: Row, cases: number): Row {
    const { findings, hidden, impossible, refused, unaffected, untried } = this
    for (const { kind, text } of base.findings.all) findings.add(kind, text, text)
    if (untried > 0) findings.add("wrong", "time", `there was no time for ${untried} of ${cases} edits`)
    const rounds = cases - untried
    const lied = rounds - unaffected - refused - hidden - impossible
    const remark =
      `of ${rounds} edits ${unaffected} changed no answer, ${refused} were answered with a 5xx and nothing else, ` +
      `${hidden} hid a row, which semantics storage.damage allows because \`till verify\` says so, and it did, ` +
      `${lied} led to something that is not true; ${impossible} had no row to edit.`
    return { fault: FAULT, rounds, acknowledged: base.acknowledged, findings, recoveries: [], remark }
  }
}

class Case {
  readonly #context: Context
  readonly #server: Server
  readonly #name: string
  readonly #column: Column
  readonly #random: Random
  readonly #variables: Readonly<Record<string, string>>

  constructor(
    context: Context,
    server: Server,
    number: number,
    column: Column,
    variables: Readonly<Record<string, string>>
  ) {
    this.#context = context
    this.#server = server
    this.#name = `corruption_${number}`
    this.#column = column
    this.#random = new Random(context.seed * 7919 + number)
    this.#variables = variables
  }

  async run(truth: Truth, tried: Tried): Promise<void> {
    const databaseUrl = await this.#server.createDatabase(this.#name, undefined, BASE)
    const edit = await this.#server.query((client) => this.#edit(client), this.#name)
    if (edit === undefined) return void tried.impossible++
    const { table, column } = this.#column
    const options = { checkout: this.#context.checkout, databaseUrl, variables: this.#variables }
    let service: Service | undefined
    try {
      service = await Service.start({ ...options, folder: Path.join(this.#context.folder, this.#name) })
      const { lies, omissions, refused } = await ask(service.http, truth)
      const isHidden = lies.length === 0 && omissions.length > 0
      if (isHidden) await service.kill("SIGTERM")
      if (isHidden && (await isFoundByVerify(this.#context, databaseUrl, this.#variables))) tried.hidden++
      else if (lies.length + omissions.length > 0) {
        tried.findings.add("wrong", this.#name, `${table}.${column}, ${edit}: ${[...lies, ...omissions][0]}`)
      } else if (refused > 0) tried.refused++
      else tried.unaffected++
    } catch (error) {
      tried.findings.add("wrong", this.#name, `${table}.${column}, ${edit}: ${String(error)}`)
    } finally {
      await service?.destroy()
    }
  }

  /** Changes one byte of a row of a merchant's account; undefined if no change is possible. */
  async #edit(client: Client): Promise<string | undefined> {
    const { column, table } = this.#column
    const { rows } = await client.query<{ place: string; value: string }>(
      `SELECT ctid::text AS place, "${column}"::text AS value FROM "${table}" AS t
        WHERE "${column}" IS NOT NULL AND coalesce(to_jsonb(t) ->> 'account', 'mer_') LIKE 'mer_%'
        ORDER BY md5(ctid::text || $1) LIMIT 20`,
      [String(this.#random.next())]
    )
    for (const { place, value } of rows) {
      const { only, type } = this.#column
      const changed = only === undefined ? changedOnce(value, type, this.#random) : changedIn(value, only, this.#random)
      if (changed === undefined || changed === value) continue
      try {
        const text = `UPDATE "${table}" SET "${column}" = $1::text::${this.#column.type} WHERE ctid = $2::text::tid`
        await client.query(text, [changed, place])
        return `${shown(value, changed)}`
      } catch {
        // The value is invalid, or such a row exists: another change is tried.
      }
    }
    return undefined
  }
}

/** Returns the part of a value that differs. */
const shown = (before: string, after: string): string => {
  const at = [...before].findIndex((character, i) => character !== after[i])
  const part = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 12), at + 12))
  return `${part(before)} is ${part(after)}`
}

/** Changes one byte of a value's text and keeps the value valid where that is possible. */
const changedOnce = (value: string, type: string, random: Random): string | undefined => {
  if (type === "boolean") return value === "true" ? "false" : "true"
  const pattern = type === "bytea" ? /[0-9a-f]/ : /[0-9A-Za-z]/
  // The text of bytes begins with \x.
  const from = type === "bytea" ? 2 : 0
  const places = Array.from(value, (character, i) => (i >= from && pattern.test(character) ? i : -1)).filter(
    (i) => i >= 0
  )
  if (places.length === 0) return undefined
  const at = random.pick(places)
  const others = /\d/.test(value[at]!) || type === "bytea" ? "0123456789" : "abcdefghijklmnopqrstuvwxyz"
  const other = random.pick([...others].filter((character) => character !== value[at]))
  return value.slice(0, at) + other + value.slice(at + 1)
}

/** Changes one digit in the text of bytes. */
const changedIn = (value: string, only: RegExp, random: Random): string | undefined => {
  const bytes = Buffer.from(value.slice(2), "hex")
  const ends = [...bytes.toString("latin1").matchAll(only)].map((match) => match.index + match[0].length - 1)
  if (ends.length === 0) return undefined
  const at = random.pick(ends)
  bytes[at] = random.pick([..."123456789"].filter((digit) => digit.charCodeAt(0) !== bytes[at])).charCodeAt(0)
  return `\\x${bytes.toString("hex")}`
}

const VERIFY_MILLIS_MAX = 60_000

const isFoundByVerify = (
  { checkout, folder }: Context,
  databaseUrl: string,
  variables: Readonly<Record<string, string>>
): Promise<boolean> => {
  const { node, options } = checkout.command
  const parameters = [...options, Path.join(checkout.folder, "src/main.ts"), "verify"]
  const env = { PATH: process.env["PATH"] ?? "", DATABASE_URL: databaseUrl, ...variables }
  return new Promise((resolve) =>
    execFile(node, parameters, { cwd: folder, env, timeout: VERIFY_MILLIS_MAX }, (error, _, said) =>
      // A verification that could not run has found nothing.
      resolve(error?.code === 1 && /differ|views|journal|record/i.test(said))
    )
  )
}

/** Repeats all requests. */
const ask = async (exchange: HttpExchange, { deeds, texts }: Truth) => {
  const [lies, omissions]: [Array<string>, Array<string>] = [[], []]
  const known = objectsIn(texts)
  let refused = 0
  await inParallel([...texts], CONCURRENCY, async ([path, text]) => {
    const answer = await answerOf(exchange, "GET", path)
    if (answer === undefined || answer.status >= 500) refused++
    else if (answer.text !== text) {
      const isMissing = answer.status === 404 || isPartOf(known, answer)
      const into = isMissing ? omissions : lies
      into.push(`GET ${path} answers ${differing(text, answer.text)}`)
    }
  })
  await inParallel(deeds, CONCURRENCY, async ({ answer: first, body, key, operation, path }) => {
    const answer = await answerOf(exchange, "POST", path, { body, idempotencyKey: key })
    if (answer === undefined || answer.status >= 500) refused++
    else if (answer.text !== first?.text) {
      const isReplay = answer.headers["idempotent-replayed"] === "true"
      // The request is new under its key: it is carried out, or refused by the state that it has led to before.
      const isMissing = !isReplay && answer.body?.error?.code !== "idempotency_key_reuse"
      const into = isMissing ? omissions : lies
      into.push(`the key of ${operation.f} answers ${isReplay ? "" : "anew "}${show(answer).slice(0, 200)}`)
    }
  })
  return { lies, omissions, refused }
}

/** Returns every shown object by its id. */
const objectsIn = (texts: ReadonlyMap<string, string>): ReadonlyMap<string, string> => {
  const shownOnce = [...texts.values()].map((text) => JSON.parse(text)).flatMap((body) => body.data ?? [body])
  return new Map(shownOnce.map((object) => [object.id, JSON.stringify(object)]))
}

/** Returns whether a list shows only known objects in known states. */
const isPartOf = (known: ReadonlyMap<string, string>, { body, status }: Answer): boolean =>
  status === 200 &&
  Array.isArray(body?.data) &&
  body.data.every(({ id, ...rest }: { readonly id: string }) =>
    [undefined, JSON.stringify({ id, ...rest })].includes(known.get(id))
  )

const differing = (before: string, after: string): string => {
  const at = Array.from(before).findIndex((character, i) => character !== after[i])
  const part = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 60), at + 60))
  return `${part(after)}, and before ${part(before)}`
}

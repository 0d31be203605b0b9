/**
 * Erasure of a customer's data on the whole service: after it, none of the customer's texts is in a table, an answer, a
 * webhook or a backup, all of another customer's are, and the journal is whole (semantics erasure.*).
 */
import "effect/schema/SchemaJITCompiler/enable"
import { assert, describe, it } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Exit, Layer, Redacted, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as Path from "node:path"
import { buffer } from "node:stream/consumers"
import { zstdDecompressSync } from "node:zlib"
import * as app from "../../../src/app.ts"
import { erase } from "../../../src/cli/Erase.ts"
import { verification } from "../../../src/cli/Maintenance.ts"
import { Accounts } from "../../../src/engine/Accounts.ts"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import * as SecretFile from "../../../src/domain/SecretFile.ts"
import { ErasureStore, type ErasureStoreShape } from "../../../src/engine/Erasures.ts"
import { type Journal, StorageFailure } from "../../../src/engine/log/Journal.ts"
import {
  BEFORE_ALL,
  type JournalRecord,
  replace,
  seal,
  type Sealed,
  textOf,
  unsealAll
} from "../../../src/engine/log/Record.ts"
import type { DocumentFormats } from "../../../src/engine/views/DocumentFormats.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import * as Audit from "../../../src/payments/team/Audit.ts"
import * as CustomerErasure from "../../../src/payments/erasure/CustomerErasure.ts"
import * as Erasers from "../../../src/payments/erasure/Erasers.ts"
import * as Formats from "../../../src/payments/Formats.ts"
import * as Mails from "../../../src/payments/mail/Mails.ts"
import * as Merchants from "../../../src/payments/merchants/Merchants.ts"
import * as People from "../../../src/payments/team/People.ts"
import type { Processors } from "../../../src/payments/processing/Processor.ts"
import * as Simulator from "../../../src/payments/processing/Simulator.ts"
import { InstallationSecret } from "../../../src/postgres/InstallationSecret.ts"
import { type Answer, HttpExchange, walk } from "../../support/HttpExchange.ts"
import { freshDatabase } from "../../support/Postgres.ts"
import { Random, runSeed } from "../../support/Random.ts"
import { serving, withVariables } from "../../support/ServiceInProcess.ts"
import { temporaryFolder } from "../../support/TemporaryFolder.ts"
import { pause, until } from "../../support/TillProcess.ts"

type Body = Answer["body"]

const KEY = "sk_test_4eC39HqLyjWDarjtT1zdp7dc"

interface Installation {
  readonly url: Redacted.Redacted
  readonly variables: Readonly<Record<string, string>>
}

const installed: Effect.Effect<Installation, never, Scope.Scope> = Effect.gen(function* () {
  const url = yield* freshDatabase
  const folder = yield* temporaryFolder()
  return { url, variables: { DATABASE_URL: Redacted.value(url), TILL_DATA_DIR: folder, TILL_SK_TEST: KEY } }
})

const at = <A, E>({ variables }: Installation, effect: Effect.Effect<A, E>, more: Record<string, string> = {}) =>
  withVariables(effect, { ...variables, ...more })

/** Runs the whole service while `use` sends requests. */
const served = <A>(installation: Installation, use: (http: HttpExchange) => Promise<A>): Effect.Effect<A, unknown> =>
  serving((service, more) => at(installation, service, more), KEY, use)

type Alone = Accounts | DocumentFormats | ErasureStore | InstallationSecret | Journal | Processors

/** Runs commands on an installation without a service. */
const alone = <A, E>(installation: Installation, effect: Effect.Effect<A, E, Alone>) =>
  at(
    installation,
    Effect.provide(
      effect,
      app.accountsAlone.pipe(
        Layer.provideMerge(
          Layer.mergeAll(
            app.storage,
            app.installationSecret,
            Formats.layer,
            Layer.provide(Simulator.layer, app.paymentsConfig)
          )
        ),
        Layer.provide(app.configuration)
      )
    )
  )

/** A webhook endpoint that refuses everything and sends it back. */
const withEcho = async <A>(use: (url: string) => Promise<A>): Promise<A> => {
  const server = createServer(async (request, response) => {
    response.writeHead(500).end(String(await buffer(request)))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  try {
    return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  } finally {
    server.close()
  }
}

/** A customer with texts that occur nowhere else, who pays in several ways. */
class Payer {
  readonly texts: Array<string> = []
  id = ""
  readonly #sent: Array<{ readonly path: string; readonly body: object; readonly idempotencyKey: string }> = []
  readonly #http: HttpExchange
  readonly #random: Random
  readonly #name: string

  constructor(http: HttpExchange, random: Random, name: string) {
    this.#http = http
    this.#random = random
    this.#name = name
  }

  /** Returns a new text. */
  #text(): string {
    const text = `${this.#name}${this.texts.length}q${this.#random.below(1_000_000_000).toString(36)}`
    this.texts.push(text)
    return text
  }

  #email(): string {
    return `${this.#text()}@example.com`
  }

  #billing() {
    return {
      name: this.#text(),
      email: this.#email(),
      phone: this.#text(),
      address: {
        line1: this.#text(),
        line2: this.#text(),
        city: this.#text(),
        postal_code: this.#text(),
        country: "DE"
      }
    }
  }

  #metadata() {
    return { [this.#text()]: this.#text(), 'ü"\\': this.#text() }
  }

  async post(path: string, body: object = {}, status = 200): Promise<Body> {
    const request = { path: `/v1/${path}`, body, idempotencyKey: randomUUID() }
    const answer = await this.#http.request("POST", request.path, request)
    assert.strictEqual(answer.status, status, `POST ${path}: ${answer.text}`)
    if (status !== 400) this.#sent.push(request)
    return answer.body
  }

  async create(): Promise<void> {
    const { id } = await this.post("customers", {
      name: this.#text(),
      email: this.#email(),
      phone: this.#text(),
      description: this.#text(),
      metadata: this.#metadata()
    })
    this.id = id
  }

  async update(): Promise<void> {
    const email = this.#email()
    await this.post(`customers/${this.id}`, { name: this.#text(), email, metadata: this.#metadata() })
    await this.post(`customers/${this.id}`, {})
    await this.#http.request("GET", `/v1/customers?email=${encodeURIComponent(email)}`)
    await this.post("customers", { email, phone: "x".repeat(65) }, 400)
  }

  #sale(card: string) {
    return {
      amount: 1000 + this.#random.below(1000),
      currency: "eur",
      customer: this.id,
      description: this.#text(),
      statement_descriptor: this.#text().slice(0, 22),
      metadata: this.#metadata(),
      payment_method: card
    }
  }

  async #card(): Promise<string> {
    const card = { number: "4242424242424242", exp_month: 12, exp_year: 2040 }
    const { id } = await this.post("payment_methods", {
      type: "card",
      card,
      billing_details: this.#billing(),
      metadata: this.#metadata()
    })
    return id
  }

  async hold(): Promise<void> {
    const card = await this.#card()
    await this.post(`payment_methods/${card}/attach`, { customer: this.id })
    await this.post("payment_intents", { ...this.#sale(card), confirm: true })
    if (this.#random.below(2) === 0) await this.post(`payment_methods/${card}/detach`)
  }

  async pay(): Promise<void> {
    const { id } = await this.post("payment_intents", { ...this.#sale(await this.#card()), confirm: true })
    const { id: refund } = await this.post("refunds", { payment_intent: id, amount: 10, metadata: this.#metadata() })
    await this.post(`refunds/${refund}`, { metadata: this.#metadata() })
    const metadata = this.#metadata()
    await this.post(`payment_intents/${id}`, { description: this.#text(), metadata })
    await this.post("refunds", { payment_intent: id, amount: 0, metadata: this.#metadata() }, 400)
    for (const [key, value] of Object.entries(metadata).slice(0, 1)) {
      const query = encodeURIComponent(`metadata["${key}"]:"${value}"`)
      assert.strictEqual((await this.#http.request("GET", `/v1/payment_intents/search?query=${query}`)).status, 200)
    }
  }

  /** Sends a request that names the customer and is refused, so that only the log of requests has its texts. */
  async beRefused(): Promise<void> {
    await this.post("payment_intents", { ...this.#sale("pm_card_visa"), amount: 0 }, 400)
  }

  async fail(): Promise<void> {
    const sale = this.#sale("pm_card_visa_chargeDeclined")
    await this.post("payment_intents", { ...sale, confirm: true, return_url: `https://x.test/${this.#text()}` }, 402)
  }

  async leaveOpen(): Promise<void> {
    await this.post("payment_intents", { ...this.#sale("pm_card_visa"), confirmation_method: "manual" })
  }

  async checkOut(): Promise<void> {
    const { id: product } = await this.post("products", { name: "Lantern" })
    const session = await this.post("checkout_sessions", {
      mode: "payment",
      customer: this.id,
      client_reference_id: this.#text(),
      success_url: `https://x.test/${this.#text()}`,
      cancel_url: `https://x.test/${this.#text()}`,
      metadata: this.#metadata(),
      payment_intent_data: { description: this.#text(), metadata: this.#metadata() },
      line_items: [{ quantity: 1, price_data: { currency: "eur", product, unit_amount: 700 } }]
    })
    if (this.#random.below(3) === 0) return
    const details = { payment_method: "pm_card_visa", customer_details: this.#billing() }
    await this.post(`checkout_sessions/${session.id}/confirm`, details)
  }

  /** Sends random requests, and at least one of each kind. */
  async live(count: number): Promise<void> {
    const ways = ["update", "hold", "pay", "fail", "beRefused", "leaveOpen", "checkOut"] as const
    await this.create()
    for (const way of ways) await this[way]()
    for (let i = 0; i < count; i++) await this[ways[this.#random.below(ways.length)]!]()
  }

  /** Reads everything of the account, so that memory holds it. */
  async read(): Promise<string> {
    const lists = ["customers", "payment_intents", "charges", "refunds", "checkout_sessions", "events", "request_logs"]
    const texts: Array<string> = []
    for (const list of lists) texts.push(JSON.stringify(await walk(this.#http, `/v1/${list}`)))
    return texts.join("\n")
  }

  /** Repeats all requests that were answered with a key. */
  async repeat(): Promise<string> {
    const texts: Array<string> = []
    for (const { path, ...request } of this.#sent) {
      const { headers, text } = await this.#http.request("POST", path, request)
      assert.strictEqual(headers["idempotent-replayed"], "true", path)
      texts.push(text)
    }
    return texts.join("\n")
  }

  async erased(): Promise<void> {
    await until("the data is erased", async () => {
      const { body } = await this.#http.request("GET", `/v1/customers/${this.id}`)
      return body.erasure === "completed"
    })
  }
}

/** The content of all tables as text, with bytes as text. */
const dumped = ({ url }: Installation): Effect.Effect<string> =>
  PgClient.PgClient.use((sql) =>
    Effect.gen(function* () {
      const tables = yield* sql<{ name: string }>`SELECT relname::text AS name FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`
      const texts: Array<string> = []
      for (const { name } of tables) {
        for (const { row } of yield* sql.unsafe<{ row: string }>(`SELECT t::text AS row FROM ${name} t`))
          texts.push(row)
      }
      for (const { row } of yield* sql.unsafe<{ row: string }>(
        "SELECT convert_from(record, 'UTF8') AS row FROM journal"
      )) {
        texts.push(row)
      }
      return texts.join("\n")
    })
  ).pipe(Effect.provide(PgClient.layer({ url, maxConnections: 1 })), Effect.orDie)

/** The content of a backup. */
const contentOf = (folder: string): string =>
  fs
    .readdirSync(Path.join(folder, "records"))
    .map((name) => zstdDecompressSync(fs.readFileSync(Path.join(folder, "records", name))).toString())
    .join("\n")

const assertNone = (text: string, payer: Payer, where: string): void => {
  const lower = text.toLowerCase()
  const found = payer.texts.filter((one) => lower.includes(one.toLowerCase()))
  assert.deepStrictEqual(found, [], where)
}

const missingIn = (text: string, payer: Payer): ReadonlyArray<string> =>
  payer.texts.filter((one) => !text.includes(one) && !text.includes(one.slice(0, 22)))

const assertAll = (text: string, payer: Payer, where: string): void =>
  assert.deepStrictEqual(missingIn(text, payer), [], where)

const verified = Effect.fnUntraced(function* (installation: Installation) {
  const report = yield* at(installation, verification)
  assert.deepStrictEqual(report.problems, [])
  return report
})

interface JournalLine {
  readonly account: string
  readonly version: string
  readonly hash: string
  readonly record: string
}

/** Runs statements like psql. */
const edited = ({ url }: Installation, ...statements: ReadonlyArray<string>): Effect.Effect<void> =>
  PgClient.PgClient.use((sql) => Effect.forEach(statements, (text) => sql.unsafe(text), { discard: true })).pipe(
    Effect.provide(PgClient.layer({ url, maxConnections: 1 })),
    Effect.orDie
  )

/** The records of an account, with their hashes. */
const recordsOf = ({ url }: Installation, account: string): Effect.Effect<ReadonlyArray<Sealed>> =>
  PgClient.PgClient.use((sql) =>
    sql.unsafe<JournalLine>(`SELECT account, version::text, encode(hash, 'hex') AS hash,
      convert_from(record, 'UTF8') AS record FROM journal WHERE account = '${account}' ORDER BY version`)
  ).pipe(
    Effect.provide(PgClient.layer({ url, maxConnections: 1 })),
    Effect.orDie,
    Effect.map((lines) =>
      unsealAll(
        BEFORE_ALL,
        lines.map((line) => ({ ...line, version: Number(line.version), bytes: Buffer.from(line.record) }))
      )
    )
  )

const text = (value: string) => `'${value.replaceAll("'", "''")}'`

/** The statements with which an attacker replaces a record's text. */
const forgery = (before: Sealed, after: JournalRecord): string => {
  const { row } = replace(before, after)
  return `UPDATE journal SET record = convert_to(${text(textOf(row.bytes))}, 'UTF8'), erased = '${row.erased}'
    WHERE account = '${row.account}' AND version = ${row.version}`
}

/** A store that fails at a call, before its work or after it, and at all later ones. */
const failingAfter = (store: ErasureStoreShape, calls: number, isLost: boolean): ErasureStoreShape => {
  let left = calls
  const failure = new StorageFailure({ cause: "killed" })
  const failing = <A>(work: Effect.Effect<A, StorageFailure>) =>
    Effect.suspend(() => {
      left--
      if (left > 0) return work
      return left === 0 && isLost ? Effect.andThen(work, Effect.fail(failure)) : Effect.fail(failure)
    })
  return {
    people: store.people,
    note: (person) => failing(store.note(person)),
    replace: (account, replacement) => failing(store.replace(account, replacement)),
    deleteRequests: (account, traces) => failing(store.deleteRequests(account, traces))
  }
}

const seeds = Array.from({ length: 2 }, (_, i) => runSeed + i)

describe("an erasure", () => {
  it.live.each(seeds)(
    "erasure.data, erasure.replays: leaves none of the customer's texts, and all of another's (seed %i)",
    (seed) =>
      Effect.gen(function* () {
        const installation = yield* installed
        const random = new Random(seed)
        yield* Effect.promise(() =>
          withEcho((echo) =>
            Effect.runPromise(
              served(installation, async (http) => {
                const [jane, otto] = [new Payer(http, random, "jane"), new Payer(http, random, "otto")] as const
                await jane.post("webhook_endpoints", { url: echo, enabled_events: ["*"] })
                await Promise.all([jane.live(6), otto.live(3)])
                // Memory has everything now.
                await jane.read()
                // The log of requests is written a moment after the answers.
                let before = await Effect.runPromise(dumped(installation))
                for (let tries = 0; tries < 50 && missingIn(before, jane).length > 0; tries++) {
                  await new Promise((resolve) => setTimeout(resolve, 200))
                  before = await Effect.runPromise(dumped(installation))
                }
                assertAll(before, jane, "before")
                const begun = await jane.post(`customers/${jane.id}/erase`)
                assert.strictEqual(begun.erasure, "in_progress")
                await jane.erased()
                assertNone(await jane.read(), jane, "answers")
                const tables = await Effect.runPromise(dumped(installation))
                assertNone(tables, jane, "tables")
                assertAll(tables, otto, "tables")
                // Last, because these requests are logged, with what they send.
                assertNone(await jane.repeat(), jane, "replays")
                const { erased } = await Effect.runPromise(verified(installation))
                assert.isAbove(erased, 10)
              }) as Effect.Effect<void>
            )
          )
        )
        const folder = Path.join(yield* temporaryFolder(), "backup")
        yield* at(installation, app.backup(folder, "all"))
        assert.notInclude(contentOf(folder), "jane")
      }).pipe(Effect.scoped)
  )

  it.live("erasure.course: goes on after the service has ended at any point of it", () =>
    Effect.gen(function* () {
      const installation = yield* installed
      const random = new Random(runSeed)
      const jane = yield* served(installation, async (http) => {
        const jane = new Payer(http, random, "jane")
        await jane.live(20)
        return jane
      })
      for (let millis = 0; millis < 60; millis += 10) {
        yield* served(installation, async (http) => {
          const idempotencyKey = `erase-${millis}`
          await http.request("POST", `/v1/customers/${jane.id}/erase`, { idempotencyKey })
          await pause(millis)
        })
        yield* verified(installation)
      }
      yield* served(installation, async (http) => {
        const isErased = async () => {
          const { body } = await http.request("GET", `/v1/customers/${jane.id}`)
          return body.erasure === "completed"
        }
        await until("the data is erased", isErased)
      })
      assertNone(yield* dumped(installation), jane, "tables")
      yield* verified(installation)
    }).pipe(Effect.scoped)
  )

  it.live("erasure.course: comes to its end after the storage has failed at any point of it", () =>
    Effect.gen(function* () {
      const installation = yield* installed
      const jane = yield* served(installation, async (http) => {
        const jane = new Payer(http, new Random(runSeed), "jane")
        await jane.live(30)
        return jane
      })
      const merchant = /mer_\w+(?=:test)/.exec(yield* dumped(installation))![0]
      const account = `${merchant}:test`
      /** Carries an erasure out until the store is called once more than that; returns whether it came to its end. */
      const upTo = (calls: number, isLost: boolean) =>
        alone(
          installation,
          Effect.gen(function* () {
            const accounts = yield* Accounts
            const store = failingAfter(yield* ErasureStore, calls, isLost)
            yield* accounts.run(account, CustomerErasure.begin(jane.id, { payment: null, isDeleted: false }))
            const erased = Effect.gen(function* () {
              const key = SecretFile.lastingKeyOf(yield* InstallationSecret, "erasures")
              const erase = yield* Erasers.make(key, { pauses: () => Effect.void, onBegin: () => Effect.void })
              return yield* erase(account, jane.id)
            })
            return Exit.isSuccess(yield* Effect.exit(Effect.provideService(erased, ErasureStore, store)))
          })
        )
      let calls = 0
      for (; !(yield* upTo(calls, calls % 2 === 0)); calls++) yield* verified(installation)
      yield* verified(installation)
      assert.isAbove(calls, 3)
      assertNone(yield* dumped(installation), jane, "tables")
    }).pipe(Effect.scoped)
  )

  it.live("erasure.proof: nobody without the secret can replace a record unnoticed", () =>
    Effect.gen(function* () {
      const installation = yield* installed
      const merchant = yield* served(installation, async (http) => {
        const { body } = await http.request("POST", "/v1/customers", { body: { name: "Jane" } })
        await http.request("POST", "/v1/customers", { body: { name: "Otto" } })
        return body.merchant_id as string
      })
      const account = `${merchant}:test`
      const records = yield* recordsOf(installation, account)
      const [first] = records
      const document = first!.record.changes[0]!.document!.replace("Jane", "Mary")
      const changes = [{ ...first!.record.changes[0]!, document, value: undefined }]
      const replaced = { ...first!.record, changes, events: [], response: null }
      yield* edited(installation, forgery(first!, replaced))
      const problemOf = Effect.map(at(installation, verification), ({ problems }) => problems[0])
      assert.strictEqual(
        yield* problemOf,
        `Record 1 of account ${account} was replaced, and no later record notes an erasure of it`
      )
      const last = records.at(-1)!
      const { row } = replace(first!, replaced)
      const note = seal(last.hash, {
        ...last.record,
        version: last.record.version + 1,
        changes: [],
        events: [],
        deliveries: [],
        timers: [],
        response: null,
        erased: { rows: [[1, row.erased]], signature: "0".repeat(64) }
      })
      yield* edited(
        installation,
        `INSERT INTO journal (account, version, hash, record) VALUES ('${account}', ${note.record.version},
          decode('${note.hash}', 'hex'), convert_to(${text(textOf(note.bytes))}, 'UTF8'))`
      )
      assert.strictEqual(
        yield* problemOf,
        `Record ${note.record.version} of account ${account} notes an erasure that was not signed with the secret in ` +
          "TILL_DATA_DIR"
      )
    }).pipe(Effect.scoped)
  )
})

describe("an erasure of a person who was in a team", () => {
  it.live("erasure.people: leaves no address of theirs, and those of others", () =>
    Effect.gen(function* () {
      const installation = yield* installed
      const merchant = yield* served(installation, async (http) => {
        const { body } = await http.request("POST", "/v1/customers", { body: {} })
        return body.merchant_id as string
      })
      const [first, second, other] = ["Jane.x+1@example.com", "jane2q@example.com", "otto@example.com"]
      const person = yield* alone(
        installation,
        Effect.gen(function* () {
          const accounts = yield* Accounts
          const team = <A, E>(command: Effect.Effect<A, E, Transaction>) => accounts.run(INSTALLATION, command)
          const jane = yield* team(People.add(merchant, { email: first, role: "developer" }))
          yield* team(People.add(merchant, { email: other, role: "developer" }))
          const acted = Audit.record(jane, { action: "person.invite", detail: `${first}, developer` })
          yield* team(acted)
          yield* accounts.run(`${merchant}:test`, acted)
          yield* team(
            Effect.map(Transaction, (transaction) =>
              Mails.queue(transaction, { purpose: "invitation", subject: jane.id, merchantId: merchant, to: first })
            )
          )
          yield* team(People.setCredentials(merchant, jane.id, { email: second, password: "no hash" as never }))
          yield* team(People.remove(merchant, jane.id))
          return jane.id
        })
      )
      const before = (yield* dumped(installation)).toLowerCase()
      for (const email of [first, second, other]) assert.include(before, email.toLowerCase())
      yield* served(installation, () =>
        Effect.runPromise(at(installation, erase({ id: person, merchant: undefined, mode: "live", json: true })))
      )
      const after = (yield* dumped(installation)).toLowerCase()
      for (const email of [first, second]) assert.notInclude(after, email.toLowerCase())
      assert.include(after, other)
      yield* verified(installation)
    }).pipe(Effect.scoped)
  )

  it.live("erasure.people: leaves an address that another person signs in with", () =>
    Effect.gen(function* () {
      const installation = yield* installed
      yield* served(installation, async () => {})
      const email = "jane@example.com"
      const [merchant, person] = yield* alone(
        installation,
        Effect.gen(function* () {
          const accounts = yield* Accounts
          const team = <A, E>(command: Effect.Effect<A, E, Transaction>) => accounts.run(INSTALLATION, command)
          const [one, two] = [yield* team(Merchants.create("One")), yield* team(Merchants.create("Two"))]
          const jane = yield* team(People.add(one.id, { email, role: "developer" }))
          yield* team(People.add(two.id, { email, role: "developer" }))
          yield* team(People.remove(one.id, jane.id))
          return [one.id, jane.id] as const
        })
      )
      yield* served(installation, () =>
        Effect.runPromise(at(installation, erase({ id: person, merchant, mode: "live", json: true })))
      )
      assert.include(yield* dumped(installation), `person_email:${email}`)
      yield* verified(installation)
    }).pipe(Effect.scoped)
  )
})

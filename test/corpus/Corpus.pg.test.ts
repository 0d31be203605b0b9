/**
 * This Till on installations of released versions (semantics versions.documents): every response about their objects
 * fits the present contract, repeated requests get their original responses, pending webhooks keep their bytes, and all
 * objects can be used further. The journal stays as it was written.
 */
import "effect/schema/SchemaJITCompiler/enable"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema, type Scope } from "effect"
import { createServer } from "node:http"
import * as fs from "node:fs"
import type { AddressInfo } from "node:net"
import * as Path from "node:path"
import { buffer } from "node:stream/consumers"
import * as Document from "../../src/api/openapi/Document.ts"
import { reconstruction, verification } from "../../src/cli/Maintenance.ts"
import { EMITTED_EVENT_TYPES } from "../../src/domain/Event.ts"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import { KINDS } from "../../src/payments/Formats.ts"
import { ClockOffMax } from "../../src/cluster/Sessions.ts"
import { clockOf } from "../support/SettableClock.ts"
import { assertContracted, documentedBy } from "../support/ContractAnswers.ts"
import { ContractFuzz, type Target } from "../support/ContractFuzz.ts"
import { type Answer, HttpExchange, walk } from "../support/HttpExchange.ts"
import { freshDatabase } from "../support/Postgres.ts"
import { Random } from "../support/Random.ts"
import { serving, withVariables } from "../support/ServiceInProcess.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { pause, until } from "../support/TillProcess.ts"
import { type Corpus, load, type ReceivedWebhook, restore, versions } from "./Corpus.ts"

type Body = Answer["body"]

const document = Document.make("http://localhost")
const assertDocumented = documentedBy(document)
const readable = new ContractFuzz(document, new Random(1)).targets.filter(({ method }) => method === "GET")

/** Checks of the objects in events and lists, by kind, to the last field. */
const shapes = new Map(
  KINDS.map(({ name, shape }) => [
    name as string,
    Schema.decodeUnknownSync(shape.value as Schema.Decoder<unknown>, { onExcessProperty: "error" })
  ])
)

interface Installation {
  readonly corpus: Corpus
  readonly variables: Readonly<Record<string, string>>
  /** A clock that continues from the time of the corpus. */
  readonly now: () => number
}

/** Creates a database and a data folder with the content of a corpus. */
const install = Effect.fnUntraced(function* (corpus: Corpus): Effect.fn.Return<Installation, never, Scope.Scope> {
  const url = yield* freshDatabase
  yield* restore(corpus, url)
  const folder = yield* temporaryFolder()
  fs.writeFileSync(Path.join(folder, "secret"), corpus.secret, { mode: 0o600 })
  const { publishableLive, publishableTest, secretLive, secretTest } = corpus.keys
  const begun = Date.now()
  return {
    corpus,
    now: () => corpus.at + Date.now() - begun,
    variables: {
      DATABASE_URL: Redacted.value(url),
      TILL_DATA_DIR: folder,
      TILL_PUBLIC_URL: corpus.publicUrl,
      TILL_SK_TEST: secretTest,
      TILL_PK_TEST: publishableTest,
      TILL_SK_LIVE: secretLive,
      TILL_PK_LIVE: publishableLive
    }
  }
})

/** Runs an effect on the installation, by its clock. */
const at = <A, E>({ now, variables }: Installation, effect: Effect.Effect<A, E>, more: Record<string, string> = {}) =>
  withVariables(effect, { ...variables, ...more }).pipe(
    Effect.provide(clockOf(now)),
    // The database has the machine's time.
    Effect.provideService(ClockOffMax, Infinity)
  )

/** Runs the whole service while `use` sends requests. */
const served = <A>(installation: Installation, use: (http: HttpExchange) => Promise<A>): Effect.Effect<A, unknown> =>
  serving((service, more) => at(installation, service, more), installation.corpus.keys.secretTest, use)

interface Held {
  readonly id: string
  /** `cus_` */
  readonly prefix: string
  readonly deleted: boolean
}

/** Returns the objects and events in the test environment of the merchant whose keys the corpus has. */
const heldBy = ({ exchanges, tables }: Corpus): ReadonlyArray<Held> => {
  const { merchant_id } = JSON.parse(exchanges.find(({ path }) => path === "/v1/customers")!.text)
  return [...tables["objects"]!, ...tables["events"]!].flatMap((text) => {
    const { account, document_at, id } = JSON.parse(text)
    const prefix = /^([a-z]+_)[0-9A-Za-z]{24}$/.exec(id)?.[1]
    const isOwn = prefix !== undefined && account === `${merchant_id}:test`
    return isOwn ? [{ id, prefix, deleted: document_at === null }] : []
  })
}

/** Sends a GET until it is not refused: a service on a busy machine may refuse requests. */
const patiently = async (http: HttpExchange, path: string): Promise<Answer> => {
  for (;;) {
    const answer = await http.request("GET", path)
    if (answer.status !== 503) return answer
    await pause(100)
  }
}

/** Sends a GET and checks the response; only a deleted object may be missing. */
const get = async (http: HttpExchange, target: Target, path: string, isDeleted = false): Promise<Body> => {
  const answer = await patiently(http, path)
  try {
    assert.include(isDeleted ? [200, 404] : [200], answer.status)
    assertDocumented(target, answer)
    if (answer.status === 200) assertContracted(target, answer.body)
  } catch (cause) {
    throw new Error(`GET ${path} was answered with ${answer.status} ${answer.text}`, { cause })
  }
  return answer.body
}

const checkEvent = ({ data, type }: Body): void =>
  void shapes.get((EMITTED_EVENT_TYPES as Readonly<Record<string, string>>)[type]!)!(data.object)

/** Reads one object by its id, plain and expanded. */
const readObject = async (http: HttpExchange, target: Target, { deleted, id }: Held): Promise<void> => {
  const path = target.path.replace(/\{\w+\}/, id)
  const body = await get(http, target, path, deleted)
  if (body.object === "event") checkEvent(body)
  const { items } = target.operation.parameters.find(({ name }) => name === "expand[]")?.schema ?? {}
  const fields = [items, ...(items?.anyOf ?? [])].flatMap((schema) => schema?.enum ?? [])
  for (const field of fields) await get(http, target, `${path}?expand[]=${String(field)}`, deleted)
}

/** Reads all pages of a list; returns the ids. `needed` is appended to the query. */
const readList = async (http: HttpExchange, target: Target, needed = ""): Promise<ReadonlyArray<string>> => {
  const ids: Array<string> = []
  for (let cursor: string | null = ""; cursor !== null;) {
    const query: string = cursor === "" ? "" : `&starting_after=${cursor}`
    const page: Body = await get(http, target, `${target.path}?limit=100${query}${needed}`)
    if (target.path === "/v1/events") page.data.forEach(checkEvent)
    ids.push(...page.data.map(({ id }: Body) => id))
    cursor = page.next_cursor
  }
  return ids
}

/** Returns the queries of a list: one for each object that it requires as a parameter, or an empty one. */
const queriesOf = ({ operation }: Target, held: ReadonlyArray<Held>): ReadonlyArray<string> => {
  const needed = operation.parameters.find((parameter) => parameter.in === "query" && parameter.required)
  if (needed === undefined) return [""]
  const owners = held.filter(({ deleted, id }) => !deleted && new RegExp(needed.schema.pattern!, "u").test(id))
  assert.isNotEmpty(owners, needed.name)
  return owners.map(({ id }) => `&${needed.name}=${id}`)
}

/** Finds all objects by a query that all match; returns the ids. */
const searchAll = async (http: HttpExchange, target: Target): Promise<ReadonlyArray<string>> => {
  const ids: Array<string> = []
  for (let page: string | null = ""; page !== null;) {
    const query: string = `query=${encodeURIComponent('-id:"none"')}&limit=3${page === "" ? "" : `&page=${page}`}`
    const found: Body = await get(http, target, `${target.path}?${query}`)
    for (const object of found.data) {
      ids.push(object.id)
      await searchOne(http, target, object)
    }
    page = found.next_page
  }
  return ids
}

/** Checks that searches for each field of an object find it. */
const searchOne = async (http: HttpExchange, target: Target, object: Body): Promise<void> => {
  const text = (field: string, value: unknown) => (value === null ? `${field}:null` : `${field}:"${String(value)}"`)
  const clauses = [
    text("id", object.id),
    `created:${object.created}`,
    ...Object.entries(object.metadata).map(([key, value]) => text(`metadata["${key}"]`, value)),
    ...(object.object === "customer"
      ? [text("email", object.email), text("name", object.name)]
      : [
          `amount:${object.amount}`,
          text("currency", object.currency),
          text("status", object.status),
          text("customer", object.customer),
          text("last4", object.charges.data[0]?.payment_method_details.card.last4 ?? null)
        ])
  ]
  for (const clause of [...clauses.slice(1), clauses.join(" AND ")]) {
    const query = `query=${encodeURIComponent(clause)}&limit=100`
    const { data } = await get(http, target, `${target.path}?${query}`)
    assert.include(
      data.map(({ id }: Body) => id),
      object.id,
      clause
    )
  }
}

/** Reads all objects through every operation that reads. */
const readAll = async (http: HttpExchange, corpus: Corpus): Promise<void> => {
  const held = heldBy(corpus)
  const missing = new Map(held.filter(({ deleted }) => !deleted).map(({ id, prefix }) => [id, prefix]))
  for (const target of readable) {
    if (target.path.endsWith("/search")) {
      const list = readable.find(({ path }) => path === target.path.replace("/search", ""))!
      assert.deepStrictEqual(await searchAll(http, target), await readList(http, list, ""))
    } else if (target.idPrefix === undefined) {
      for (const needed of queriesOf(target, held)) {
        for (const id of await readList(http, target, needed)) missing.delete(id)
      }
    } else for (const one of held) if (one.prefix === target.idPrefix) await readObject(http, target, one)
  }
  // No list has the payment methods without a customer, and the API has no mails.
  assert.includeMembers(["pm_", "mail_"], [...new Set(missing.values())])
}

/** Opens the pages of payers' links, which contain only ids. */
const openLinks = async (http: HttpExchange): Promise<void> => {
  const sessions = (await walk(http, "/v1/checkout_sessions")).filter(({ url }) => url !== null)
  assert.isNotEmpty(sessions)
  for (const { url } of sessions) {
    const { pathname } = new URL(url)
    const page = await fetch(`http://127.0.0.1:${http.port}${pathname}`)
    assert.strictEqual(page.status, 200, pathname)
  }
}

/** Checks that repeated requests get their original responses (semantics idempotency.replay). */
const replayAll = async (http: HttpExchange, { exchanges }: Corpus): Promise<void> => {
  for (const { path, status, text, ...request } of exchanges) {
    const answer = await http.request("POST", path, request)
    assert.strictEqual(answer.headers["idempotent-replayed"], "true", path)
    assert.deepStrictEqual({ status: answer.status, text: answer.text }, { status, text }, path)
  }
}

/** A merchant that uses the objects of an installation further. */
class Business {
  readonly #http: HttpExchange

  constructor(http: HttpExchange) {
    this.#http = http
  }

  async post(path: string, body: object = {}): Promise<Body> {
    const answer = await this.#http.request("POST", `/v1/${path}`, { body })
    assert.strictEqual(answer.status, 200, `POST ${path}: ${answer.text}`)
    return answer.body
  }

  all(list: string): Promise<Array<Body>> {
    return walk(this.#http, `/v1/${list}`)
  }

  /** Runs `does` on each object of a list in a status; requires at least one. */
  async each(list: string, status: string, does: (object: Body) => Promise<Body>): Promise<void> {
    const objects = (await this.all(list)).filter((object) => object.status === status)
    assert.isNotEmpty(objects, `${list} ${status}`)
    for (const object of objects) await does(object)
  }

  /**
   * Attaches charged cards to a customer, charges them again, and deletes the customer (semantics
   * payment_intents.setup_future_usage).
   */
  async holdCards(): Promise<void> {
    const charged = (await this.all("charges")).filter(({ status }) => status === "succeeded")
    const cards = new Set(charged.map(({ payment_method }) => payment_method as string))
    const own = [...cards].filter((id) => !id.startsWith("pm_card_"))
    assert.isNotEmpty(own)
    const { id: customer } = await this.post("customers")
    for (const id of own) {
      await this.post(`payment_methods/${id}/attach`, { customer })
      const sale = { amount: 100, currency: "usd", customer, payment_method: id, off_session: true, confirm: true }
      assert.strictEqual((await this.post("payment_intents", sale)).status, "succeeded")
    }
    const held = (await this.all(`customers/${customer}/payment_methods`)).map(({ id }) => id as string)
    assert.deepStrictEqual(held, own.toSorted().toReversed())
    const { status } = await this.#http.request("DELETE", `/v1/customers/${customer}`)
    assert.strictEqual(status, 200)
  }

  async carryOn(): Promise<void> {
    const intents = "payment_intents"
    const isOwn = new Set((await this.all("checkout_sessions")).map(({ payment_intent }) => payment_intent))
    const confirm = async ({ id }: Body) => {
      if (!isOwn.has(id)) await this.post(`${intents}/${id}/confirm`, { payment_method: "pm_card_visa" })
    }
    await this.each(intents, "requires_capture", ({ id }) => this.post(`${intents}/${id}/capture`))
    await this.each(intents, "requires_confirmation", confirm)
    await this.each(intents, "requires_payment_method", confirm)
    await this.each(intents, "requires_action", ({ id }) =>
      this.post(`test_helpers/${intents}/${id}/authenticate`, { outcome: "success" })
    )
    await this.each("charges", "succeeded", async ({ amount_captured, amount_refunded, payment_intent }) => {
      if (amount_captured > amount_refunded) await this.post("refunds", { payment_intent, amount: 1 })
    })
    await this.holdCards()
    const details = {
      payment_method: "pm_card_visa",
      customer_details: { email: "a@example.com", address: { country: "US" } }
    }
    const [open, ...others] = (await this.all("checkout_sessions")).filter(({ status }) => status === "open")
    await this.post(`checkout_sessions/${open.id}/confirm`, details)
    for (const { id } of others.slice(1)) await this.post(`checkout_sessions/${id}/expire`)
    const change = { metadata: { changed: "yes" } }
    for (const list of ["customers", "products", "prices", "refunds", "webhook_endpoints", intents]) {
      for (const { erasure, id } of await this.all(list)) {
        if (isOwn.has(id) || erasure !== undefined) continue
        assert.strictEqual((await this.post(`${list}/${id}`, change)).metadata.changed, "yes")
      }
    }
  }
}

/**
 * Checks that the deliveries to the endpoint that refused them are repeated with the same bytes (semantics
 * webhooks.body).
 */
const deliverLate = async (http: HttpExchange, { received }: Corpus): Promise<void> => {
  const business = new Business(http)
  const arrived: Array<Omit<ReceivedWebhook, "endpoint">> = []
  const server = createServer(async (request, response) => {
    const body = String(await buffer(request))
    arrived.push({ event: JSON.parse(body).id, body })
    response.writeHead(204).end()
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/late`
    const endpoint = (await business.all("webhook_endpoints")).find(({ url }) => url.endsWith("/failing"))
    const deliveries = await business.all(`webhook_endpoints/${endpoint.id}/deliveries`)
    const firsts = new Map(received.map(({ body, event }) => [event, body]))
    const pending: ReadonlyArray<string> = deliveries
      .filter(({ event, status }) => status === "pending" && firsts.has(event))
      .map(({ event }) => event)
    assert.isNotEmpty(pending)
    await business.post(`webhook_endpoints/${endpoint.id}`, { url })
    const { event: again } = received.find(({ endpoint }) => endpoint === "ok")!
    await business.post(`events/${again}/resend`, { webhook_endpoint: endpoint.id })
    await business.post("test_helpers/clock/advance", { seconds: 86_400 })
    await until("all is delivered", () => [...pending, again].every((id) => arrived.some(({ event }) => event === id)))
    for (const { body, event } of arrived) if (firsts.has(event)) assert.strictEqual(body, firsts.get(event))
  } finally {
    server.close()
  }
}

/** The accounts of a corpus' records whose texts were replaced. */
const erasedOf = ({ tables }: Corpus): ReadonlyArray<string> =>
  tables["journal"]!.map((row) => JSON.parse(row)).flatMap(({ account, erased }) => (erased === null ? [] : [account]))

const verified = Effect.fnUntraced(function* (installation: Installation) {
  const { erased, problems, records } = yield* at(installation, verification)
  assert.deepStrictEqual(problems, [])
  assert.strictEqual(erased, erasedOf(installation.corpus).length)
  return records
})

describe.each(versions)("an installation of Till %s", (version) => {
  const corpus = load(version)

  it.live("answers by the present contract, repeats responses and deliveries, and continues", () =>
    Effect.gen(function* () {
      const installation = yield* install(corpus)
      const before = corpus.tables["journal"]!.length
      // On the migrated tables, and again on the rebuilt views.
      yield* served(installation, async (http) => {
        await openLinks(http)
        await replayAll(http, corpus)
        await readAll(http, corpus)
      })
      assert.isAtLeast(yield* verified(installation), before)
      yield* at(installation, reconstruction)
      yield* verified(installation)
      yield* served(installation, async (http) => {
        await readAll(http, corpus)
        await openLinks(http)
        await replayAll(http, corpus)
        await new Business(http).carryOn()
        await deliverLate(http, corpus)
        await new Business(http).post("test_helpers/clock/advance", { seconds: 9 * 86_400 })
        await readAll(http, corpus)
        await replayAll(http, corpus)
      })
      assert.isAbove(yield* verified(installation), before + 50)
    })
  )

  it("has records from which the data of a customer and of a person of a team was erased", () => {
    const accounts = new Set(erasedOf(corpus))
    assert.isTrue(accounts.has(INSTALLATION))
    assert.isTrue([...accounts].some((account) => account.endsWith(":test")))
    assert.isNotEmpty(corpus.tables["erasures"])
    const text = JSON.stringify([corpus.tables, corpus.exchanges.map(({ text }) => text), corpus.received])
    const decoded = corpus.tables["journal"]!.map((row) => String(Buffer.from(JSON.parse(row).record.slice(2), "hex")))
    for (const erased of ["Erased Person", "erased@example.com", "former@shop.example"]) {
      assert.notInclude(text, erased)
      for (const record of decoded) assert.notInclude(record, erased)
    }
  })

  it("has its documents under the labels that this Till derives", () => {
    const kinds = new Map(KINDS.map((kind) => [kind.name as string, kind]))
    const found = new Set<string>()
    for (const text of corpus.tables["journal"]!) {
      const { record } = JSON.parse(text) as { record: string }
      const { changes } = JSON.parse(Buffer.from(record.slice(2), "hex").toString()) as {
        changes: ReadonlyArray<{ document: unknown; kind: string; labels?: object }>
      }
      for (const { document, kind, labels = {} } of changes) {
        found.add(kind)
        if (document === null) continue
        const labelsOf = (kinds.get(kind) as { readonly labels?: (value: unknown) => object }).labels
        assert.deepStrictEqual(labelsOf?.(document) ?? {}, labels)
      }
    }
    assert.isAtLeast(found.size, 16)
  })
})

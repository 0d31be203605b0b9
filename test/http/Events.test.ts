/** Semantics events.types, events.list: the list of event types, and events by type, through a real socket. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as Path from "node:path"
import { EMITTED_EVENT_TYPES, EVENT_TYPES, RESERVED_EVENT_TYPES } from "../../src/domain/Event.ts"
import { assertError, assertOk } from "./Assertions.ts"
import { type MemoryTill, start } from "../support/MemoryTill.ts"

/** An independent copy of the table of semantics events.types: emitted types by their object, then reserved ones. */
const EMITTED = {
  payment_intent:
    "created requires_action processing amount_capturable_updated succeeded payment_failed canceled".split(" "),
  charge: "succeeded pending failed captured expired updated refunded".split(" "),
  refund: "created updated failed".split(" "),
  operation: ["unresolved", "resolved"],
  "checkout.session": "completed expired async_payment_succeeded async_payment_failed".split(" "),
  payment_link: "created updated".split(" "),
  customer: "created updated deleted".split(" "),
  payment_method: "attached detached".split(" "),
  product: "created updated deleted".split(" "),
  price: "created updated".split(" ")
}
const RESERVED = {
  payment_intent: ["partially_funded"],
  "charge.refund": ["updated"],
  "charge.dispute": "created updated closed funds_withdrawn funds_reinstated".split(" "),
  price: ["deleted"],
  payment_method: "updated automatically_updated".split(" ")
}
const typesOf = (table: Readonly<Record<string, ReadonlyArray<string>>>) =>
  Object.entries(table).flatMap(([object, names]) => names.map((name) => `${object}.${name}`))

interface Event {
  readonly id: string
  readonly type: string
  readonly data: {
    readonly object: { readonly object: string; readonly id: string }
    readonly previous_attributes?: {}
  }
}

let server: MemoryTill
let all: ReadonlyArray<Event>

const post = async (path: string, body?: unknown) => (await server.request("POST", path, { body })).body
const list = (query: string) => server.request("GET", `/v1/events?limit=100${query}`)

beforeAll(async () => {
  server = await start()
  const { id: customer } = await post("/v1/customers", { name: "A" })
  await post(`/v1/customers/${customer}`, { name: "B" })
  const pay = (parameters: object) =>
    post("/v1/payment_intents", { amount: 10, currency: "usd", confirm: true, customer, ...parameters })
  const paid = await pay({ payment_method: "pm_card_visa" })
  const { id: refund } = await post("/v1/refunds", { payment_intent: paid.id, amount: 1 })
  await post(`/v1/refunds/${refund}`, { metadata: { a: "b" } })
  const held = await pay({ payment_method: "pm_card_visa", capture_method: "manual" })
  await post(`/v1/payment_intents/${held.id}/capture`)
  const released = await pay({ payment_method: "pm_card_visa", capture_method: "manual" })
  await post(`/v1/payment_intents/${released.id}/cancel`)
  await pay({ payment_method: "pm_card_declined" })
  await pay({ payment_method: "pm_card_3ds_required" })
  await pay({ payment_method: "pm_card_visa", setup_future_usage: "off_session" })
  const { id: card } = await post("/v1/payment_methods/pm_card_visa/attach", { customer })
  await post(`/v1/payment_methods/${card}/detach`)
  await server.request("DELETE", `/v1/customers/${customer}`)
  all = (await list("")).body.data
})
afterAll(() => server.close())

describe("event types", () => {
  it("events.types: are those of the list", () => {
    assert.sameMembers(Object.keys(EMITTED_EVENT_TYPES), typesOf(EMITTED))
    assert.sameMembers([...RESERVED_EVENT_TYPES], typesOf(RESERVED))
    assert.sameMembers([...EVENT_TYPES], [...typesOf(EMITTED), ...typesOf(RESERVED)])
    for (const [object, names] of Object.entries(EMITTED)) {
      for (const name of names) {
        const type = `${object}.${name}` as keyof typeof EMITTED_EVENT_TYPES
        assert.strictEqual(EMITTED_EVENT_TYPES[type], object)
      }
    }
  })

  it("events.types: no lifecycle emits a reserved one", () => {
    const folder = Path.join(import.meta.dirname, "..", "..", "src", "payments")
    const sources = fs
      .readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => fs.readFileSync(Path.join(folder, file), "utf8"))
    for (const type of RESERVED_EVENT_TYPES)
      assert.isFalse(
        sources.some((source) => source.includes(`"${type}"`)),
        type
      )
  })

  // Semantics events.previous_attributes.
  it("contain the object of the list, and old values only in updates and detachments", () => {
    assert.isAbove(all.length, 15)
    for (const { data, type } of all) {
      assert.property(EMITTED_EVENT_TYPES, type)
      assert.strictEqual(data.object.object, EMITTED_EVENT_TYPES[type as keyof typeof EMITTED_EVENT_TYPES])
      const tellsOfBefore = type.endsWith(".updated") || type === "payment_method.detached"
      assert.strictEqual("previous_attributes" in data, tellsOfBefore, type)
    }
  })

  it("payment_intents.outcomes, checkout.states, refunds.states: follow one another in the order of the tables", () => {
    assert.deepStrictEqual(
      all.map(({ type }) => type).toReversed(),
      `customer.created customer.updated
      payment_intent.created charge.succeeded payment_intent.succeeded
      refund.created charge.refunded refund.updated
      payment_intent.created charge.succeeded payment_intent.amount_capturable_updated
      charge.captured payment_intent.succeeded
      payment_intent.created charge.succeeded payment_intent.amount_capturable_updated
      charge.updated payment_intent.canceled
      payment_intent.created charge.failed payment_intent.payment_failed
      payment_intent.created payment_intent.requires_action
      payment_intent.created payment_method.attached charge.succeeded payment_intent.succeeded
      payment_method.attached payment_method.detached
      payment_method.detached customer.deleted`.split(/\s+/u)
    )
  })
})

describe("events by type", () => {
  it("events.list: by any type of the list, reserved or not", async () => {
    for (const type of EVENT_TYPES) {
      const reply = await list(`&type=${type}`)
      assertOk(reply)
      assert.deepStrictEqual(
        reply.body.data,
        all.filter((event) => event.type === type)
      )
    }
  })

  it("events.list: by any prefix that some type has", async () => {
    for (const prefix of [...Object.keys(EMITTED), "checkout", "charge.refund", "charge.dispute"]) {
      const reply = await list(`&type=${prefix}.*`)
      assertOk(reply)
      assert.deepStrictEqual(
        reply.body.data,
        all.filter((event) => event.type.startsWith(`${prefix}.`)),
        prefix
      )
    }
  })

  it("events.list, lists.cursors, lists.has_more: pages of one type", async () => {
    const succeeded = all.filter(({ type }) => type === "charge.succeeded")
    const first = await server.request("GET", "/v1/events?type=charge.succeeded&limit=2")
    assert.deepStrictEqual(first.body.data, succeeded.slice(0, 2))
    assert.deepInclude(first.body, { has_more: true, url: "/v1/events", next_cursor: succeeded[1]!.id })
    const rest = await server.request("GET", `/v1/events?type=charge.*&starting_after=${succeeded[1]!.id}`)
    assert.deepStrictEqual(
      rest.body.data,
      all.filter(({ id, type }) => type.startsWith("charge.") && id < succeeded[1]!.id)
    )
  })

  it("events.list: anything else is refused", async () => {
    for (const type of [
      "*",
      "charge",
      "charge.",
      "charge*",
      "charge.fail",
      "charge.fail*",
      "x.*",
      ".*",
      "Charge.failed"
    ]) {
      const reply = await list(`&type=${encodeURIComponent(type)}`)
      assertError(reply, 400, "parameter_invalid", "type")
    }
    assertError(await list("&type="), 400, "parameter_invalid", "type")
    assertError(await list("&type=charge.failed&type=charge.failed"), 400, "parameter_invalid", "type")
  })
})

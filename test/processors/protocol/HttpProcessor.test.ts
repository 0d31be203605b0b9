/** The adapter of the protocol: its requests, and its readings of answers and messages (semantics gateways.*). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as StandardWebhooks from "../../../src/domain/StandardWebhooks.ts"
import { PUBLIC_ONLY } from "../../../src/domain/WebhookHosts.ts"
import * as Exchange from "../../../src/processors/Exchange.ts"
import * as HttpProcessor from "../../../src/processors/protocol/HttpProcessor.ts"
import { answerOf, receiver } from "../../webhooks/RawReceiver.ts"
import { type Answer, errorOf, exchangeWith, NOW_SECONDS, OTHER, requestOf, SECRET, stateOf } from "./Calls.ts"

const URL = "https://gateway.example/till"

/** A processor whose gateway gives one answer, and the requests that it got. */
const processorWith = (answer: Answer, secrets = [SECRET]) => {
  const { exchange, requests } = exchangeWith(() => answer)
  return { processor: HttpProcessor.make({ id: "prc_1", url: URL, secrets, exchange }), requests }
}

const json = (status: number, body: unknown): Answer => ({ status, body: JSON.stringify(body) })

describe("gateways.messages: an operation", () => {
  it.effect("is executed, retrieved and abandoned by its id, in signed requests", () =>
    Effect.gen(function* () {
      const { processor, requests } = processorWith(json(200, stateOf()))
      const request = requestOf({ billingDetails: { email: "a@b.example", name: null, phone: null, address: null } })
      for (const call of [processor.perform, processor.look, processor.fence]) {
        assert.strictEqual((yield* call(request)).kind, "approved")
      }
      const bodies = requests.map(({ body }) => JSON.parse(body.toString()) as unknown)
      assert.deepStrictEqual(bodies.slice(1), [
        { type: "operation.retrieve", id: "op_1" },
        { type: "operation.abandon", id: "op_1" }
      ])
      assert.deepStrictEqual(bodies[0], {
        type: "operation.execute",
        operation: {
          id: "op_1",
          kind: "authorize",
          payment: "pi_1",
          reference: null,
          amount: 2000,
          currency: "usd",
          token: "tok_1",
          capture: "automatic",
          authenticated: false,
          off_session: false,
          return_url: null,
          customer: null,
          description: null,
          descriptor: null,
          billing_details: { email: "a@b.example", name: null, phone: null, address: null }
        }
      })
      for (const { body, headers } of requests) {
        assert.strictEqual(headers["till-protocol"], "1")
        assert.isNotNull(StandardWebhooks.verify([SECRET], headers, body, Number(headers["webhook-timestamp"])))
      }
      assert.strictEqual(new Set(requests.map(({ headers }) => headers["webhook-id"])).size, 3)
    })
  )

  it.effect("is in the gateway's list, page by page, whatever the gateway leaves out", () =>
    Effect.gen(function* () {
      const data = [stateOf({ kind: "refund" }), { id: "op_2", status: "not_executed" }]
      const { processor, requests } = processorWith(json(200, { data, next: "op_2" }))
      const page = yield* processor.list(1_700_000_000, "op_0")
      assert.deepStrictEqual(JSON.parse(requests[0]!.body.toString()), {
        type: "operation.list",
        since: 1_700_000_000,
        after: "op_0",
        limit: 100
      })
      const [amount, currency, kind, payment, reference] = [null, null, null, null, null]
      const bare = { id: "op_2", status: "not_executed", amount, currency, kind, payment, reference }
      const whole = { amount: 2000, currency: "usd", kind: "refund", payment: "pi_1", reference: "ref_1" } as const
      assert.deepStrictEqual(page, {
        kind: "page",
        operations: [{ id: "op_1", status: "approved", ...whole }, bare],
        next: "op_2"
      })
      const last = yield* processorWith(json(200, { data: [] })).processor.list(0, null)
      assert.deepStrictEqual(last, { kind: "page", operations: [], next: null })
    })
  )

  it.effect("is in no list that the gateway has not signed, or that has another form", () =>
    Effect.gen(function* () {
      for (const [answer, why] of [
        [{ ...json(200, { data: [], next: null }), secret: null }, /not signed/],
        [json(200, { data: [{ id: 1 }], next: null }), /does not have the protocol's form/],
        [json(400, errorOf("unsupported")), /with status 400: Why\./]
      ] as const) {
        const page = yield* processorWith(answer).processor.list(0, null)
        assert.match(page.kind === "unavailable" ? page.why : page.kind, why)
      }
    })
  )

  it.effect("has the same body each time", () =>
    Effect.gen(function* () {
      const { processor, requests } = processorWith(json(200, stateOf()))
      yield* processor.perform(requestOf())
      yield* processor.perform({ ...requestOf() })
      assert.deepStrictEqual(requests[0]!.body, requests[1]!.body)
    })
  )

  it.effect("is signed with every secret, and an answer needs one of them", () =>
    Effect.gen(function* () {
      const { processor, requests } = processorWith({ ...json(200, stateOf()), secret: OTHER }, [SECRET, OTHER])
      assert.strictEqual((yield* processor.perform(requestOf())).kind, "approved")
      assert.lengthOf(requests[0]!.headers["webhook-signature"]!.split(" "), 2)
    })
  )

  it.effect("is unknown if its answer is not signed, or is that of another request", () =>
    Effect.gen(function* () {
      for (const part of [{ secret: null }, { secret: OTHER }, { id: "msg_of_before" }]) {
        const { processor } = processorWith({ ...json(200, stateOf()), ...part })
        assert.strictEqual((yield* processor.perform(requestOf())).kind, "unknown")
      }
    })
  )

  it.effect("that is longer than 64 KiB is not sent", () =>
    Effect.gen(function* () {
      const { processor, requests } = processorWith(json(200, stateOf()))
      const { kind } = yield* processor.perform(requestOf({ description: "x".repeat(70_000) }))
      assert.deepStrictEqual([kind, requests.length], ["not_executed", 0])
    })
  )
})

describe("gateways.messages: a token", () => {
  const card = {
    brand: "visa",
    last4: "4242",
    exp_month: 12,
    exp_year: 2034,
    funding: "credit",
    country: "US"
  } as const

  it.effect("is described as a card", () =>
    Effect.gen(function* () {
      const { processor, requests } = processorWith(json(200, card))
      assert.deepStrictEqual(yield* processor.describe("tok_1"), { kind: "card", card: { ...card, fingerprint: null } })
      assert.deepStrictEqual(JSON.parse(requests[0]!.body.toString()), { type: "token.describe", token: "tok_1" })
    })
  )

  it.effect("that the gateway does not have is refused, and any other answer unavailable", () =>
    Effect.gen(function* () {
      const kindOf = (answer: Answer) => Effect.map(processorWith(answer).processor.describe("tok_1"), (it) => it.kind)
      assert.strictEqual(yield* kindOf(json(400, errorOf("unknown_token"))), "refused")
      for (const answer of [
        json(200, { ...card, last4: "424242" }),
        json(503, errorOf("unavailable")),
        json(400, "no"),
        { ...json(400, errorOf("unknown_token")), secret: null }
      ]) {
        assert.strictEqual(yield* kindOf(answer), "unavailable")
      }
    })
  )
})

describe("gateways.messages: a check", () => {
  const checked = {
    protocol: 1,
    name: "Acme",
    livemode: false,
    currencies: ["usd"],
    fields: null,
    test_tokens: null
  } as const

  it.effect("returns the gateway's description of itself", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* processorWith(json(200, checked)).processor.check, checked)
    })
  )

  it.effect("fails with a reason for any other answer", () =>
    Effect.gen(function* () {
      for (const answer of [
        json(200, { ...checked, protocol: 2 }),
        json(401, errorOf("unauthorized")),
        { ...json(200, checked), secret: OTHER }
      ]) {
        const { message } = yield* Effect.flip(processorWith(answer).processor.check)
        assert.match(message, /^[A-Z].*\.$/u)
      }
    })
  )
})

describe("gateways.notifications: a message", () => {
  const { processor } = processorWith(json(200, {}))
  const verified = (message: unknown, secret = SECRET, now = NOW_SECONDS) => {
    const raw = Buffer.from(JSON.stringify(message))
    return processor.verify(StandardWebhooks.sign([secret], "msg_1", NOW_SECONDS, raw), raw, now * 1000)
  }
  const updated = { type: "operation.updated", operation: { id: "op_1", payment: "pi_1", status: "approved" } }

  it("about an operation causes a look at it", () => {
    assert.deepStrictEqual(verified(updated), { kind: "operation", operation: "op_1", payment: "pi_1" })
  })

  it("about a refund has its reference and amount", () => {
    const created = { type: "refund.created", payment: "pi_1", refund: { reference: "r_1", amount: 500 } }
    assert.deepStrictEqual(verified(created), { kind: "refund", payment: "pi_1", reference: "r_1", amount: 500 })
  })

  it("about a dispute names its payment", () => {
    const message = { type: "dispute.updated", dispute: { reference: "dp_1", payment: "pi_1" } }
    assert.deepStrictEqual(verified(message), { kind: "dispute", payment: "pi_1" })
  })

  it("of another type is none that Till uses", () => {
    for (const type of ["payout.paid", "operation.updated.2", ""]) {
      assert.deepStrictEqual(verified({ type }), { kind: "other" })
    }
  })

  it("without its fields is unreadable", () => {
    for (const message of [{ type: "dispute.updated" }, { type: "operation.updated" }, { type: 1 }, null, [], "text"]) {
      assert.deepStrictEqual(verified(message), { kind: "unreadable" })
    }
  })

  it("that the gateway did not sign, or not now, is none of its messages", () => {
    assert.isNull(verified(updated, OTHER))
    assert.isNull(verified(updated, SECRET, NOW_SECONDS + 301))
    assert.isNull(processor.verify({}, Buffer.from(JSON.stringify(updated)), NOW_SECONDS * 1000))
  })
})

describe("gateways.exchange: over a real socket", () => {
  it.live("an operation is approved, and unknown once the connection is cut", () =>
    Effect.gen(function* () {
      const there = yield* receiver(({ body, headers, socket }) => {
        if (body.includes("op_cut")) return void socket.resetAndDestroy()
        const answer = JSON.stringify(stateOf())
        const id = headers.get("webhook-id")!
        const signature = StandardWebhooks.sign([SECRET], id, Number(headers.get("webhook-timestamp")), answer)
        const lines = Object.entries(signature).map(([name, value]) => `${name}: ${value}\r\n`)
        socket.write(answerOf(200, answer).replace("content-length", `${lines.join("")}content-length`))
      })
      const exchange = yield* Exchange.make({ hosts: { httpsOnly: true, besidePublic: PUBLIC_ONLY } })
      const processor = HttpProcessor.make({ id: "prc_1", url: there.url, secrets: [SECRET], exchange })
      assert.strictEqual((yield* processor.perform(requestOf())).kind, "approved")
      assert.strictEqual((yield* processor.perform(requestOf({ id: "op_cut" }))).kind, "unknown")
      assert.lengthOf(there.requests, 2)
    })
  )
})

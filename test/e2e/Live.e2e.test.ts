/**
 * Payments of live mode through the example gateway: real processes, sockets and Postgres (semantics operations.*,
 * processors.resolution, payment_methods.token). The gateway is stopped and killed, and so is Till; its journal is the
 * truth about the money.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, type Scope } from "effect"
import { exampleGateway, type ExampleGateway } from "../processors/protocol/ExampleGateway.ts"
import type { Answer } from "../support/HttpExchange.ts"
import { startFleet } from "../support/TillFleet.ts"
import { KEYS, startTill, till, type TillProcess, until } from "../support/TillProcess.ts"

type Mode = "live" | "test"

/** Requests that wait at the same time: not more than calls of one processor may run. */
const WAITING = 60

const LIVE = { key: KEYS.secretLive }

const gatewayOf = (mode: Mode): Effect.Effect<ExampleGateway, never, Scope.Scope> =>
  exampleGateway([`const livemode = GATEWAY_LIVEMODE === "true"`, `const livemode = ${mode === "live"}`])

/** Adds the gateway as the processor of the service's merchant. */
const addProcessor = async (server: TillProcess, gateway: ExampleGateway, mode: Mode): Promise<string> => {
  const { stdout } = await till(["merchants", "list", "--json"], server.variables)
  const merchant = JSON.parse(stdout).merchants[0].id
  const credentials = JSON.stringify({ secret: Redacted.value(gateway.secret) })
  const adding = ["add", merchant, "--mode", mode, "--kind", "http", "--url", gateway.url, "--credentials", "-"]
  const added = await till(["processors", ...adding, "--json"], server.variables, { text: credentials, ends: true })
  assert.strictEqual(added.code, 0, added.stderr)
  return JSON.parse(added.stdout).processors[0].id
}

/** A service whose merchant has a gateway. */
const shop = (mode: Mode): Effect.Effect<readonly [TillProcess, ExampleGateway], never, Scope.Scope> =>
  Effect.gen(function* () {
    const gateway = yield* gatewayOf(mode)
    const server = yield* startTill()
    yield* Effect.promise(() => addProcessor(server, gateway, mode))
    return [server, gateway] as const
  })

const terms = (token: string, more: object = {}) => ({
  amount: 2000,
  currency: "usd",
  confirm: true,
  payment_method_data: { type: "card", token },
  ...more
})

const pay = (server: TillProcess, token: string, more: object = {}, idempotencyKey?: string): Promise<Answer> =>
  server.request("POST", "/v1/payment_intents", {
    ...LIVE,
    body: terms(token, more),
    ...(idempotencyKey !== undefined && { idempotencyKey })
  })

const outcomeOf = ({ body, status }: Answer): readonly [number, string] => [status, body.error?.code ?? body.status]

const live = {
  post: (server: TillProcess, path: string, body: object = {}) =>
    server.request("POST", `/v1/${path}`, { ...LIVE, body }),
  get: (server: TillProcess, path: string) => server.get(`/v1/${path}`, LIVE)
}

/** The states that the gateway's operations have ended with, by payment: what happened to the money. */
const approvedAt = (gateway: ExampleGateway, payment: string, kind: string): number => {
  const approved = gateway.changes.flatMap(({ operation }) =>
    operation?.state.status === "approved" && operation.state.payment === payment && operation.body !== undefined
      ? [JSON.parse(operation.body) as { readonly id: string; readonly kind: string }]
      : []
  )
  return new Set(approved.filter((operation) => operation.kind === kind).map(({ id }) => id)).size
}

describe("a merchant of live mode with a gateway", () => {
  it.live("charges, captures, refunds and cancels by it, and every repetition gets the first answer", () =>
    Effect.gen(function* () {
      const [server, gateway] = yield* shop("live")
      yield* Effect.promise(async () => {
        const paid = await pay(server, "tok_approve", {}, "first")
        assert.deepStrictEqual(outcomeOf(paid), [200, "succeeded"])
        assert.deepInclude(paid.body, { livemode: true, amount_received: 2000 })
        assert.deepInclude(paid.body.charges.data[0].payment_method_details.card, { brand: "visa", last4: "4242" })
        assert.isUndefined(paid.headers["idempotent-replayed"])
        const again = await pay(server, "tok_approve", {}, "first")
        assert.strictEqual(again.text, paid.text)
        assert.strictEqual(again.headers["idempotent-replayed"], "true")
        assert.strictEqual(again.headers["original-request"], paid.headers["x-request-id"])
        assert.strictEqual((await pay(server, "tok_decline", {}, "first")).body.error.code, "idempotency_key_reuse")

        const declined = await pay(server, "tok_decline")
        assert.deepStrictEqual(outcomeOf(declined), [402, "card_declined"])
        assert.strictEqual(declined.body.error.decline_code, "insufficient_funds")

        const held = await pay(server, "tok_approve", { capture_method: "manual" })
        assert.deepStrictEqual(outcomeOf(held), [200, "requires_capture"])
        const captured = await live.post(server, `payment_intents/${held.body.id}/capture`, { amount_to_capture: 1500 })
        assert.deepStrictEqual(outcomeOf(captured), [200, "succeeded"])
        assert.strictEqual(captured.body.amount_received, 1500)
        const refund = await live.post(server, "refunds", { payment_intent: held.body.id, amount: 500 })
        assert.deepStrictEqual(outcomeOf(refund), [200, "succeeded"])
        const tooMuch = await live.post(server, "refunds", { payment_intent: held.body.id, amount: 1001 })
        assert.deepStrictEqual(outcomeOf(tooMuch), [400, "amount_too_large"])

        const released = await pay(server, "tok_approve", { capture_method: "manual" })
        const canceled = await live.post(server, `payment_intents/${released.body.id}/cancel`)
        assert.deepStrictEqual(outcomeOf(canceled), [200, "canceled"])
        const counts = (id: string) =>
          ["authorize", "capture", "void", "refund"].map((kind) => approvedAt(gateway, id, kind))
        assert.deepStrictEqual(counts(paid.body.id), [1, 0, 0, 0])
        assert.deepStrictEqual(counts(held.body.id), [1, 1, 0, 1])
        assert.deepStrictEqual(counts(released.body.id), [1, 0, 1, 0])

        const challenged = await pay(server, "tok_challenge", { return_url: "https://shop.example/" })
        assert.deepStrictEqual(outcomeOf(challenged), [200, "requires_action"])
        assert.include(challenged.body.next_action.redirect_to_url.url, `/authenticate/${challenged.body.id}`)
        assert.strictEqual(challenged.body.pending_operation, undefined)
        const anew = await live.post(server, `payment_intents/${challenged.body.id}/confirm`, {
          payment_method_data: { type: "card", token: "tok_approve" }
        })
        assert.deepStrictEqual(outcomeOf(anew), [200, "succeeded"])
        assert.strictEqual(approvedAt(gateway, challenged.body.id, "authorize"), 1)
      })
    })
  )

  it.live("payment_methods.token: gets no card number, and a card belongs to its processor", () =>
    Effect.gen(function* () {
      const [server] = yield* shop("live")
      yield* Effect.promise(async () => {
        const card = { number: "4242424242424242", exp_month: 12, exp_year: 2040, cvc: "123" }
        const raw = await live.post(server, "payment_methods", { type: "card", card })
        assert.deepStrictEqual(outcomeOf(raw), [400, "card_data_refused"])
        assert.strictEqual(raw.body.error.param, "card")
        const inline = await live.post(server, "payment_intents", {
          ...terms("x"),
          payment_method_data: { type: "card", card }
        })
        assert.deepStrictEqual(outcomeOf(inline), [400, "card_data_refused"])
        assert.strictEqual(inline.body.error.param, "payment_method_data[card]")
        const unknown = await live.post(server, "payment_methods", { type: "card", token: "tok_nobody" })
        assert.deepStrictEqual(outcomeOf(unknown), [400, "parameter_invalid"])
        assert.strictEqual(unknown.body.error.param, "token")
        const [one, other] = await Promise.all(
          [0, 1].map(() => live.post(server, "payment_methods", { type: "card", token: "tok_approve" }))
        )
        assert.deepInclude(one!.body.card, { brand: "visa", last4: "4242", exp_year: 2034 })
        assert.strictEqual(one!.body.card.fingerprint, other!.body.card.fingerprint)
        assert.notStrictEqual(one!.body.card.fingerprint, "4242")
        const { id: customer } = (await live.post(server, "customers")).body
        await live.post(server, `payment_methods/${one!.body.id}/attach`, { customer })
        const charged = { amount: 900, currency: "usd", customer, payment_method: one!.body.id, confirm: true }
        const saved = await live.post(server, "payment_intents", { ...charged, off_session: true })
        assert.deepStrictEqual(outcomeOf(saved), [200, "succeeded"])
        const logged = JSON.stringify(await live.get(server, "request_logs?limit=100"))
        assert.notInclude(logged, card.number)
        assert.notInclude(logged, "tok_approve")
        const publishable = await server.request("POST", "/v1/payment_methods", {
          key: KEYS.publishableLive,
          body: { type: "card", token: "tok_approve" }
        })
        assert.strictEqual(publishable.status, 200, publishable.text)
      })
    })
  )
})

describe("a gateway that does not answer", () => {
  it.live("leaves the payment unresolved after 20 seconds, and resolves it when it is back", () =>
    Effect.gen(function* () {
      const [server, gateway] = yield* shop("live")
      yield* Effect.promise(async () => {
        const { body: method } = await live.post(server, "payment_methods", { type: "card", token: "tok_approve" })
        gateway.signal("SIGSTOP")
        const charge = { amount: 2000, currency: "usd", confirm: true, payment_method: method.id }
        const begun = performance.now()
        const requests = [0, 1].map(() =>
          server.request("POST", "/v1/payment_intents", { ...LIVE, body: charge, idempotencyKey: "once" })
        )
        const [paid, again] = await Promise.all(requests)
        assert.isAbove(performance.now() - begun, 19_000)
        assert.deepStrictEqual(outcomeOf(paid!), [200, "processing"])
        assert.strictEqual(again!.text, paid!.text)
        const { id } = paid!.body
        assert.strictEqual(paid!.body.pending_operation.kind, "authorize")
        const refused = await live.post(server, `payment_intents/${id}/cancel`)
        assert.deepStrictEqual(outcomeOf(refused), [409, "operation_in_progress"])
        assert.strictEqual(refused.headers["retry-after"], "1")
        gateway.signal("SIGCONT")
        const isPaid = async () => (await live.get(server, `payment_intents/${id}`)).status === "succeeded"
        await until("the payment is resolved", isPaid, 60)
        assert.strictEqual(approvedAt(gateway, id, "authorize"), 1)
        const { data } = await live.get(server, "events?type=payment_intent.succeeded")
        assert.lengthOf(data, 1)
      })
    })
  )

  it.live("that has ended is told at once, and nothing stays behind; the same key pays when it is back", () =>
    Effect.gen(function* () {
      const [server, gateway] = yield* shop("live")
      yield* Effect.promise(async () => {
        const { body: method } = await live.post(server, "payment_methods", { type: "card", token: "tok_approve" })
        await gateway.kill()
        const { body: payment } = await live.post(server, "payment_intents", { amount: 2000, currency: "usd" })
        const confirm = () =>
          server.request("POST", `/v1/payment_intents/${payment.id}/confirm`, {
            ...LIVE,
            body: { payment_method: method.id },
            idempotencyKey: "confirm"
          })
        assert.deepStrictEqual(outcomeOf(await confirm()), [500, "processor_unavailable"])
        const after = await live.get(server, `payment_intents/${payment.id}`)
        assert.strictEqual(after.status, "requires_payment_method")
        assert.isUndefined(after.pending_operation)
        const described = await live.post(server, "payment_methods", { type: "card", token: "tok_approve" })
        assert.deepStrictEqual(outcomeOf(described), [500, "processor_unavailable"])
        // Ten failures in a row: nothing begins, until a look finds the gateway.
        for (let i = 0; i < 10; i++) await live.post(server, "payment_methods", { type: "card", token: "tok_approve" })
        const out = await confirm()
        assert.deepStrictEqual(outcomeOf(out), [500, "processor_unavailable"])
        assert.strictEqual(out.headers["retry-after"], "5")
        await gateway.start()
        await until("the gateway is found again", async () => (await confirm()).status === 200, 60)
        assert.strictEqual(approvedAt(gateway, payment.id, "authorize"), 1)
      })
    })
  )

  it.live("is asked again after a kill -9 of Till, and each payment is carried out once", () =>
    Effect.gen(function* () {
      const [server, gateway] = yield* shop("live")
      yield* Effect.promise(async () => {
        const { body: method } = await live.post(server, "payment_methods", { type: "card", token: "tok_approve" })
        gateway.signal("SIGSTOP")
        const send = (i: number) =>
          server.request("POST", "/v1/payment_intents", {
            ...LIVE,
            body: { amount: 1000 + i, currency: "usd", confirm: true, payment_method: method.id },
            idempotencyKey: `payment-${i}`
          })
        const payments = Array.from({ length: WAITING }, (_, i) => i)
        const lost = payments.map((i) => send(i).catch(() => "lost"))
        const areOpen = async () => {
          const { data } = await live.get(server, "payment_intents?limit=100")
          return data.length === payments.length
        }
        await until("all payments have begun", areOpen, 15)
        await server.kill("SIGKILL")
        assert.deepStrictEqual(new Set(await Promise.all(lost)), new Set(["lost"]))
        gateway.signal("SIGCONT")
        await server.start()
        const answers = await Promise.all(payments.map(send))
        for (const answer of answers) assert.deepStrictEqual(outcomeOf(answer), [200, "succeeded"])
        for (const { body } of answers) assert.strictEqual(approvedAt(gateway, body.id, "authorize"), 1)
      })
    })
  )
})

describe("two runners", () => {
  it.live("hold no connection between them for requests that wait for a gateway", () =>
    Effect.gen(function* () {
      const gateway = yield* gatewayOf("live")
      const runners = yield* startFleet(2, { TILL_PUBLIC_URL: "http://till.test" })
      yield* Effect.promise(async () => {
        await addProcessor(runners[0]!, gateway, "live")
        const { body: method } = await live.post(runners[0]!, "payment_methods", { type: "card", token: "tok_approve" })
        await until("the other runner has the processor", async () => {
          const made = await live.post(runners[1]!, "payment_methods", { type: "card", token: "tok_approve" })
          return made.status === 200
        })
        gateway.signal("SIGSTOP")
        const requests = Array.from({ length: WAITING }, (_, i) => ({
          ...LIVE,
          body: { amount: 1000 + i, currency: "usd", confirm: true, payment_method: method.id },
          idempotencyKey: `payment-${i}`
        }))
        const send = (runner: TillProcess) =>
          requests.map((request) => runner.request("POST", "/v1/payment_intents", request))
        // One of the two does not serve the account, and forwards all of its requests.
        const first = send(runners[0]!)
        await until("all have begun", async () => {
          const { data } = await live.get(runners[1]!, "payment_intents?limit=100")
          return data.length === WAITING
        })
        const second = send(runners[1]!)
        for (const runner of runners) {
          const asked = performance.now()
          await live.get(runner, `payment_methods/${method.id}`)
          assert.isBelow(performance.now() - asked, 5000)
        }
        gateway.signal("SIGCONT")
        const [answers, others] = await Promise.all([Promise.all(first), Promise.all(second)])
        for (const [i, answer] of answers.entries()) {
          assert.deepStrictEqual(outcomeOf(answer), [200, "succeeded"])
          assert.strictEqual(others[i]!.text, answer.text)
          assert.strictEqual(approvedAt(gateway, answer.body.id, "authorize"), 1)
        }
      })
    })
  )
})

describe("a sandbox gateway in test mode", () => {
  it.live("takes the place of the simulator, with the test environment's clock", () =>
    Effect.gen(function* () {
      const [server, gateway] = yield* shop("test")
      yield* Effect.promise(async () => {
        const paid = await server.post("/v1/payment_intents", terms("tok_approve"))
        assert.strictEqual(paid.status, "succeeded")
        assert.strictEqual(approvedAt(gateway, paid.id, "authorize"), 1)
        const body = { amount: 2000, currency: "usd", confirm: true, payment_method: "pm_card_visa" }
        const simulated = await server.request("POST", "/v1/payment_intents", { body })
        assert.deepStrictEqual(outcomeOf(simulated), [400, "parameter_invalid"])
        const pending = await server.post("/v1/payment_intents", terms("tok_pending"))
        assert.strictEqual(pending.status, "processing")
        await until("the gateway has settled the payment", () => approvedAt(gateway, pending.id, "authorize") === 1, 30)
        await server.post("/v1/test_helpers/clock/advance", { seconds: 60 })
        const isPaid = async () => (await server.get(`/v1/payment_intents/${pending.id}`)).status === "succeeded"
        await until("a look has found that", isPaid, 30)
      })
    })
  )
})

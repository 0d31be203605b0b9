/**
 * Messages of processors (semantics gateways.notifications): their signature, their refusals, the look that they cause,
 * and the process that serves the account.
 */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { Effect, Latch, Layer, type Redacted } from "effect"
import { randomBytes } from "node:crypto"
import type { Operation } from "../../src/domain/Operation.ts"
import * as StandardWebhooks from "../../src/domain/StandardWebhooks.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import { OPERATION, type OperationHidden, PAYMENT_INTENT } from "../../src/payments/shared/Documents.ts"
import { OperationDispatcher } from "../../src/payments/lifecycles/OperationDispatcher.ts"
import { Processors } from "../../src/payments/processing/Processor.ts"
import { simulator } from "../../src/payments/processing/Simulator.ts"
import * as HttpProcessor from "../../src/processors/protocol/HttpProcessor.ts"
import { exchangeWith, OTHER, SECRET } from "../processors/protocol/Calls.ts"
import type { Keys } from "../support/fixtures/Merchants.ts"
import { basic } from "../support/HttpExchange.ts"
import * as MemoryFleet from "../support/MemoryFleet.ts"

const PRC = "prc_000000000000000000000001"
const FOREIGN = "prc_000000000000000000000002"
const ROLLED = [SECRET, OTHER]
const UNKNOWN_SECRET = `whsec_${Buffer.alloc(32, 9).toString("base64")}`

/** The looks that messages have caused, and what each comes to. */
const looks: Array<{ readonly account: string; readonly operation: string; readonly by: string }> = []
let heard: Effect.Effect<boolean> = Effect.succeed(true)
/** The operations that messages have caused to be taken in, and what each comes to. */
const adoptions: Array<object> = []
let adopted: "adopted" | "nothing" | "unheard" = "adopted"

const { exchange } = exchangeWith(() => ({ kind: "lost", why: "nothing is asked" }))
const remote = (id: string) => HttpProcessor.make({ id, url: "https://gateway.example", secrets: ROLLED, exchange })
const processors = new Map([PRC, FOREIGN].map((id) => [id, remote(id)]))

const services = Layer.merge(
  Layer.succeed(Processors, {
    of: () => simulator,
    atOnce: () => simulator,
    byId: (id) => processors.get(id) ?? null,
    mayBegin: () => true
  }),
  Layer.succeed(OperationDispatcher, {
    reconcile: () => Effect.die("not reconciled"),
    adopt: (account, made, by) =>
      Effect.sync(() => {
        adoptions.push({ account, ...made, by })
        return adopted
      }),
    look: (account, operation, by) =>
      Effect.suspend(() => {
        looks.push({ account, operation, by })
        return heard
      })
  })
)

const operationOf = (id: string, payment: string, part: Partial<Operation>): Operation => ({
  id,
  object: "operation",
  kind: "authorize",
  status: "waiting",
  outcome: null,
  resolved_by: null,
  payment_intent: payment,
  refund: null,
  processor: PRC,
  reference: null,
  amount: 2000,
  currency: "usd",
  created: 0,
  updated: 0,
  livemode: false,
  ...part
})

const HIDDEN: OperationHidden = {
  cause: "request",
  request: {
    token: "tok_1",
    reference: null,
    capture: "automatic",
    authenticated: false,
    offSession: false,
    returnUrl: null,
    customer: null,
    description: null,
    descriptor: null,
    billingDetails: null,
    begunAt: 0
  },
  returnUrl: null,
  source: null,
  futureUsage: null,
  cancellationReason: null,
  refund: null,
  answers: null,
  since: 0,
  begunAt: 0,
  challenged: null,
  asks: false,
  sealedChallenge: null,
  announced: false,
  evidence: []
}

describe("gateways.notifications: a message to a processor's address", () => {
  let fleet: MemoryFleet.MemoryFleet
  let keys: Keys
  let payment: string
  let account: string
  beforeAll(async () => {
    fleet = await MemoryFleet.start(2, { processors: services })
    keys = await fleet.merchant()
    account = `${keys.merchantId}:test`
    payment = await newPayment()
  })
  afterAll(() => fleet.close())
  beforeEach(() => {
    looks.length = 0
    adoptions.length = 0
    adopted = "adopted"
    heard = Effect.succeed(true)
  })

  const newPayment = async (): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${fleet.all[0]!.port}/v1/payment_intents`, {
      method: "POST",
      headers: {
        authorization: basic(keys.secretTest),
        "content-type": "application/json",
        "idempotency-key": randomBytes(9).toString("hex")
      },
      body: JSON.stringify({ amount: 2000, currency: "usd" })
    })
    return ((await response.json()) as { readonly id: string }).id
  }

  /** Writes an operation, as a command of the lifecycles would. */
  const newOperation = async (part: Partial<Operation> = {}, of = payment): Promise<string> => {
    const { accounts, run } = fleet.all[fleet.ownerOf(account)]!
    const command = Effect.map(Transaction, (transaction) => {
      const id = transaction.newId("op")
      transaction.put(OPERATION, operationOf(id, of, part), HIDDEN)
      return id
    })
    return run(accounts.run(account, command))
  }

  interface Sending {
    readonly to?: string
    readonly runner?: number
    readonly secret?: Redacted.Redacted | string
    readonly headers?: Readonly<Record<string, string>>
    /** Seconds between the signature's time and now. */
    readonly age?: number
  }

  const send = async (
    message: unknown,
    { age = 0, headers = {}, runner = 0, secret = SECRET, to = PRC }: Sending = {}
  ) => {
    const body = typeof message === "string" ? message : JSON.stringify(message)
    const time = Math.floor(Date.now() / 1000) - age
    const signed =
      secret === UNKNOWN_SECRET
        ? { "webhook-id": "msg_1", "webhook-timestamp": String(time), "webhook-signature": "v1,AAAA" }
        : StandardWebhooks.sign([secret as Redacted.Redacted], "msg_1", time, body)
    const response = await fetch(`http://127.0.0.1:${fleet.all[runner]!.port}/processors/${to}/webhooks`, {
      method: "POST",
      headers: { "content-type": "application/json", ...signed, ...headers },
      body
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: JSON.parse(text) }
  }

  const updated = (id: string, of = payment) => ({ type: "operation.updated", operation: { id, payment: of } })

  it("causes one look at its operation, and is answered after it", async () => {
    const id = await newOperation()
    let isDone = false
    heard = Effect.as(
      Effect.tap(Effect.sleep(100), () => Effect.sync(() => (isDone = true))),
      true
    )
    const { body, status } = await send(updated(id))
    assert.deepStrictEqual([status, body, isDone], [200, {}, true])
    assert.deepStrictEqual(looks, [{ account, operation: id, by: "webhook" }])
  })

  it("may have either secret while they are rolled", async () => {
    const id = await newOperation()
    for (const secret of ROLLED) assert.strictEqual((await send(updated(id), { secret })).status, 200)
    assert.lengthOf(looks, 2)
  })

  it("is refused without a valid signature, whatever it contains", async () => {
    const id = await newOperation()
    for (const [message, sending] of [
      [updated(id), { secret: UNKNOWN_SECRET }],
      ["{", { secret: UNKNOWN_SECRET }],
      [updated(id), { age: 301 }],
      [updated(id), { headers: { "webhook-id": "msg_2" } }]
    ] as const) {
      const { body, status } = await send(message, sending)
      assert.deepStrictEqual([status, body.error.code], [401, "unauthorized"])
    }
    assert.isEmpty(looks)
  })

  it("is not found for an unknown processor", async () => {
    const { body, status } = await send(updated("op_1"), { to: "prc_000000000000000000000009" })
    assert.deepStrictEqual([status, body.error.code], [404, "not_found"])
  })

  it("is refused if it is no message, once its signature is valid", async () => {
    for (const message of ["{", "[]", "null", { type: 1 }, { type: "operation.updated" }, { type: "refund.created" }]) {
      const { body, status } = await send(message)
      assert.deepStrictEqual([status, body.error.code], [400, "bad_request"], JSON.stringify(message))
    }
  })

  it("of 256 KiB is read, and a longer one refused", async () => {
    const padded = (length: number) => {
      const message = { ...updated("op_1", "pi_1"), padding: "" }
      return { ...message, padding: "x".repeat(length - JSON.stringify(message).length) }
    }
    assert.strictEqual((await send(padded(262_144))).status, 200)
    assert.strictEqual((await send(padded(262_145))).status, 413)
  })

  it("about an unknown payment, or one of another processor, is accepted and causes nothing", async () => {
    const id = await newOperation()
    const theirs = await newOperation({ processor: FOREIGN })
    const other = await newPayment()
    for (const message of [
      updated("op_000000000000000000000000"),
      updated(id, "pi_000000000000000000000000"),
      updated(id, other),
      updated(payment),
      updated(theirs),
      { type: "refund.created", payment: other, refund: { reference: "r_1", amount: 5 } }
    ]) {
      assert.strictEqual((await send(message)).status, 200)
    }
    assert.strictEqual((await send(updated(id), { to: FOREIGN })).status, 200)
    assert.isEmpty(looks)
  })

  it("about a refund causes looks at the refunds of the payment that have no outcome", async () => {
    const of = await newPayment()
    const created = { type: "refund.created", payment: of, refund: { reference: "r_1", amount: 500 } }
    await newOperation({ status: "final" }, of)
    await newOperation({ status: "final", kind: "refund" }, of)
    assert.strictEqual((await send(created)).status, 200)
    assert.isEmpty(looks)
    const open = await newOperation({ status: "unresolved", kind: "refund" }, of)
    assert.strictEqual((await send(created)).status, 200)
    assert.deepStrictEqual(
      looks.map(({ operation }) => operation),
      [open]
    )
  })

  describe("gateways.refunds: about a refund that none of Till's operations is", () => {
    const refunded = (of: string, reference = "r_1") => {
      return { type: "refund.created", payment: of, refund: { reference, amount: 500 } }
    }

    /** A payment of the processor. */
    const remotePayment = async (refunds?: ReadonlyArray<string>, processor = PRC): Promise<string> => {
      const id = await newPayment()
      const { accounts, run } = fleet.all[fleet.ownerOf(account)]!
      const remote = { processor, reference: "gw_1", waiting: null, ...(refunds !== undefined && { refunds }) }
      const command = Effect.flatMap(Transaction, (transaction) =>
        Effect.map(transaction.get(PAYMENT_INTENT, id), (found) =>
          transaction.put(PAYMENT_INTENT, found!.value, { ...found!.hidden, remote })
        )
      )
      await run(accounts.run(account, command))
      return id
    }

    it.each([
      ["adopted", 200],
      ["nothing", 200],
      ["unheard", 503]
    ] as const)("causes it to be taken in once its open refunds were looked at: %s", async (outcome, status) => {
      adopted = outcome
      const of = await remotePayment()
      const open = await newOperation({ status: "unresolved", kind: "refund", reference: "r_0" }, of)
      assert.strictEqual((await send(refunded(of))).status, status)
      assert.deepStrictEqual(
        looks.map(({ operation }) => operation),
        [open]
      )
      const made = { processor: PRC, id: "r_1", isLost: false, kind: "refund", payment: of, amount: 500 }
      assert.deepStrictEqual(adoptions, [{ account, ...made, by: "webhook" }])
    })

    it("causes nothing if the refund is one of Till's, was taken in before, or its payment is another processor's", async () => {
      const of = await remotePayment(["r_2"])
      await newOperation({ status: "final", kind: "refund", reference: "r_1" }, of)
      const theirs = await remotePayment([], FOREIGN)
      for (const message of [refunded(of), refunded(of, "r_2"), refunded(theirs)]) {
        assert.strictEqual((await send(message)).status, 200)
      }
      assert.isEmpty(adoptions)
    })

    it("is to be sent again while the processor gives no word about another refund", async () => {
      const of = await remotePayment()
      await newOperation({ status: "open", kind: "refund" }, of)
      heard = Effect.succeed(false)
      assert.strictEqual((await send(refunded(of))).status, 503)
      assert.isEmpty(adoptions)
    })
  })

  it("about a dispute, or of another type, is accepted and causes nothing", async () => {
    for (const message of [
      { type: "dispute.updated", dispute: { reference: "dp_1", payment } },
      { type: "payout.paid", payout: {} }
    ]) {
      assert.strictEqual((await send(message)).status, 200)
    }
    assert.isEmpty(looks)
  })

  it("is to be sent again if the processor gives no word", async () => {
    const id = await newOperation()
    heard = Effect.succeed(false)
    const { body, headers, status } = await send(updated(id))
    assert.deepStrictEqual([status, body.error.code, headers.get("retry-after")], [503, "unavailable", "1"])
  })

  it("is to be sent again if the look takes longer than 10 seconds", { timeout: 60_000 }, async () => {
    const id = await newOperation()
    heard = Effect.never
    const before = performance.now()
    assert.strictEqual((await send(updated(id))).status, 503)
    assert.isAtLeast(performance.now() - before, 9900)
  })

  it("is to be sent again while 64 messages of its processor are looked at", async () => {
    const id = await newOperation()
    const open = Latch.makeUnsafe(false)
    heard = Effect.as(open.await, true)
    // Each process counts its own.
    await fleet.move(account, 0)
    const sent = Array.from({ length: 65 }, () => send(updated(id)))
    const first = await Promise.race(sent)
    assert.strictEqual(first.status, 503)
    open.openUnsafe()
    const statuses = (await Promise.all(sent)).map(({ status }) => status)
    assert.strictEqual(statuses.filter((status) => status === 200).length, 64)
    assert.strictEqual((await send(updated(id))).status, 200)
  })

  it("reaches the process that serves the account from any process", async () => {
    const id = await newOperation()
    for (const to of [0, 1]) {
      await fleet.move(account, to)
      for (const runner of [0, 1]) assert.strictEqual((await send(updated(id), { runner })).status, 200)
    }
    assert.lengthOf(looks, 4)
  })

  it("without a valid signature is counted, and refused unread after 60 a minute", async () => {
    const statuses: Array<number> = []
    // A minute of the clock may begin in between.
    for (let i = 0; i < 130; i++) statuses.push((await send("{", { secret: UNKNOWN_SECRET, runner: 1 })).status)
    assert.include(statuses, 429)
    assert.isAtLeast(statuses.indexOf(429), 60)
    const { headers, status } = await send("{", { secret: UNKNOWN_SECRET, runner: 1 })
    assert.strictEqual(status, 429)
    assert.isAbove(Number(headers.get("retry-after")), 0)
  })
})

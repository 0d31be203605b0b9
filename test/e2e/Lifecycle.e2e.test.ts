/** A merchant's sessions with the real service over HTTP: every status of a PaymentIntent. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { inParallel, walk, type Answer } from "../support/HttpExchange.ts"
import {
  family,
  KEYS,
  pause,
  prepareTill,
  signalIfThere,
  startTill,
  until,
  type TillProcess
} from "../support/TillProcess.ts"

/** Runs a session on a service of its own. */
const session = (
  name: string,
  run: (till: TillProcess) => Promise<void>,
  variables: Readonly<Record<string, string>> = {}
) =>
  // oxlint-disable-next-line vitest/expect-expect -- the sessions assert
  it.live(name, () => Effect.flatMap(startTill({ variables }), (till) => Effect.promise(() => run(till))))

const statusOf = async (till: TillProcess, id: string): Promise<string> =>
  (await till.get(`/v1/payment_intents/${id}`)).status

/** Returns the types of all events about a PaymentIntent and its charges, oldest first. */
const eventsOf = async (till: TillProcess, id: string): Promise<Array<string>> => {
  const events = (await walk(till.http, "/v1/events")).toReversed()
  const isAbout = ({ data: { object } }: Answer["body"]) => object.id === id || object.payment_intent === id
  return events.filter(isAbout).map(({ type }) => type)
}

const create = (till: TillProcess, fields: object = {}) =>
  till.post("/v1/payment_intents", { amount: 2000, currency: "usd", ...fields })

const confirm = (till: TillProcess, id: string, card: string) =>
  till.request("POST", `/v1/payment_intents/${id}/confirm`, { body: { payment_method: card } })

describe("a PaymentIntent", () => {
  session("goes through every status", async (till) => {
    await declinedAndPaid(till)
    await authenticated(till)
    await capturedInPart(till)
    await canceled(till)
    await cardSentInline(till)
  })

  session("settles by itself two seconds after it began to process", async (till) => {
    const paid = await create(till, { payment_method: "pm_card_processing_success", confirm: true })
    const failed = await create(till, { payment_method: "pm_card_processing_failure", confirm: true })
    assert.deepStrictEqual([paid.status, failed.status], ["processing", "processing"])
    await until("both are settled", async () => {
      const states = await Promise.all([statusOf(till, paid.id), statusOf(till, failed.id)])
      return !states.includes("processing")
    })
    assert.isAtLeast(Date.now(), paid.created * 1000 + 2000)
    assert.deepInclude(await till.get(`/v1/payment_intents/${paid.id}`), { status: "succeeded", amount_received: 2000 })
    const after = await till.get(`/v1/payment_intents/${failed.id}`)
    assert.deepInclude(after, { status: "requires_payment_method", payment_method: null })
    assert.deepInclude(after.last_payment_error, { code: "card_declined", decline_code: "generic_decline" })
    const begun = ["payment_intent.created", "charge.pending", "payment_intent.processing"]
    assert.deepStrictEqual(await eventsOf(till, paid.id), [...begun, "charge.succeeded", "payment_intent.succeeded"])
    assert.deepStrictEqual(await eventsOf(till, failed.id), [
      ...begun,
      "charge.failed",
      "payment_intent.payment_failed"
    ])
    const [{ data }] = [await till.get("/v1/events?type=payment_intent.succeeded")]
    assert.deepStrictEqual(data[0].request, { id: null, idempotency_key: null })
  })

  session("settles although the service was down when it should", async (till) => {
    const held = await create(till, { payment_method: "pm_card_processing_success", confirm: true })
    await till.kill("SIGKILL")
    await till.start()
    const stopped = await create(till, { payment_method: "pm_card_processing_success", confirm: true })
    assert.strictEqual((await till.kill("SIGTERM")).code, 0)
    await pause(2100)
    await till.start()
    for (const { id } of [held, stopped]) {
      await until("it is settled", async () => (await statusOf(till, id)) === "succeeded")
      const types = await eventsOf(till, id)
      assert.strictEqual(types.filter((type) => type === "payment_intent.succeeded").length, 1, types.join())
    }
  })

  session(
    "loses its hold when that expires, and only then",
    async (till) => {
      const held = await create(till, { payment_method: "pm_card_visa", confirm: true, capture_method: "manual" })
      const captured = await create(till, { payment_method: "pm_card_visa", confirm: true, capture_method: "manual" })
      assert.strictEqual(held.status, "requires_capture")
      await till.post(`/v1/payment_intents/${captured.id}/capture`)
      await until("the hold has expired", async () => (await statusOf(till, held.id)) === "canceled")
      const expired = await till.get(`/v1/payment_intents/${held.id}`)
      assert.deepInclude(expired, { cancellation_reason: "automatic", amount_capturable: 0, amount_received: 0 })
      assert.isAtLeast(expired.canceled_at, held.created + 2)
      assert.deepStrictEqual((await eventsOf(till, held.id)).slice(-2), ["charge.expired", "payment_intent.canceled"])
      assert.strictEqual(await statusOf(till, captured.id), "succeeded")
    },
    { TILL_AUTH_HOLD_SECONDS: "2" }
  )
})

describe("live PaymentIntents that are processing", () => {
  it.live("wait while their processor is not configured, and the start prints their number", () =>
    Effect.gen(function* () {
      const simulating = yield* startTill({ variables: { TILL_LIVE_PROCESSOR: "simulator" } })
      const without = yield* prepareTill({ variables: { TILL_DATA_DIR: simulating.folder } })
      yield* Effect.promise(async () => {
        const key = { key: KEYS.secretLive }
        const intents = async (till: TillProcess) =>
          (await till.get("/v1/payment_intents", key)).data.map(({ status }: Answer["body"]) => status)
        const card = { number: "4000000000006017", exp_month: 12, exp_year: 2040 }
        const payment = { amount: 2000, currency: "usd", confirm: true, payment_method_data: { type: "card", card } }
        for (let i = 0; i < 3; i++) await simulating.post("/v1/payment_intents", payment, key)
        assert.strictEqual((await simulating.kill("SIGTERM")).code, 0)
        assert.notInclude(simulating.stderr, "stay `processing`")

        await without.start()
        // The timers are due while the service runs; those of test mode fire.
        const test = await create(without, { payment_method: "pm_card_processing_success", confirm: true })
        await until("test mode settles", async () => (await statusOf(without, test.id)) === "succeeded")
        assert.deepStrictEqual(await intents(without), ["processing", "processing", "processing"])
        const refused = await without.request("POST", "/v1/payment_intents", { body: payment, ...key })
        assert.strictEqual(refused.body.error.code, "processor_not_configured")
        assert.strictEqual((await without.kill("SIGTERM")).code, 0)
        const lines = without.stderr.trim().split("\n")
        const message =
          "Live PaymentIntents that stay `processing` until TILL_LIVE_PROCESSOR names their processor again: 3"
        assert.deepStrictEqual(
          lines.map((line) => JSON.parse(line)).map(({ level, message }) => [level, message]),
          [["WARN", message]]
        )

        await simulating.start()
        const paid = ["succeeded", "succeeded", "succeeded"]
        await until("live mode settles", async () => (await intents(simulating)).join() === paid.join())
        assert.notInclude(simulating.stderr, "stay `processing`")
      })
    })
  )
})

const declinedAndPaid = async (till: TillProcess) => {
  const { id, status } = await create(till)
  assert.strictEqual(status, "requires_payment_method")
  const declined = await confirm(till, id, "pm_card_insufficient_funds")
  assert.strictEqual(declined.status, 402)
  const { error } = declined.body
  assert.deepInclude(error, { type: "payment_error", code: "card_declined", decline_code: "insufficient_funds" })
  assert.deepStrictEqual(await till.get(`/v1/payment_intents/${id}`), error.payment_intent)

  const chosen = await till.post(`/v1/payment_intents/${id}`, { payment_method: "pm_card_visa", amount: 2500 })
  assert.deepInclude(chosen, { status: "requires_confirmation", amount: 2500 })
  const paid = await till.post(`/v1/payment_intents/${id}/confirm`)
  assert.deepInclude(paid, { status: "succeeded", amount_received: 2500 })
  assert.notProperty(paid, "last_payment_error")
  assert.lengthOf(paid.charges.data, 2)
  const again = await confirm(till, id, "pm_card_visa")
  assert.deepInclude(again.body.error, { code: "payment_intent_unexpected_state", param: "id" })
  assert.deepStrictEqual(await eventsOf(till, id), [
    "payment_intent.created",
    "charge.failed",
    "payment_intent.payment_failed",
    "charge.succeeded",
    "payment_intent.succeeded"
  ])
}

const authenticated = async (till: TillProcess) => {
  const { id } = await create(till)
  const authenticate = (outcome: string) =>
    till.post(`/v1/test_helpers/payment_intents/${id}/authenticate`, { outcome })
  const challenged = (await confirm(till, id, "pm_card_3ds_required")).body
  assert.strictEqual(challenged.status, "requires_action")
  assert.include(challenged.next_action.redirect_to_url.url, `${till.baseUrl}/authenticate/${id}?client_secret=`)
  const refused = await authenticate("failure")
  assert.deepInclude(refused, { status: "requires_payment_method", payment_method: null })
  assert.strictEqual(refused.last_payment_error.code, "payment_intent_authentication_failure")
  await confirm(till, id, "pm_card_3ds_required")
  assert.deepInclude(await authenticate("success"), { status: "succeeded", amount_received: 2000 })
  assert.deepStrictEqual(await eventsOf(till, id), [
    "payment_intent.created",
    "payment_intent.requires_action",
    "payment_intent.payment_failed",
    "payment_intent.requires_action",
    "charge.succeeded",
    "payment_intent.succeeded"
  ])
}

const capturedInPart = async (till: TillProcess) => {
  const { id } = await create(till, { capture_method: "manual" })
  const held = (await confirm(till, id, "pm_card_visa")).body
  assert.deepInclude(held, { status: "requires_capture", amount_capturable: 2000, amount_received: 0 })
  const capture = `/v1/payment_intents/${id}/capture`
  const tooMuch = await till.request("POST", capture, { body: { amount_to_capture: 2001 } })
  assert.deepInclude(tooMuch.body.error, { code: "amount_too_large", param: "amount_to_capture" })
  const captured = await till.post(capture, { amount_to_capture: 700 })
  assert.deepInclude(captured, { status: "succeeded", amount: 2000, amount_capturable: 0, amount_received: 700 })
  assert.deepStrictEqual((await eventsOf(till, id)).slice(-2), ["charge.captured", "payment_intent.succeeded"])
}

const canceled = async (till: TillProcess) => {
  const { id } = await create(till, { payment_method: "pm_card_visa", confirm: true, capture_method: "manual" })
  const body = { cancellation_reason: "duplicate" }
  const after = await till.post(`/v1/payment_intents/${id}/cancel`, body)
  assert.deepInclude(after, { status: "canceled", cancellation_reason: "duplicate", amount_capturable: 0 })
  assert.isNumber(after.canceled_at)
  assert.isNumber(after.charges.data[0].released_at)
  assert.strictEqual((await confirm(till, id, "pm_card_visa")).status, 400)
  assert.deepStrictEqual((await eventsOf(till, id)).slice(-2), ["charge.updated", "payment_intent.canceled"])
}

/** The card's number is neither in answers nor in the process' output. */
const cardSentInline = async (till: TillProcess) => {
  const number = "4242424242424242"
  const { id } = await create(till)
  const card = { type: "card", card: { number, exp_month: 12, exp_year: 2040, cvc: "987" } }
  const paid = await till.post(`/v1/payment_intents/${id}/confirm`, { payment_method_data: card })
  assert.strictEqual(paid.status, "succeeded")
  assert.match(paid.payment_method, /^pm_[0-9A-Za-z]{24}$/)
  assert.notInclude(JSON.stringify(paid) + till.stdout + till.stderr, number)
}

describe("a merchant", () => {
  session("sees its lists page by page, and its environments apart", async (till) => {
    const made = await inParallel(Array.from({ length: 23 }), 8, () => create(till))
    const newestFirst = made
      .map(({ id }) => id)
      .toSorted()
      .toReversed()
    const pages: Array<Answer["body"]> = []
    for (let after = ""; ; after = `&starting_after=${pages.at(-1).next_cursor}`) {
      pages.push(await till.get(`/v1/payment_intents?limit=10${after}`))
      if (!pages.at(-1).has_more) break
      await create(till)
    }
    assert.deepStrictEqual(
      pages.map(({ data }) => data.length),
      [10, 10, 3]
    )
    assert.deepStrictEqual(
      pages.flatMap(({ data }) => data.map(({ id }: { id: string }) => id)),
      newestFirst
    )
    const back = await till.get(`/v1/payment_intents?limit=5&ending_before=${newestFirst[22]}`)
    assert.deepStrictEqual(
      back.data.map(({ id }: { id: string }) => id),
      newestFirst.slice(17, 22)
    )

    const live = { key: KEYS.secretLive }
    assert.isEmpty((await till.get("/v1/payment_intents", live)).data)
    assert.isEmpty((await till.get("/v1/events", live)).data)
    const foreign = await till.request("GET", `/v1/payment_intents/${newestFirst[0]}`, live)
    assert.strictEqual(foreign.status, 404)
    assert.deepInclude(foreign.body.error, { code: "resource_missing", param: "id" })
    const sameKey = { idempotencyKey: "one key in two environments" }
    const test = await till.post("/v1/customers", { name: "Test" }, sameKey)
    const other = await till.post("/v1/customers", { name: "Live" }, { ...live, ...sameKey })
    assert.deepStrictEqual([test.livemode, other.livemode], [false, true])
  })

  session("is refused without a valid key", async (till) => {
    for (const key of [null, "sk_test_wrong", `${KEYS.secretTest}0`, ""]) {
      const { body, headers, status } = await till.request("GET", "/v1/payment_intents", { key })
      assert.strictEqual(status, 401)
      assert.deepInclude(body.error, { type: "authentication_error", code: "authentication_failed", param: null })
      assert.include(headers["www-authenticate"], "Basic")
      if (key) assert.notInclude(JSON.stringify(body), key)
    }
  })
})

describe("a database that does not answer", () => {
  it.live("refuses what it does not get to, and loses nothing of what it has begun", () =>
    Effect.flatMap(startTill(), (till) => Effect.promise(() => overfill(till)))
  )

  it.live(
    "gets no further requests: writes are refused at once, reads are answered from memory, and readiness fails",
    () =>
      Effect.flatMap(startTill(), (till) =>
        Effect.promise(async () => {
          const known = await till.post("/v1/customers", { name: "known" })
          await till.post("/v1/customers", { name: "live" }, { key: KEYS.secretLive })
          const postgres = family(till.postgresProcessId!)
          const signalAll = (signal: NodeJS.Signals) => postgres.forEach((id) => signalIfThere(id, signal))
          signalAll("SIGSTOP")
          const create = (options: object = {}) =>
            till.request("POST", "/v1/customers", { body: { name: "more" }, ...options })
          // The statement that finds the payment belongs to another account.
          assert.strictEqual((await create({ key: KEYS.secretLive })).status, 503)
          assert.include(till.stderr, "The database hangs")
          assert.isFalse(await till.isReady())
          const refused = await create({ idempotencyKey: "refused" })
          assert.strictEqual(refused.status, 503)
          assert.strictEqual(refused.headers["retry-after"], "1")
          assert.deepStrictEqual(await till.get(`/v1/customers/${known.id}`), known)
          signalAll("SIGCONT")
          await until("it is ready again", () => till.isReady())
          const created = await create({ idempotencyKey: "refused" })
          assert.strictEqual(created.status, 200)
          assert.notProperty(created.headers, "idempotent-replayed")
          assert.include(till.stderr, "The database answers again")
        })
      )
  )
})

/** Greatest number of commands under way. */
const UNDER_WAY_MAX = 1024
const EXCESS = 400

const overfill = async (till: TillProcess) => {
  const early = await till.post("/v1/customers", { name: "early" })
  const keys = Array.from({ length: UNDER_WAY_MAX + EXCESS }, (_, i) => `queued-${i}`)
  // A connection for each request, all of them opened before the requests: the greatest number of commands has to be
  // under way long before the journal gives up on a hanging database, also on a slow machine.
  await inParallel(keys, keys.length, () => till.get("/healthz", { key: null }))
  const postgres = family(till.postgresProcessId!)
  const stopAll = (signal: NodeJS.Signals) => postgres.forEach((processId) => signalIfThere(processId, signal))
  stopAll("SIGSTOP")
  signalIfThere(till.processId, "SIGSTOP")
  let refusedEarly = 0
  let isOver = false
  const answering = inParallel(keys, keys.length, async (idempotencyKey) => {
    const answer = await till.request("POST", "/v1/customers", { body: { name: "queued" }, idempotencyKey })
    if (answer.status === 503 && !isOver) refusedEarly++
    return { idempotencyKey, answer }
  })
  await new Promise((sent) => setTimeout(sent, 1000))
  signalIfThere(till.processId, "SIGCONT")
  await until("the excess is refused", () => refusedEarly >= EXCESS)
  // Till answers reads from memory while the database hangs.
  assert.deepStrictEqual(await till.get(`/v1/customers/${early.id}`), early)
  assert.strictEqual((await till.get("/healthz", { key: null })).status, "ok")
  isOver = true
  stopAll("SIGCONT")

  const answers = await answering
  const refused = answers.filter(({ answer }) => answer.status === 503)
  for (const { answer } of refused) {
    assert.deepInclude(answer.body.error, { type: "api_error", code: "service_unavailable" })
    assert.strictEqual(answer.headers["retry-after"], "1")
  }
  const accepted = answers.filter(({ answer }) => answer.status === 200).map(({ answer }) => answer.body.id)
  assert.strictEqual(accepted.length + refused.length, keys.length)
  assert.isAbove(accepted.length, 0)
  // No accepted request is lost. The refused ones are carried out now, unless the outcome of one was unknown.
  const repeated = await inParallel(refused, 32, ({ idempotencyKey }) =>
    till.request("POST", "/v1/customers", { body: { name: "queued" }, idempotencyKey })
  )
  assert.isTrue(repeated.every(({ status }) => status === 200))
  const listed = (await walk(till.http, "/v1/customers")).map(({ id }) => id)
  assert.sameMembers(listed, [early.id, ...accepted, ...repeated.map(({ body }) => body.id)])
}

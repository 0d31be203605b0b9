/**
 * Webhooks from the real service to receivers on real sockets: signed, repeated by the schedule of the test clock, and
 * never lost while the receiver is down or after the service is killed.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { verifyWebhook } from "../../src/client/index.ts"
import { startTill, till, until, type TillProcess } from "../support/TillProcess.ts"
import { answerOf, answersWith, receiver, type RawReceiver, type Request } from "../webhooks/RawReceiver.ts"

const HOUR = 3600
/** Seconds before attempts 2 to 8 (spec: Events, Delivery): 107 hours less a few minutes. */
const SCHEDULE = [60, 300, 1800, 2 * HOUR, 8 * HOUR, 24 * HOUR, 72 * HOUR]

interface Delivery {
  readonly id: string
  readonly event: string
  readonly status: string
  readonly attempt_count: number
  readonly next_attempt_at: number | null
  readonly attempts: ReadonlyArray<{
    readonly attempt: number
    readonly started_at: number
    readonly duration_ms: number
    readonly response_status: number | null
    readonly error: string | null
  }>
}

const advance = async (server: TillProcess, seconds: number): Promise<number> =>
  (await server.post("/v1/test_helpers/clock/advance", { seconds })).now

/** Reads a whole list, newest first. */
const all = async (server: TillProcess, path: string) => {
  const found = []
  for (let after = ""; ; after = `&starting_after=${found.at(-1).id}`) {
    const page = await server.get(`${path}${path.includes("?") ? "&" : "?"}limit=100${after}`)
    found.push(...page.data)
    if (!page.has_more) return found
  }
}

const deliveriesTo = (server: TillProcess, endpoint: string): Promise<ReadonlyArray<Delivery>> =>
  all(server, `/v1/webhook_endpoints/${endpoint}/deliveries`)

const subscribe = (server: TillProcess, url: string) =>
  server.post("/v1/webhook_endpoints", { url, enabled_events: ["customer.created"] })

const remove = async (server: TillProcess, { id }: { readonly id: string }) => {
  assert.strictEqual((await server.request("DELETE", `/v1/webhook_endpoints/${id}`)).status, 200)
}

/** Waits until every delivery to an endpoint has a number of attempts. */
const attempted = (server: TillProcess, endpoint: string, attempts: number) =>
  until(`attempt ${attempts} has ended`, async () =>
    (await deliveriesTo(server, endpoint)).every(({ attempt_count }) => attempt_count === attempts)
  )

const verified = ({ body, headers }: Request, secret: string) =>
  verifyWebhook({ body, header: headers.get("x-signature"), secret })

const attemptsOf = ({ requests }: RawReceiver) => requests.map(({ headers }) => headers.get("x-webhook-attempt"))

/**
 * Answers 500, then 200: the same bytes arrive with new signatures by the wall clock, then with two secrets at once.
 */
const signs = async (server: TillProcess, there: RawReceiver) => {
  there.behaviour = answersWith(500, 200)
  const endpoint = await subscribe(server, there.url)
  const { id } = await server.post("/v1/customers", { name: 'Zoë 日本 💳 "\\/"\u2028' })
  await attempted(server, endpoint.id, 1)
  // Far beyond the receiver's tolerance of 300 s.
  await advance(server, HOUR)
  await attempted(server, endpoint.id, 2)
  const [first, second] = there.requests as [Request, Request]
  assert.deepStrictEqual(attemptsOf(there), ["1", "2"])
  assert.deepStrictEqual(second.body, first.body)
  const event = verified(first, endpoint.secret)
  assert.deepStrictEqual(verified(second, endpoint.secret), event)
  assert.deepStrictEqual([event.type, (event.data.object as { id: string }).id], ["customer.created", id])
  assert.strictEqual(first.headers.get("x-webhook-id"), event.id)
  const [delivery] = await deliveriesTo(server, endpoint.id)
  assert.strictEqual(delivery!.status, "delivered")
  assert.deepStrictEqual(
    delivery!.attempts.map(({ response_status }) => response_status),
    [500, 200]
  )

  const { secret } = await server.post(`/v1/webhook_endpoints/${endpoint.id}/roll_secret`, { expires_in: HOUR })
  assert.notStrictEqual(secret, endpoint.secret)
  await server.post("/v1/customers")
  await there.received(3)
  const { body, headers } = there.requests[2]!
  const [time, ...entries] = headers.get("x-signature")!.split(",")
  assert.strictEqual(entries.length, 2)
  for (const [entry, key, other] of [
    [entries[0], secret, endpoint.secret],
    [entries[1], endpoint.secret, secret]
  ]) {
    verifyWebhook({ body, header: `${time},${entry}`, secret: key })
    assert.throws(() => verifyWebhook({ body, header: `${time},${entry}`, secret: other }))
  }
  await remove(server, endpoint)
}

/** Eight attempts in 107 hours of the test clock, and no ninth. */
const exhausts = async (server: TillProcess, there: RawReceiver) => {
  there.behaviour = answersWith(503)
  const endpoint = await subscribe(server, there.url)
  await server.post("/v1/customers")
  for (const [i, seconds] of SCHEDULE.entries()) {
    await attempted(server, endpoint.id, i + 1)
    await advance(server, seconds + 1)
  }
  await attempted(server, endpoint.id, 8)
  const [delivery] = (await deliveriesTo(server, endpoint.id)) as [Delivery]
  assert.deepStrictEqual([delivery.status, delivery.next_attempt_at], ["exhausted", null])
  for (const [i, seconds] of SCHEDULE.entries()) {
    // Both times are whole seconds, rounded down.
    const waited = delivery.attempts[i + 1]!.started_at - delivery.attempts[i]!.started_at
    assert.isAtLeast(waited, seconds, `before attempt ${i + 2}`)
  }
  await advance(server, 200 * HOUR)
  there.behaviour = answersWith(200)
  const { id } = await server.post("/v1/customers")
  await there.received(9)
  assert.deepStrictEqual(attemptsOf(there), ["1", "2", "3", "4", "5", "6", "7", "8", "1"])
  assert.include(there.requests[8]!.body.toString(), id)
  await remove(server, endpoint)
}

/** The receiver is down for a day. Then everything that happened during it arrives. */
const outlastsDay = async (server: TillProcess, there: RawReceiver) => {
  const { port } = there
  const endpoint = await subscribe(server, there.url)
  for (const socket of there.sockets) socket.destroy()
  await new Promise((resolve) => there.server.close(resolve))
  const happen = () => Promise.all(Array.from({ length: 20 }, () => server.post("/v1/customers")))
  await happen()
  for (const hours of [1, 2, 3, 6, 12]) {
    await happen()
    const now = await advance(server, hours * HOUR)
    await until("what was due has been attempted", async () =>
      (await deliveriesTo(server, endpoint.id)).every(({ next_attempt_at }) => next_attempt_at! > now)
    )
  }
  await new Promise<void>((resolve) => there.server.listen(port, "127.0.0.1", resolve))
  await advance(server, 25 * HOUR)
  await until("all is delivered", async () =>
    (await deliveriesTo(server, endpoint.id)).every(({ status }) => status === "delivered")
  )
  const deliveries = await deliveriesTo(server, endpoint.id)
  assert.strictEqual(deliveries.length, 120)
  assert.deepStrictEqual(
    there.requests.map(({ body }) => JSON.parse(body.toString()).id).toSorted(),
    eventsOf(deliveries)
  )
  for (const { attempts } of deliveries) {
    assert.isAtLeast(attempts.length, 2)
    for (const { error } of attempts.slice(0, -1)) assert.strictEqual(error, "The connection was refused.")
  }
  await remove(server, endpoint)
}

const eventsOf = (deliveries: ReadonlyArray<Delivery>) => deliveries.map(({ event }) => event).toSorted()

/** Deliveries to a disabled or deleted endpoint are not sent until a resend is requested. */
const cancels = async (server: TillProcess, there: RawReceiver) => {
  there.behaviour = answersWith(500)
  const disabled = await subscribe(server, there.url)
  const deleted = await subscribe(server, there.url)
  await server.post("/v1/customers")
  await attempted(server, disabled.id, 1)
  await attempted(server, deleted.id, 1)
  const [event] = (await server.get("/v1/events?type=customer.created&limit=1")).data
  assert.strictEqual(event.pending_webhooks, 2)
  await server.post(`/v1/webhook_endpoints/${disabled.id}`, { status: "disabled" })
  await remove(server, deleted)
  assert.strictEqual((await server.get(`/v1/events/${event.id}`)).pending_webhooks, 0)
  const [canceled] = (await deliveriesTo(server, disabled.id)) as [Delivery]
  assert.deepStrictEqual([canceled.status, canceled.next_attempt_at], ["canceled", null])
  await advance(server, HOUR)

  there.behaviour = answersWith(200)
  await server.post(`/v1/webhook_endpoints/${disabled.id}`, { status: "enabled" })
  const resent = await server.post(`/v1/events/${event.id}/resend`, { webhook_endpoint: disabled.id })
  assert.deepStrictEqual([resent.id, resent.pending_webhooks], [event.id, 1])
  await until("it has arrived", async () => (await deliveriesTo(server, disabled.id))[0]!.status === "delivered")
  assert.strictEqual((await deliveriesTo(server, disabled.id)).length, 2)
  assert.deepStrictEqual(attemptsOf(there), ["1", "1", "1"])
  for (const { body } of there.requests) assert.deepStrictEqual(body, there.requests[0]!.body)
  await remove(server, disabled)
}

const endsClean = async (server: TillProcess) => {
  assert.deepStrictEqual(await server.kill("SIGTERM"), { code: 0, signal: null })
  const verdict = await till(["verify"], server.variables)
  assert.strictEqual(verdict.code, 0, verdict.stderr)
}

const PARTS = [signs, exhausts, outlastsDay, cancels]

const DELIVERIES = 1000
/** Numbers of arrived deliveries at which the service is killed. */
const KILLS = [200, 600]

/** Creates all customers, through the kills of the service. */
const createAll = async (server: TillProcess) => {
  let next = 0
  const worker = async () => {
    while (next < DELIVERIES) {
      const idempotencyKey = `customer-${next++}`
      await until(`${idempotencyKey} is made`, async () => {
        try {
          return (await server.request("POST", "/v1/customers", { body: {}, idempotencyKey })).status === 200
        } catch {
          return false
        }
      })
    }
  }
  await Promise.all(Array.from({ length: 16 }, worker))
}

describe("webhooks", () => {
  it.live(
    "are signed, repeated to the schedule, kept for a receiver that is down, and canceled",
    () =>
      Effect.gen(function* () {
        const server = yield* startTill()
        for (const part of PARTS) {
          const there = yield* receiver(answersWith(200))
          yield* Effect.promise(() => part(server, there))
        }
        yield* Effect.promise(() => endsClean(server))
      }),
    600_000
  )

  it.live(
    // Semantics webhooks.test_hosts.
    "of test mode reach nothing inside the network of a service that others reach, but for what it allows",
    () =>
      Effect.gen(function* () {
        const there = yield* receiver(answersWith(200))
        const variables = { HOST: "0.0.0.0" }
        const shared = yield* startTill({ variables })
        const allowing = yield* startTill({ variables: { ...variables, TILL_WEBHOOK_TEST_HOSTS: "127.0.0.0/8" } })
        yield* Effect.promise(async () => {
          const body = { url: there.url, enabled_events: ["*"] }
          const refused = await shared.request("POST", "/v1/webhook_endpoints", { body })
          assert.strictEqual(refused.status, 400)
          assert.strictEqual(refused.body.error.param, "url")
          assert.include(refused.body.error.message, "TILL_WEBHOOK_TEST_HOSTS")
          const named = await subscribe(shared, there.url.replace("127.0.0.1", "localhost"))
          await shared.post("/v1/customers")
          await attempted(shared, named.id, 1)
          const [delivery] = await deliveriesTo(shared, named.id)
          assert.deepInclude(delivery!.attempts[0], {
            response_status: null,
            error: "The address of the host is not allowed."
          })
          assert.strictEqual(there.sockets.length, 0)

          await subscribe(allowing, there.url)
          await allowing.post("/v1/customers")
          await there.received(1)
        })
      })
  )

  it.live(
    "are not lost when the service is killed in the middle of a thousand",
    () =>
      Effect.gen(function* () {
        const server = yield* startTill()
        const there = yield* receiver(({ socket }) => socket.write(answerOf(200)))
        yield* Effect.promise(async () => {
          const endpoint = await subscribe(server, there.url)
          const creating = createAll(server)
          for (const received of KILLS) {
            await there.received(received)
            await server.kill("SIGKILL")
            await server.start()
          }
          await creating
          await until("all is delivered", async () => {
            const deliveries = await deliveriesTo(server, endpoint.id)
            return deliveries.every(({ status }) => status === "delivered")
          })
          const events = await all(server, "/v1/events?type=customer.created")
          assert.strictEqual(events.length, DELIVERIES)
          const ids = events.map(({ id }) => id as string).toSorted()
          assert.deepStrictEqual(eventsOf(await deliveriesTo(server, endpoint.id)), ids)
          const arrived = new Set(there.requests.map((request) => verified(request, endpoint.secret).id))
          assert.deepStrictEqual([...arrived].toSorted(), ids)
          await endsClean(server)
        })
      }),
    600_000
  )
})

/**
 * Three runners of the last release are replaced by the present one, one after the other and under load, and no request
 * fails (semantics runners.compatibility, operation.stop). Each new process takes the address, the data folder and the
 * environment of the old one, as docs/upgrading.md describes.
 *
 * A release that cannot run beside the one before fails here. It needs another way in docs/upgrading.md, and in this
 * test: all processes of the old one end before the first of the new one serves.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Balancer, type Task } from "../support/Balancer.ts"
import { lastRelease } from "../support/LastRelease.ts"
import { prepareFleet } from "../support/TillFleet.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { KEYS, launchOf, pause, till, TillProcess, until } from "../support/TillProcess.ts"
import { answersWith, receiver } from "../webhooks/RawReceiver.ts"

const RUNNERS = 3
const CLIENTS = 8
const TEST_MILLIS_MAX = 900_000
/** Load before the first process ends, between two of them, and after the last, in milliseconds. */
const BETWEEN_MILLIS = 1500

/** Requests of a shop, each answer read again from the next runner. */
const sell = async (made: Map<string, string>, { fail, key, name, send }: Task): Promise<void> => {
  const options = { key, idempotencyKey: name }
  const customer = await send("POST", "/v1/customers", { ...options, body: { name, email: "jenny@example.com" } })
  if (customer === undefined) return
  made.set(customer.id, key)
  const payment = {
    amount: 2000,
    currency: "usd",
    customer: customer.id,
    payment_method: "pm_card_visa",
    confirm: true
  }
  const isTest = key === KEYS.secretTest
  const paid = isTest
    ? await send("POST", "/v1/payment_intents", { key, idempotencyKey: `${name}/payment`, body: payment })
    : undefined
  if (paid !== undefined) {
    made.set(paid.id, key)
    const again = await send("POST", "/v1/payment_intents", { key, idempotencyKey: `${name}/payment`, body: payment })
    if (again !== undefined && again.id !== paid.id) fail(`${name} has paid twice: ${paid.id} and ${again.id}`)
    const found = await send("GET", `/v1/payment_intents?customer=${customer.id}`, { key })
    if (found !== undefined && found.data[0]?.status !== "succeeded") fail(`${paid.id} is not listed as paid`)
  }
  const read = await send("GET", `/v1/customers/${customer.id}`, { key })
  if (read !== undefined && read.name !== name) fail(`${customer.id} is ${read.name}, not ${name}`)
}

const pathOf = (id: string) => (id.startsWith("cus_") ? `/v1/customers/${id}` : `/v1/payment_intents/${id}`)

/** Runners of the last release, at the addresses of the present ones, which take their place. */
const fleets = Effect.gen(function* () {
  const release = lastRelease(yield* temporaryFolder())
  const present = yield* prepareFleet(RUNNERS)
  const old = yield* Effect.forEach(present, ({ folder, port, variables }) =>
    Effect.acquireRelease(
      Effect.sync(
        () => new TillProcess({ ...launchOf(folder, port, variables), command: [...release.command, "serve"] })
      ),
      (runner) => Effect.promise(() => runner.destroy())
    )
  )
  return { release, old, present }
})

describe("runners.compatibility: three runners of the last release", () => {
  it.live(
    "are replaced by the present one, one after the other, without a failed request",
    () =>
      Effect.gen(function* () {
        const { old, present, release } = yield* fleets
        const there = yield* receiver(answersWith(200))
        yield* Effect.promise(async () => {
          await Promise.all(old.map((runner) => runner.start()))
          const hook = { url: there.url, enabled_events: ["customer.created", "payment_intent.succeeded"] }
          await old[0]!.post("/v1/webhook_endpoints", hook)
          const balancer = new Balancer(old)
          const made = new Map<string, string>()
          const running = balancer.run(CLIENTS, (task) => sell(made, task))
          for (const [i, runner] of old.entries()) {
            await pause(BETWEEN_MILLIS)
            const before = made.size
            assert.deepStrictEqual(await runner.kill("SIGTERM"), { code: 0, signal: null }, runner.stderr)
            assert.isAbove(made.size, before, "the others have served while this one was handing over")
            await present[i]!.start()
          }
          await pause(BETWEEN_MILLIS)
          balancer.end()
          await running
          assert.deepStrictEqual(balancer.failures.slice(0, 10), [])
          assert.isAbove(made.size, 10 * CLIENTS)

          for (const [id, key] of made) {
            const runner = present[made.size % RUNNERS]!
            assert.strictEqual((await runner.get(pathOf(id), { key })).id, id)
          }
          const events = () => there.requests.map(({ body }) => JSON.parse(String(body)).id as string)
          const wanted = [...made.values()].filter((key) => key === KEYS.secretTest).length
          await until("all webhooks have arrived", () => new Set(events()).size >= wanted)
          assert.strictEqual(new Set(events()).size, events().length, "a webhook arrived twice")
          const verified = await till(["verify"], present[0]!.variables)
          assert.strictEqual(verified.code, 0, verified.stderr)
          process.stdout.write(
            `${balancer.requests} requests while ${release.title} was replaced, none failed` +
              `${balancer.excused > 0 ? ` but ${balancer.excused} on a machine that was too busy` : ""}\n`
          )
        })
      }),
    TEST_MILLIS_MAX
  )
})

/**
 * What a process that was killed was delivering is delivered by the next one, or by one that runs beside it, as soon as
 * it is known to be dead; what a living one is delivering is not (semantics 9.35).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { partitionOf } from "../../src/engine/Placement.ts"
import { freePort } from "../../src/postgres/embedded/FreePort.ts"
import { freshDatabase } from "../support/Postgres.ts"
import { prepareTill, startTill, till, until, type TillProcess } from "../support/TillProcess.ts"
import { answerOf, receiver, type RawReceiver } from "../webhooks/RawReceiver.ts"

const DELIVERIES = 20
/** Longer than the time between two looks of a process that knows of another one. */
const LOOKS_MILLIS = 7000

/** Events that a receiver takes in and leaves without an answer, so that they are under way. */
const beginDelivering = async (server: TillProcess, there: RawReceiver) => {
  await server.post("/v1/webhook_endpoints", { url: there.url, enabled_events: ["customer.created"] })
  for (let i = 0; i < DELIVERIES; i++) await server.post("/v1/customers")
  // An endpoint that does not answer is given no more at a time.
  await there.received(4)
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const eventsOf = ({ requests }: RawReceiver, from: number) =>
  new Set(requests.slice(from).map(({ headers }) => headers.get("x-webhook-id")))

/** How long it takes until all events have come, those that came before aside. */
const millisUntilAll = async (there: RawReceiver, from: number) => {
  const since = performance.now()
  while (eventsOf(there, from).size < DELIVERIES) {
    await pause(10)
    assert.isBelow(performance.now() - since, 20_000, "the deliveries have not come")
  }
  return performance.now() - since
}

const silent = () => {}

type Variables = TillProcess["variables"]

/** A process whose address for others is known. */
const runnerWith = (variables: Variables) =>
  Effect.flatMap(Effect.orDie(freePort("127.0.0.1", 0)), (port) =>
    startTill({ variables: { ...variables, TILL_RUNNER_PORT: String(port) } })
  )

const partitionsOf = async (variables: Variables): Promise<ReadonlyArray<{ id: number; url: string | null }>> =>
  JSON.parse((await till(["cluster", "--json"], variables)).stdout).partitions

/** Where partitions are served; nowhere while one of them moves. */
const placesOf = async (variables: Variables) => {
  const urls = (await partitionsOf(variables)).map(({ url }) => url)
  return urls.includes(null) ? new Set() : new Set(urls)
}

/** Where the default merchant's test account is served. */
const urlOfDefault = async (variables: Variables): Promise<string> => {
  const [merchant] = (await till(["merchants", "list"], variables)).stdout.split(" ")
  const partition = partitionOf(`${merchant}:test`)
  return (await partitionsOf(variables)).find(({ id }) => id === partition)!.url!
}

describe("the deliveries of a process that was killed", () => {
  it.live(
    "are taken up at the start of the next",
    () =>
      Effect.gen(function* () {
        const server = yield* startTill()
        const there = yield* receiver(silent)
        yield* Effect.promise(async () => {
          await beginDelivering(server, there)
          await server.kill("SIGKILL")
          there.behaviour = ({ socket }) => socket.write(answerOf(200))
          const before = there.requests.length
          await server.start()
          assert.isBelow(await millisUntilAll(there, before), 2000)
        })
      }),
    120_000
  )

  it.live(
    "are taken over by one that runs beside it, and not before it is dead",
    () =>
      Effect.gen(function* () {
        const { folder } = yield* prepareTill()
        const variables = { DATABASE_URL: Redacted.value(yield* freshDatabase), TILL_DATA_DIR: folder }
        const servers = yield* Effect.all([runnerWith(variables), runnerWith(variables)], { concurrency: 2 })
        const there = yield* receiver(silent)
        yield* Effect.promise(async () => {
          // A partition that moves takes its deliveries along, so each has its share before there are any.
          await until("both have their shares", async () => (await placesOf(variables)).size === servers.length)
          const url = await urlOfDefault(variables)
          const victim = servers.find((server) => server.variables["TILL_RUNNER_PORT"] === new URL(url).port)!
          const other = servers.find((server) => server !== victim)!
          await beginDelivering(other, there)
          await pause(LOOKS_MILLIS)
          const before = there.requests.length
          const events = there.requests.map(({ headers }) => headers.get("x-webhook-id"))
          assert.strictEqual(new Set(events).size, events.length, "none is attempted twice while its holder lives")
          there.behaviour = ({ socket }) => socket.write(answerOf(200))
          await victim.kill("SIGKILL")
          await millisUntilAll(there, before)
          assert.strictEqual((await other.kill("SIGTERM")).code, 0)
        })
      }),
    120_000
  )
})

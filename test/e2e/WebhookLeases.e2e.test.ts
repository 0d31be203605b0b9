/**
 * What a process that was killed was delivering is delivered by the next one, or by the runner that serves the account
 * from then on; what a living one is delivering is not (semantics 9.35), and a runner that ends leaves nothing to
 * repeat (9.55).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { partitionOf } from "../../src/engine/process/Placement.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { startFleet } from "../support/TillFleet.ts"
import { startTill, till, until, type TillProcess } from "../support/TillProcess.ts"
import { answerOf, receiver, type RawReceiver } from "../webhooks/RawReceiver.ts"

const DELIVERIES = 20
/** The receiver takes so long for an answer where a runner ends, which waits two seconds for it. */
const ANSWER_MILLIS = 200

const happen = async (server: TillProcess) => {
  for (let i = 0; i < DELIVERIES; i++) await server.post("/v1/customers")
}

/** Events that a receiver takes in and leaves without an answer, so that they are under way. */
const beginDelivering = async (server: TillProcess, there: RawReceiver) => {
  await server.post("/v1/webhook_endpoints", { url: there.url, enabled_events: ["customer.created"] })
  await happen(server)
  // An endpoint that does not answer is given no more at a time.
  await there.received(4)
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const eventsOf = ({ requests }: RawReceiver, from: number) =>
  new Set(requests.slice(from).map(({ headers }) => headers.get("x-webhook-id")))

/** All events come, those that came before aside; long before a lease would have come to its end. */
const allCome = (there: RawReceiver, from: number) =>
  until("all deliveries have come", () => eventsOf(there, from).size === DELIVERIES)

const silent = () => {}

type Variables = TillProcess["variables"]

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
  it.live("are taken up at the start of the next", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      const there = yield* receiver(silent)
      yield* Effect.promise(async () => {
        await beginDelivering(server, there)
        await server.kill("SIGKILL")
        there.behaviour = ({ socket }) => socket.write(answerOf(200))
        const before = there.requests.length
        await server.start()
        await allCome(there, before)
        assert.strictEqual(eventsOf(there, before).size, DELIVERIES)
      })
    })
  )

  it.live("go on from the runner that serves the account next, and from one that ends none is repeated", () =>
    Effect.gen(function* () {
      // One folder for all: commands reach the runners that are left.
      const fleet = yield* startFleet(3, { TILL_DATA_DIR: yield* temporaryFolder() })
      const runners = new Set(fleet)
      const { variables } = fleet[0]!
      const there = yield* receiver(silent)
      /** The one that serves the account, which is not among the others any more. */
      const taken = async () => {
        // A partition that moves takes its deliveries along, so each has its share before there are any.
        await until("all have their shares", async () => (await placesOf(variables)).size === runners.size)
        const { port } = new URL(await urlOfDefault(variables))
        const owner = [...runners].find((server) => server.variables["TILL_RUNNER_PORT"] === port)!
        runners.delete(owner)
        return owner
      }
      yield* Effect.promise(async () => {
        const victim = await taken()
        const [other] = [...runners] as [TillProcess, ...unknown[]]
        await beginDelivering(other, there)
        await pause(1000)
        assert.strictEqual(eventsOf(there, 0).size, there.requests.length, "none is attempted twice meanwhile")
        const before = there.requests.length
        there.behaviour = ({ socket }) => setTimeout(() => socket.write(answerOf(200)), ANSWER_MILLIS)
        await victim.kill("SIGKILL")
        await allCome(there, before)

        const ending = await taken()
        const [last] = [...runners] as [TillProcess]
        const from = there.requests.length
        await happen(last)
        assert.strictEqual((await ending.kill("SIGTERM")).code, 0)
        await allCome(there, from)
        assert.strictEqual((await last.kill("SIGTERM")).code, 0)
        assert.strictEqual(there.requests.length - from, DELIVERIES)
      })
    })
  )
})

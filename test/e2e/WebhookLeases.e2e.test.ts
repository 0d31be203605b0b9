/**
 * The open deliveries of a killed process are attempted by the next process, or by the runner that serves the account
 * next; those of a living process are not (semantics webhooks.leases), and a runner that ends leaves none to repeat
 * (semantics webhooks.handover).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { partitionOf } from "../../src/engine/process/Placement.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { startFleet } from "../support/TillFleet.ts"
import { startTill, till, until, type TillProcess } from "../support/TillProcess.ts"
import { answerOf, receiver, type RawReceiver } from "../webhooks/RawReceiver.ts"

const DELIVERIES = 20
/** Time until the receiver answers, while a runner that ends waits for two seconds. */
const ANSWER_MILLIS = 200

const happen = async (server: TillProcess) => {
  for (let i = 0; i < DELIVERIES; i++) await server.post("/v1/customers")
}

/** Causes events whose deliveries a receiver accepts and does not answer, so that they stay open. */
const beginDelivering = async (server: TillProcess, there: RawReceiver) => {
  await server.post("/v1/webhook_endpoints", { url: there.url, enabled_events: ["customer.created"] })
  await happen(server)
  // An endpoint that does not answer has only so many deliveries at a time.
  await there.received(4)
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const eventsOf = ({ requests }: RawReceiver, from: number) =>
  new Set(requests.slice(from).map(({ headers }) => headers.get("x-webhook-id")))

/** Waits until all events have arrived after the first `from` requests, long before a lease ends. */
const allCome = (there: RawReceiver, from: number) =>
  until("all deliveries have arrived", () => eventsOf(there, from).size === DELIVERIES)

const silent = () => {}

type Variables = TillProcess["variables"]

const partitionsOf = async (variables: Variables): Promise<ReadonlyArray<{ id: number; url: string | null }>> =>
  JSON.parse((await till(["cluster", "--json"], variables)).stdout).partitions

/** Returns the addresses that serve partitions; none while a partition moves. */
const placesOf = async (variables: Variables) => {
  const urls = (await partitionsOf(variables)).map(({ url }) => url)
  return urls.includes(null) ? new Set() : new Set(urls)
}

/** Returns the address that serves the default merchant's test account. */
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
      /** Removes the runner that serves the account from the others and returns it. */
      const taken = async () => {
        // A partition that moves takes its deliveries along, so the shares have to be dealt out before.
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
        assert.strictEqual(
          eventsOf(there, 0).size,
          there.requests.length,
          "none is attempted twice while its lease runs"
        )
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

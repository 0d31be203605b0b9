/**
 * Three runners on one Postgres under load, one of which is killed. The others have everything that any of the three
 * has acknowledged, once, and continue with it (semantics runners.failover).
 *
 * Replay a run with the seed that it prints: TILL_SEED=<seed> npm test -- test/e2e/Runners. (The seed determines the
 * choices, not their interleaving.)
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Judge } from "../faults/Judge.ts"
import { Receiver } from "../faults/Receiver.ts"
import { type Destination, Traffic } from "../faults/Traffic.ts"
import { Lost } from "../support/HttpExchange.ts"
import { Random, runSeed } from "../support/Random.ts"
import { prepareFleet } from "../support/TillFleet.ts"
import { till, type TillProcess } from "../support/TillProcess.ts"

const RUNNERS = 3
const CLIENTS = 6
const THINK_MILLIS_MAX = 20
/** Number of answers before the kill, and after it. */
const WORK = 120
const RECOVERY_MILLIS_MAX = 60_000

const prepared = prepareFleet(RUNNERS, {
  // Answers are the same from every runner.
  TILL_PUBLIC_URL: "http://till.test",
  TILL_WEBHOOK_TEST_HOSTS: "127.0.0.1"
})

/** Sends a client's requests to one runner, and to the next one after a lost answer. */
const startingAt = (runners: ReadonlyArray<TillProcess>, first: number): Destination => {
  let turn = first
  return {
    request: async (...request) => {
      try {
        return await runners[turn % runners.length]!.request(...request)
      } catch (error) {
        if (error instanceof Lost) turn++
        throw error
      }
    }
  }
}

/** Kills a runner under load; returns one of the others. */
const killOne = async (runners: ReadonlyArray<TillProcess>): Promise<TillProcess> => {
  await Promise.all(runners.map((runner) => runner.start()))
  const ways = runners.map((_, i) => startingAt(runners, i))
  const receiver = await Receiver.start()
  try {
    await receiver.subscribe(ways[0]!)
    const traffic = new Traffic({
      seed: runSeed,
      exchanges: ways,
      clients: CLIENTS,
      thinkMillisMax: THINK_MILLIS_MAX
    })
    traffic.start()
    await traffic.work(WORK)
    const victim = new Random(runSeed).below(RUNNERS)
    await runners[victim]!.kill("SIGKILL")
    const at = await traffic.acknowledgedAfter(performance.now(), RECOVERY_MILLIS_MAX)
    assert.isDefined(at, "no runner has taken over the killed runner's accounts")
    await traffic.work(WORK)
    await traffic.stop()
    await traffic.settle()
    const others = runners.filter((_, i) => i !== victim)
    for (const runner of others) {
      const judge = new Judge({ traffic, exchange: runner, receiver })
      await judge.checkAll()
      assert.deepStrictEqual(judge.findings.all, [], `TILL_SEED=${runSeed}`)
    }
    return others[0]!
  } finally {
    receiver.close()
  }
}

describe("one of three runners, killed under load", () => {
  it.live(
    "loses nothing that any of the three has acknowledged",
    () =>
      Effect.flatMap(prepared, (runners) =>
        Effect.promise(async () => {
          const { variables } = await killOne(runners)
          const { code, stderr } = await till(["verify"], variables)
          assert.strictEqual(code, 0, stderr)
        })
      ),
    600_000
  )
})

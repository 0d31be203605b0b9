/**
 * The whole service under 32 clients, killed repeatedly: Till, its Postgres, and both at once.
 *
 * Replay a run with the seed that it prints: TILL_SEED=<seed> npm test -- test/e2e/Kill. (The seed determines the
 * choices, not their interleaving.)
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Random, runSeed } from "../support/Random.ts"
import { runs } from "../support/Runs.ts"
import { killFamily, startTill, till, until, type TillProcess } from "../support/TillProcess.ts"
import { Traffic } from "../support/fixtures/Traffic.ts"
import { TrafficAudit } from "../support/fixtures/TrafficAudit.ts"

/** A third of the rounds for each victim. */
const ROUNDS = runs(Number(process.env["TILL_KILL_ROUNDS"] ?? 9), 3)
/** A round takes five seconds on a quiet machine, and more beside browsers. */
const MILLIS_MAX = 600_000 + ROUNDS * 20_000
const VICTIMS = ["till", "postgres", "both"] as const

describe("kill -9 under load", () => {
  it.live(
    "loses nothing and doubles nothing",
    () =>
      Effect.gen(function* () {
        const server = yield* startTill()
        yield* Effect.promise(() => killRounds(server))
      }),
    MILLIS_MAX
  )
})

const killRounds = async (server: TillProcess): Promise<void> => {
  const random = new Random(runSeed)
  const traffic = new Traffic(server.http, runSeed)
  const shared = await shareSome(server, traffic)
  const audit = new TrafficAudit(traffic, shared)
  for (let round = 1; round <= ROUNDS; round++) {
    const victim = VICTIMS[round % VICTIMS.length]!
    await (victim === "postgres" ? killPostgres(server, traffic, random) : killTill(server, traffic, random, victim))
    await until("every open request is answered", () => traffic.settle())
    noProblems(`after round ${round}, which killed ${victim}`, await audit.checkNew())
  }
  noProblems("at the end", await audit.checkAll())
  assert.deepStrictEqual(await server.kill("SIGTERM"), { code: 0, signal: null })
  const verified = await till(["verify"], server.variables)
  assert.strictEqual(verified.code, 0, verified.stderr)
  assert.match(verified.stdout, /^\d+ records of 2 accounts: the journal is whole and the views agree with it; .+\.\n$/)
  console.log(
    `${ROUNDS} kills: ${traffic.deeds.length} changes, ${traffic.lost} answers lost, ${traffic.unavailable} times 503, ` +
      `${audit.eventCount} events. ${verified.stdout.trim()}`
  )
}

const noProblems = (when: string, problems: ReadonlyArray<string>) => {
  if (problems.length > 0) throw new Error(`TILL_SEED=${runSeed}, ${when}:\n${problems.join("\n")}`)
}

/** Creates PaymentIntents that all clients change; returns the keys of the requests. */
const shareSome = async (server: TillProcess, traffic: Traffic): Promise<Array<string>> => {
  const keys = Array.from({ length: 24 }, (_, i) => `shared-${i}`)
  for (const idempotencyKey of keys) {
    const payment = await server.post("/v1/payment_intents", { amount: 500, currency: "eur" }, { idempotencyKey })
    traffic.shared.set(payment.id, new Set([JSON.stringify(payment)]))
  }
  return keys
}

/** Lets the clients work for a while, independently of the machine's speed. */
const someWork = async (traffic: Traffic, random: Random) => {
  const enough = traffic.deeds.length + random.integer(50, 400)
  await until("the clients have done their work", () => traffic.deeds.length >= enough)
}

const killTill = async (server: TillProcess, traffic: Traffic, random: Random, victim: "till" | "both") => {
  let isDead = false
  const working = traffic.run(() => isDead)
  await someWork(traffic, random)
  const postgres = server.postgresProcessId
  if (victim === "both") killFamily(postgres!)
  await server.kill("SIGKILL")
  isDead = true
  await working
  await server.start()
  if (victim === "till") assert.strictEqual(server.postgresProcessId, postgres, "the Postgres was not adopted")
}

/** Till alone has to notice the kill, answer 503, and start its Postgres again. */
const killPostgres = async (server: TillProcess, traffic: Traffic, random: Random) => {
  let isOver = false
  const working = traffic.run(() => isOver)
  await someWork(traffic, random)
  const { processId } = server
  const [lost, postgres] = [traffic.lost, server.postgresProcessId!]
  killFamily(postgres)
  await until("there is another Postgres", () => ![undefined, postgres].includes(server.postgresProcessId))
  await until("Till is ready again", () => server.isReady())
  await someWork(traffic, random)
  isOver = true
  await working
  assert.strictEqual(server.processId, processId)
  assert.strictEqual(traffic.lost, lost, "Till lost answers although only its Postgres was killed")
}

/**
 * The real service under far more connections than it can answer: it keeps its pace, refuses the rest, serves another
 * merchant during the flood, and has everything that it has acknowledged once (semantics limits.queue,
 * limits.refusals).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import * as Path from "node:path"
import type { FloodPlan, FloodReport } from "../support/FloodProcess.ts"
import { KEYS, startTill, till, type TillProcess } from "../support/TillProcess.ts"

/** More than a quick machine answers in a second. */
const CONNECTIONS = 12_000
const SECONDS = 4

const flood = (plan: FloodPlan): Promise<FloodReport> =>
  new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [Path.resolve(import.meta.dirname, "../support/FloodProcess.ts"), JSON.stringify(plan)],
      { stdio: ["ignore", "pipe", "inherit"] }
    )
    let output = ""
    child.stdout.on("data", (chunk) => (output += String(chunk)))
    child.once("error", reject)
    child.once("close", (code) =>
      code === 0 ? resolve(JSON.parse(output) as FloodReport) : reject(new Error(`The flood ended with ${code}`))
    )
  })

const idsOf = async (server: TillProcess, key: string): Promise<Array<string>> => {
  const ids: Array<string> = []
  for (let after = "", hasMore = true; hasMore;) {
    const { data, has_more } = await server.get(`/v1/payment_intents?limit=100${after}`, { key })
    ids.push(...data.map(({ id }: { readonly id: string }) => id))
    after = `&starting_after=${ids.at(-1)}`
    hasMore = has_more
  }
  return ids
}

describe("a flood of requests", () => {
  it.live("is served at the service's pace, and nothing acknowledged is lost or doubled", () =>
    Effect.flatMap(startTill(), (server) => Effect.promise(() => surviveFlood(server)))
  )
})

const surviveFlood = async (server: TillProcess): Promise<void> => {
  const body = { amount: 1000, currency: "eur" }
  const neighbours: Array<string> = []
  const end = { isOver: false }
  const flooding = flood({
    port: server.port,
    apiKey: KEYS.secretTest,
    connections: CONNECTIONS,
    seconds: SECONDS,
    path: "/v1/payment_intents",
    body,
    ids: true
  }).finally(() => (end.isOver = true))
  while (!end.isOver) neighbours.push((await server.post("/v1/payment_intents", body, { key: KEYS.secretLive })).id)
  const { accepted, ids, lost, malformed, refused, statuses } = await flooding

  // A POST without a 200 throws, so no request of the other merchant was refused.
  assert.isAbove(neighbours.length, 0)
  assert.deepStrictEqual(malformed, [])
  assert.strictEqual(lost, 0)
  assert.includeMembers(["200", "503"], Object.keys(statuses))
  assert.isAbove(statuses[503] ?? 0, 0)
  assert.isAbove(ids.length, 0)
  assert.sameMembers(await idsOf(server, KEYS.secretTest), [...ids])
  assert.sameMembers(await idsOf(server, KEYS.secretLive), neighbours)
  assert.strictEqual((await server.post("/v1/payment_intents", body)).object, "payment_intent")
  // Refusals are logged now and then, not one by one.
  assert.isBelow(server.stderr.split("\n").length, 100)
  assert.deepStrictEqual(await server.kill("SIGTERM"), { code: 0, signal: null })
  const verified = await till(["verify"], server.variables)
  assert.strictEqual(verified.code, 0, verified.stderr)
  console.log(
    `${CONNECTIONS} connections, ${SECONDS} s: ${ids.length} created in ${accepted.p50.toFixed(0)} ms ` +
      `(p99 ${accepted.p99.toFixed(0)}), ${statuses[503]} refused after ${refused.p50.toFixed(0)} ms; ` +
      `a neighbour created ${neighbours.length}`
  )
}

/**
 * Every operation of the contract, with requests generated from its document: valid ones, and invalid ones of many
 * kinds. No request gets a 5xx, every answer is declared by its operation and has its declared form, and every
 * operation succeeds sometimes.
 *
 * `TILL_SEED` replays a run, `TILL_FUZZ_REQUESTS` makes a longer one; a failure names the seed and the request.
 */
import "effect/schema/SchemaJITCompiler/enable"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Document from "../../src/api/openapi/Document.ts"
import { assertContracted, documentedBy } from "../support/ContractAnswers.ts"
import { ContractFuzz, type FuzzRequest, type Preparation, type Target } from "../support/ContractFuzz.ts"
import { Random, runSeed } from "../support/Random.ts"
import { begin } from "../support/fixtures/Operations.ts"
import { layerFreshLog } from "../support/RequestLog.ts"
import { countRuns, runs } from "../support/Runs.ts"
import { assertEnvelope, assertError, assertHeaders } from "./Assertions.ts"
import { type MemoryTill, type Reply, start } from "../support/MemoryTill.ts"

const REQUESTS = runs(Number(process.env["TILL_FUZZ_REQUESTS"] ?? 5000))

let server: MemoryTill
beforeAll(async () => {
  server = await start({ requestLog: layerFreshLog({ batchMillis: 10 }) })
})
afterAll(() => server.close())

const document = Document.make("https://pay.example.test")

const assertDocumented = documentedBy(document)

/** A header section of more than 16 KiB is refused before authentication: it is filled with other headers. */
const PATH_BYTES_MIN = 15_000

const assertAnswered = (target: Target, { path }: FuzzRequest, reply: Reply, isSecret: boolean) => {
  assert.isBelow(reply.status, 500)
  if (reply.status === 431) {
    assert.isAbove(path.length, PATH_BYTES_MIN)
    return assertError(reply, 431, "request_headers_too_large")
  }
  assert.property(target.operation.responses, String(reply.status))
  if (reply.status !== 200) {
    assertEnvelope(reply)
    return assertDocumented(target, reply)
  }
  assertHeaders(reply)
  assertDocumented(target, reply)
  // A publishable key sees a part of the object only.
  if (isSecret) assertContracted(target, reply.body)
}

interface Keys {
  test: string
  live: string
  publishable: string
}

/** A rolled key may end immediately, so the caller that rolled it continues with the new one. */
const adoptKey = (keys: Keys, { body }: Reply): void => {
  if (body?.object !== "api_key" || typeof body.secret !== "string") return
  if (body.type === "publishable") keys.publishable = body.secret
  else if (body.livemode) keys.live = body.secret
  else keys.test = body.secret
}

const keyFor = (keys: Keys, random: Random): string => {
  const choice = random.next()
  return choice < 0.9 ? keys.test : choice < 0.95 ? keys.live : keys.publishable
}

/** Begins an operation in live mode, which no request of the contract can. Nothing wipes it there. */
const operationOf = async ({ live }: Keys): Promise<Reply["body"]> => {
  const { body } = await server.request("POST", "/v1/customers", { key: live, body: {} })
  const shop = { accounts: server.accounts, merchantId: body.merchant_id, mode: "live" } as const
  const { operation } = await begin(shop)
  return (await server.request("GET", `/v1/operations/${operation}`, { key: live })).body
}

const send = (target: Target, { body, headers, idempotencyKey, path }: FuzzRequest, key: string): Promise<Reply> =>
  server.request(target.method, path, { key, headers, idempotencyKey, ...(body !== undefined && { body }) })

describe("fuzz", () => {
  it(
    `answers ${REQUESTS} requests as the contract declares`,
    async () => {
      const random = new Random(runSeed)
      const fuzz = new ContractFuzz(document, random)
      const merchant = await server.merchant()
      const keys: Keys = {
        test: merchant.secretTest,
        live: merchant.secretLive,
        publishable: merchant.publishableTest
      }
      const operation = await operationOf(keys)
      fuzz.learn(operation)
      const tally = new Map(fuzz.targets.map((target) => [target, { sent: 0, succeeded: 0 }]))
      // Creates objects first, because most requests need some.
      const creating = fuzz.targets.filter(({ idPrefix, method }) => method === "POST" && idPrefix === undefined)
      // Mostly wipes other merchants, because without objects most requests fail.
      const { secretTest: other } = await server.merchant()
      const progress = { sent: 0 }
      const exchange = async (target: Target, request: FuzzRequest, key: string, isRight = false): Promise<Reply> => {
        const reply = await send(target, request, key)
        try {
          assertAnswered(target, request, reply, key.startsWith("sk_"))
          if (isRight) assert.strictEqual(reply.status, 200)
        } catch (cause) {
          const what = `TILL_SEED=${runSeed}, request ${progress.sent}: ${target.method} ${JSON.stringify(request)}`
          throw new Error(`${what} was answered with ${reply.status} ${reply.text}`, { cause })
        }
        if (key !== other && reply.body?.object === "test_helpers.data") {
          fuzz.forget()
          fuzz.learn(operation)
        }
        fuzz.learn(reply.body)
        adoptKey(keys, reply)
        const count = tally.get(target)!
        progress.sent++
        count.sent++
        if (reply.status === 200) count.succeeded++
        return reply
      }
      const prepare = async (preparation: Preparation): Promise<string> => {
        const { of, path } = preparation
        const isOf = (template: string) => new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`, "u").test(path)
        const creator = fuzz.targets.find((target) => target.method === "POST" && isOf(target.path))!
        const request = fuzz.prepare(preparation, of === undefined ? "" : await prepare(of))
        return (await exchange(creator, request, keys.test, true)).body.id
      }
      const approach = async (target: Target): Promise<void> => {
        const preparation = fuzz.preparation(target)
        if (preparation !== undefined) {
          const id = await prepare(preparation)
          await exchange(target, fuzz.requestPrepared(target, preparation, id), keys.test, true)
          return
        }
        const isOther = target.path === "/v1/test_helpers/data" && random.chance(0.9)
        await exchange(target, fuzz.request(target), isOther ? other : keyFor(keys, random))
      }
      countRuns(REQUESTS)
      while (progress.sent < REQUESTS) {
        await approach(random.pick(progress.sent < 100 || random.chance(0.25) ? creating : fuzz.targets))
      }
      // Some seeds give an operation few requests, or no success, among so many others; alone it must have some.
      for (const [target, count] of tally) {
        const isRare = () => count.succeeded === 0 || count.sent <= 10
        for (let more = 0; more < 300 && isRare(); more++) await approach(target)
      }
      const counts = [...tally].map(([{ method, path }, { sent, succeeded }]) => ({
        route: `${method} ${path}`,
        sent,
        succeeded
      }))
      const successes = counts.reduce((sum, { succeeded }) => sum + succeeded, 0)
      const never = counts.filter(({ succeeded }) => succeeded === 0).map(({ route }) => route)
      console.log(
        `Fuzz: ${REQUESTS} requests to ${counts.length} operations, ${successes} successes; ` +
          `without any: ${never.join(", ") || "none"}`
      )
      for (const { route, sent } of counts) assert.isAbove(sent, 10, route)
      // If no request succeeded, the test would prove nothing.
      assert.isAbove(successes, REQUESTS / 5)
      assert.deepStrictEqual(never, [])
    },
    600_000 + 10 * REQUESTS
  )
})

/**
 * Clients of the simulated service: they repeat a request with its key until it has a response, as the contract
 * suggests, and some send it twice anyway. A repetition must get the first response, byte for byte.
 */
import { assert } from "@effect/vitest"
import { parseJson } from "../../src/json/JsonParse.ts"
import type { Random } from "../support/Random.ts"
import { post, type Reply, type Wire } from "../models/Wire.ts"
import type { Answer, Request } from "./Process.ts"

/** The wait before a repetition, by the test clock. */
const AGAIN_MILLIS = 20
/** The attempts after which a request counts as unanswered. */
const ATTEMPTS_MAX = 2000

export interface Surroundings {
  readonly random: Random
  /** Sends a request once; undefined if the response was lost. */
  readonly send: (request: Request) => Promise<Answer | undefined>
  readonly sleep: (millis: number) => Promise<void>
  /** The clock that measures the clients' waits, in milliseconds. */
  readonly now?: () => number
}

export class Clients {
  repetitions = 0
  /** The longest time until a response, in milliseconds. */
  longestWait = 0
  #keys = 0
  /** URLs of objects that have been deleted. */
  readonly #deleted = new Set<string>()
  readonly #surroundings: Surroundings

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings
  }

  /** Sends a request, with one key, until it has a response. */
  async ask(request: Omit<Request, "idempotencyKey">): Promise<Reply> {
    const { random } = this.#surroundings
    const idempotencyKey = request.method === "POST" ? `key-${this.#keys++}` : undefined
    const asked = { ...request, idempotencyKey }
    const isDoubled = idempotencyKey !== undefined && random.chance(0.2)
    const [answer, other] = await Promise.all([this.#askUntil(asked), isDoubled ? this.#askUntil(asked) : undefined])
    for (const again of [other, random.chance(0.1) ? await this.#askUntil(asked) : undefined]) {
      if (again === undefined || idempotencyKey === undefined || !isKept(answer)) continue
      this.repetitions++
      assert.deepStrictEqual(
        { status: again.status, text: again.text },
        { status: answer.status, text: answer.text },
        `${request.method} ${request.url} was answered otherwise the second time`
      )
    }
    return { status: answer.status, body: parseJson(answer.text) }
  }

  async #askUntil(request: Request): Promise<Answer> {
    const { now = () => 0, send, sleep } = this.#surroundings
    const since = now()
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const answer = await send(request)
      if (answer !== undefined && answer.status !== 503 && answer.status !== 409) {
        this.longestWait = Math.max(this.longestWait, now() - since)
        assert.notInclude(answer.text, `"code":"internal_error"`, `${request.method} ${request.url}`)
        if (request.method !== "DELETE") return answer
        // A DELETE has no key, because repeating it has no further effect (semantics idempotency.required): an earlier
        // attempt may have deleted the object.
        const isRepeated = answer.status === 404 && attempt > 0 && !this.#deleted.has(request.url)
        this.#deleted.add(request.url)
        return isRepeated ? { ...answer, status: 200 } : answer
      }
      if (answer?.status === 503) assert.strictEqual(answer.headers["retry-after"], "1")
      await sleep(AGAIN_MILLIS)
    }
    throw new Error(`${request.method} ${request.url} got no answer`)
  }
}

/**
 * Returns whether a response is stored under its key and replayed (semantics idempotency.stored); other refusals are
 * decided again.
 */
const isKept = ({ status, text }: Answer): boolean =>
  status === 200 || status === 402 || /"code":"(?:\w+_unexpected_state|amount_too_large)"/.test(text)

/** Rounds a program's waits to whole seconds: fractions would move the clock of all merchants. */
export const inSeconds = <Step extends object, P extends { readonly steps: ReadonlyArray<Step> }>(program: P): P => ({
  ...program,
  steps: program.steps.filter((step) => !("millis" in step) || Number(step.millis) % 1000 === 0)
})

/** Returns the access to a merchant's environment through clients, with a movable clock. */
export const wireOf = (clients: Clients, time: { readonly now: number }, key: string): Wire => {
  let ahead = 0
  const wire: Wire = {
    now: () => time.now + ahead,
    request: (method, url, body) => clients.ask({ method, url, key, body }),
    wait: async (millis) => {
      await post(wire, "/v1/test_helpers/clock/advance", { seconds: millis / 1000 })
      ahead += millis
    }
  }
  return wire
}

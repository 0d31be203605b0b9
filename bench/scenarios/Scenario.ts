/** A scenario is one kind of request, and the servers that it is put to. */
import { Effect } from "effect"
import { type BenchFailure, failureOf } from "../BenchFailure.ts"
import { type ContenderName, contenders } from "../Contender.ts"
import type { Requests } from "../load/LoadPlan.ts"

/** A running server as scenarios see it. */
export interface Target {
  readonly port: number
  /** Keys of as many accounts of Till; the baselines look at none. */
  readonly apiKeys: ReadonlyArray<string>
}

/** One line of a scenario's table. */
export interface Subject {
  readonly title: string
  readonly contender: ContenderName
  /** Lays what the requests need, through the server's own API, and gives the requests. */
  readonly requests: (target: Target) => Effect.Effect<Requests, BenchFailure>
  /** For requests that use up what they are put to. */
  readonly refill?: (target: Target) => Effect.Effect<Refill, BenchFailure>
}

/**
 * Creates what a round of so many seconds can use up, before the round and outside its measurement, and gives the
 * round's paths. Every path stands for one object created, and so for one record.
 */
export type Refill = (seconds: number) => Effect.Effect<ReadonlyArray<string>, BenchFailure>

export interface Scenario {
  /** For `--only`. */
  readonly name: string
  readonly title: string
  readonly connections: number
  /** Rounds beyond the pace's, for a ratio that has to be told to a few percent. */
  readonly moreRounds?: number
  /** True if every request leaves a record, which is then counted. */
  readonly writes: boolean
  /** The last account holds so many PaymentIntents from the start. Such a scenario runs only if it is named. */
  readonly objects?: number
  /** Text that a right answer contains. */
  readonly expect: string
  readonly subjects: ReadonlyArray<Subject>
}

/** The same requests to several servers. */
export const subjects = (names: ReadonlyArray<ContenderName>, requests: Subject["requests"]): ReadonlyArray<Subject> =>
  names.map((name) => ({
    title: contenders[name].title,
    contender: name,
    requests: (target) =>
      contenders[name].keysInTurn === true
        ? Effect.map(requests(target), (wanted) => ({ ...wanted, apiKeys: target.apiKeys }))
        : requests(target)
  }))

export const INTENTS = "/v1/payment_intents"
export const intentBody = { amount: 2000, currency: "usd", description: "Order 6735", metadata: { order: "6735" } }

/**
 * Sends one request to the server's API, with the first of the keys, and gives the answer. Each run of the effect is
 * a request of its own.
 */
export const post = <Answer>(target: Target, path: string, body: object): Effect.Effect<Answer, BenchFailure> =>
  Effect.suspend(() =>
    send<Answer>(target, path, {
      method: "POST",
      headers: { "idempotency-key": crypto.randomUUID(), "content-type": "application/json" },
      body: JSON.stringify(body)
    })
  )

/** Asks the server's API for something, with the first of the keys. */
export const get = <Answer>(target: Target, path: string): Effect.Effect<Answer, BenchFailure> =>
  send(target, path, { method: "GET", headers: {} })

const send = <Answer>(
  { apiKeys, port }: Target,
  path: string,
  { headers, ...request }: { method: string; headers: Record<string, string>; body?: string }
): Effect.Effect<Answer, BenchFailure> =>
  Effect.tryPromise({
    try: async () => {
      const authorization = `Basic ${Buffer.from(`${apiKeys[0]}:`).toString("base64")}`
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        ...request,
        headers: { authorization, "x-api-version": "2026-03-09", ...headers }
      })
      const text = await response.text()
      if (response.status !== 200) throw new Error(`${response.status} ${text}`)
      return JSON.parse(text) as Answer
    },
    catch: failureOf(`${request.method} ${path} was refused`)
  })

/** Creates one object through the server's API and gives its id. */
export const createObject = (target: Target, path: string, body: object): Effect.Effect<string, BenchFailure> =>
  Effect.map(post<{ readonly id: string }>(target, path, body), ({ id }) => id)

const CREATES_AT_ONCE = 64

/** Creates as many objects as bodies are given, many at a time, and gives their ids. */
export const createObjects = (
  target: Target,
  path: string,
  bodies: ReadonlyArray<object>
): Effect.Effect<ReadonlyArray<string>, BenchFailure> =>
  Effect.forEach(bodies, (body) => createObject(target, path, body), { concurrency: CREATES_AT_ONCE })

/** Creates one PaymentIntent and gives its id. */
export const createIntent = (target: Target): Effect.Effect<string, BenchFailure> =>
  createObject(target, INTENTS, intentBody)

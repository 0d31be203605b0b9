/** Programs over HTTP: a new environment of a merchant, reached by requests, with a movable clock. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { type ClientError, type Driver, wordsOf } from "./Program.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- whatever the service answered
export type Json = any

export interface Reply {
  readonly status: number
  readonly body: Json
}

/** The access to an environment. */
export interface Wire {
  readonly now: () => number
  readonly wait: (millis: number) => Promise<void>
  readonly request: (method: string, path: string, body?: object) => Promise<Reply>
}

/** The HTTP request of an operation. */
export interface WireRequest {
  readonly path: string
  readonly body: object
}

export const get = async (wire: Wire, path: string): Promise<Json> => {
  const { body, status } = await wire.request("GET", path)
  assert.strictEqual(status, 200, `GET ${path}: ${JSON.stringify(body)}`)
  return body
}

/** Sends a POST that must succeed. */
export const post = async (wire: Wire, path: string, body: object): Promise<Json> => {
  const reply = await wire.request("POST", path, body)
  assert.strictEqual(reply.status, 200, `POST ${path}: ${JSON.stringify(reply.body)}`)
  return reply.body
}

/** Returns a response in the terms of the tables. */
export const answerOf = ({ body, status }: Reply): string =>
  status === 200 ? "ok" : wordsOf(body.error as ClientError)

/** Returns all objects of a list, oldest first. */
export const all = async (wire: Wire, path: string): Promise<ReadonlyArray<Json>> => {
  const objects: Array<Json> = []
  for (let cursor: string | null = null; ;) {
    const page = await get(wire, `${path}?limit=100${cursor === null ? "" : `&starting_after=${cursor}`}`)
    objects.push(...page.data)
    cursor = page.next_cursor
    if (cursor === null) return objects.toReversed()
  }
}

/** Makes a driver from promises; the first `eventsBefore` events are not the program's. */
export const driver = <Creation, Command, Seen>(
  wire: Wire,
  parts: {
    readonly create: (creation: Creation) => Promise<string>
    readonly run: (command: Command) => Promise<string>
    readonly seen: () => Promise<Seen>
  },
  eventsBefore: () => number
): Driver<Creation, Command, Seen> => ({
  now: wire.now,
  create: (creation) => Effect.promise(() => parts.create(creation)),
  run: (command) => Effect.promise(() => parts.run(command)),
  wait: (millis) => Effect.promise(() => wire.wait(millis)),
  seen: Effect.promise(parts.seen),
  events: Effect.promise(async () => (await all(wire, "/v1/events")).slice(eventsBefore()).map(({ type }) => type))
})

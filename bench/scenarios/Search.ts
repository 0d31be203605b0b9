/**
 * Lists bounded by `created`, and searches, of an account that holds a million PaymentIntents: what many have, what few
 * have, ranges, and what nothing has. One connection, because the question is what one of them takes: p50 is to stay
 * within 5 ms. Only by their own names: an account is not filled in passing.
 */
import { Effect } from "effect"
import type { BenchFailure } from "../BenchFailure.ts"
import { get, INTENTS, type Scenario, type Subject, type Target } from "./Scenario.ts"

const OBJECTS = 1_000_000

/** The account that is filled is the last one. */
const filled = (target: Target): Target => ({ ...target, apiKeys: target.apiKeys.slice(-1) })

const line = (
  title: string,
  paths: (target: Target) => Effect.Effect<ReadonlyArray<string>, BenchFailure>
): Subject => ({
  title: `Till, ${title}`,
  contender: "till",
  requests: (target) =>
    Effect.map(paths(filled(target)), (paths) => ({ method: "GET" as const, paths, ...keysOf(target), body: null }))
})

const keysOf = (target: Target) => ({ apiKeys: filled(target).apiKeys })

/** Windows of a second, which lie in the time in which the account was filled. */
const windows = (target: Target) =>
  Effect.map(
    get<{ readonly data: ReadonlyArray<{ readonly created: number }> }>(target, `${INTENTS}?limit=1`),
    (page) => {
      const newest = page.data[0]!.created
      return Array.from({ length: 10 }, (_, i) => `${INTENTS}?created[gte]=${newest - i}&created[lt]=${newest - i + 1}`)
    }
  )

export const listCreated: Scenario = {
  name: "list-created",
  title: "List PaymentIntents of one second, of a million",
  connections: 1,
  writes: false,
  objects: OBJECTS,
  expect: `"object":"list"`,
  subjects: [line("ten of a second", windows)]
}

const searches = (...queries: ReadonlyArray<string>) =>
  Effect.succeed(queries.map((query) => `${INTENTS}/search?query=${encodeURIComponent(query)}`))

const orders = Array.from({ length: 100 }, (_, i) => `metadata["order_id"]:"${i * 9973}"`)
const amounts = Array.from({ length: 100 }, (_, i) => `amount:${100 + i * 997}`)

export const search: Scenario = {
  name: "search",
  title: "Search a million PaymentIntents",
  connections: 1,
  writes: false,
  objects: OBJECTS,
  expect: `"object":"search_result"`,
  subjects: [
    line("what most have", () => searches(`status:"succeeded" AND currency:"usd"`, "amount>500")),
    line("one order", () => searches(...orders)),
    line("ten of a million", () => searches(`status:"requires_capture"`, `-status:"succeeded"`, `currency:"chf"`)),
    line("one amount", () => searches(...amounts)),
    line("a narrow range", () => searches("amount>100090", "amount>=50000 AND amount<=50002")),
    line("a card, and a range", () => searches(`last4:"0042" AND amount>50000`, `last4:"4242" AND status:"succeeded"`)),
    line("nothing", () => searches(`metadata["order_id"]:"none"`, `customer:"cus_none"`))
  ]
}

/**
 * Batches look-ups: whatever is asked for while one query is under way goes into the next. A thousand waiting
 * requests cost the storage a handful of queries.
 *
 * Effect's `RequestResolver` does not wait for the query under way: it collects for a moment, and its batches run side
 * by side.
 */
import { Deferred, Effect, Exit, Queue } from "effect"
import type { Scope } from "effect"
import * as Loop from "./Loop.ts"

const BATCH_MAX = 512

export const make = Effect.fnUntraced(function* <In, Out, E>(
  query: (inputs: ReadonlyArray<In>) => Effect.Effect<ReadonlyArray<Out>, E>,
  batchMax: number = BATCH_MAX
): Effect.fn.Return<(input: In) => Effect.Effect<Out, E>, never, Scope.Scope> {
  interface Waiting {
    readonly input: In
    readonly answer: Deferred.Deferred<Out, E>
  }
  const queue = yield* Queue.unbounded<Waiting>()
  const answer = (batch: ReadonlyArray<Waiting>) =>
    Effect.map(Effect.exit(Effect.suspend(() => query(batch.map(({ input }) => input)))), (exit) => {
      batch.forEach(({ answer }, i) =>
        Deferred.doneUnsafe(
          answer,
          Exit.map(exit, (outs) => outs[i] as Out)
        )
      )
    })
  yield* Effect.forkScoped(
    Loop.forever("answering of look-ups", Effect.flatMap(Queue.takeBetween(queue, 1, batchMax), answer))
  )
  return (input) =>
    Effect.suspend(() => {
      const waiting = { input, answer: Deferred.makeUnsafe<Out, E>() }
      Queue.offerUnsafe(queue, waiting)
      return Deferred.await(waiting.answer)
    })
})

/** For who asks for several at once: their lists go together into a query, at most `listsMax` of them. */
export const makeForLists = Effect.fnUntraced(function* <In, Out, E>(
  query: (inputs: ReadonlyArray<In>) => Effect.Effect<ReadonlyArray<Out>, E>,
  listsMax: number
) {
  const ask = yield* make(
    (lists: ReadonlyArray<ReadonlyArray<In>>) =>
      Effect.map(query(lists.flat()), (outs) => {
        let end = 0
        return lists.map(({ length }): ReadonlyArray<Out> => outs.slice(end, (end += length)))
      }),
    listsMax
  )
  return (list: ReadonlyArray<In>): Effect.Effect<ReadonlyArray<Out>, E> =>
    list.length === 0 ? Effect.succeed([]) : ask(list)
})

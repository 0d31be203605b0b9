/**
 * Batches look-ups: inputs that arrive while one query is running go into the next. A thousand waiting requests cost
 * the storage a handful of queries.
 *
 * Effect's `RequestResolver` does not wait for the running query: it collects for a short time, and its batches run in
 * parallel.
 */
import { Deferred, Effect, Exit, Queue, type Scope } from "effect"
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

/** Batches look-ups of lists: one query takes the inputs of at most `listsMax` lists. */
export const makeForLists = Effect.fnUntraced(function* <In, Out, E>(
  query: (inputs: ReadonlyArray<In>) => Effect.Effect<ReadonlyArray<Out>, E>,
  listsMax: number
) {
  const lookUp = yield* make(
    (lists: ReadonlyArray<ReadonlyArray<In>>) =>
      Effect.map(query(lists.flat()), (outs) => {
        let end = 0
        return lists.map(({ length }): ReadonlyArray<Out> => outs.slice(end, (end += length)))
      }),
    listsMax
  )
  return (list: ReadonlyArray<In>): Effect.Effect<ReadonlyArray<Out>, E> =>
    list.length === 0 ? Effect.succeed([]) : lookUp(list)
})

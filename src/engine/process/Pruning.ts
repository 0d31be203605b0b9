/**
 * Pruning: deletes rows that no answer depends on, behind the work. All kinds of rows share one pace: one statement at
 * a time, each of a bounded number of rows, and after each a rest of nine times its duration. So pruning takes a tenth
 * of one connection's time at most, however much there is to delete, and while the database is slow it deletes less.
 *
 * The time of deletion has no effect on answers, except of events and test payments, which are there until then.
 */
import { Context, Duration, Effect, Layer, type Scope, Semaphore } from "effect"
import * as Loop from "./Loop.ts"
import { logOf } from "./Log.ts"

const log = logOf("engine")

/** Rows that a statement deletes, at most. */
export const PRUNED_MAX = 5000
/** Length of a rest, as a multiple of the statement before it. */
const REST = 9
const REST_MILLIS_MAX = 2000

/** Runs a statement when its turn has come, and rests. */
export type Paced = <A, E>(statement: Effect.Effect<A, E>) => Effect.Effect<A, E>

/** A kind of rows with a retention. */
export interface Prunable {
  /** Name in log lines. */
  readonly name: string
  /** Pause before each pass, in milliseconds. */
  readonly everyMillis: number
  /** Deletes everything that is past its retention. */
  readonly pass: (paced: Paced) => Effect.Effect<void, { readonly message: string }>
}

export interface PruningShape {
  /** Prunes a kind of rows until the scope closes. */
  readonly add: (prunable: Prunable) => Effect.Effect<void, never, Scope.Scope>
}

export class Pruning extends Context.Service<Pruning, PruningShape>()("till/engine/Pruning") {
  static readonly layer: Layer.Layer<Pruning> = Layer.sync(Pruning, () => {
    const turn = Semaphore.makeUnsafe(1)
    const paced: Paced = (statement) => turn.withPermits(1)(rested(statement))
    return {
      add: ({ everyMillis, name, pass }) => {
        const safely = Effect.catch(pass(paced), ({ message }) =>
          log.warning(`Old ${name} could not be deleted`, message, { cause: `not deleted: ${name}`, isOfWrite: true })
        )
        const step = Effect.andThen(Effect.sleep(everyMillis), safely)
        return Effect.asVoid(Effect.forkScoped(Loop.forever(`deletion of old ${name}`, step)))
      }
    }
  })
}

const rested: Paced = (statement) =>
  Effect.flatMap(Effect.timed(statement), ([took, deleted]) =>
    Effect.as(Effect.sleep(Math.min(Duration.toMillis(took) * REST, REST_MILLIS_MAX)), deleted)
  )

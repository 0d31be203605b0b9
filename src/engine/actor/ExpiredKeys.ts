/**
 * Deletes idempotency keys past their retention (semantics idempotency.retention) from the views, in the process that
 * serves the replicated account (`Options`). Every process stores the running time, which measures the retention.
 */
import { Effect, Layer } from "effect"
import type { AccountId } from "../log/Document.ts"
import { Placement } from "../process/Placement.ts"
import { PRUNED_MAX, Pruning } from "../process/Pruning.ts"
import { Views } from "../views/Views.ts"
import { RETENTION_MILLIS, RunningTime } from "./RunningTime.ts"

const EVERY_MILLIS = 60_000

export const layer = (
  replicated: AccountId | null
): Layer.Layer<never, never, Placement | Pruning | RunningTime | Views> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const placement = yield* Placement
      const runningTime = yield* RunningTime
      const views = yield* Views
      const isOurs = () => replicated === null || placement.isHere(replicated)
      yield* (yield* Pruning).add({
        name: "idempotency keys",
        everyMillis: EVERY_MILLIS,
        pass: Effect.fnUntraced(function* (paced) {
          const before = (yield* runningTime.keep) - RETENTION_MILLIS
          while (isOurs() && (yield* paced(views.expireKeys(before, PRUNED_MAX))) === PRUNED_MAX);
        })
      })
    })
  )

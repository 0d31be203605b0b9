/**
 * Deletes events past their retention (semantics storage.retention) from the views, with their deliveries, in the
 * process that serves their account. Their records stay in the journal, so a rebuild brings them back, until they are
 * deleted again. An event is as old as its id: by an account's clock, which may be ahead.
 */
import { Clock, Effect, Layer } from "effect"
import { Placement } from "../process/Placement.ts"
import { Pruning } from "../process/Pruning.ts"
import { Views } from "./Views.ts"

const EVERY_MILLIS = 3_600_000
const DAY_MILLIS = 86_400_000
/** Events that a statement deletes, at most; each may have deliveries. */
const EXPIRED_MAX = 1000

/** Keeps events for `days` days. */
export const layer = (days: number): Layer.Layer<never, never, Placement | Pruning | Views> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { isHere } = yield* Placement
      const views = yield* Views
      yield* (yield* Pruning).add({
        name: "events",
        everyMillis: EVERY_MILLIS,
        pass: Effect.fnUntraced(function* (paced) {
          const before = (yield* Clock.currentTimeMillis) - days * DAY_MILLIS
          for (const account of yield* views.accounts) {
            while (isHere(account) && (yield* paced(views.expireEvents(account, before, EXPIRED_MAX))) === EXPIRED_MAX);
          }
        })
      })
    })
  )

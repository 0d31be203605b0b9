/** The whole engine on a journal and views. */
import { Layer } from "effect"
import type { AccountNumbers } from "./AccountNumbers.ts"
import { Accounts } from "./Accounts.ts"
import type { Options } from "./Actors.ts"
import { Alarm } from "./Alarm.ts"
import { Deliveries } from "./Deliveries.ts"
import { Outbox } from "./Outbox.ts"
import type { EventVersions } from "./Events.ts"
import type { Formats } from "./Formats.ts"
import type { Journal } from "./Journal.ts"
import type { Placement } from "./Placement.ts"
import { Projector } from "./Projector.ts"
import { RunningTime } from "./RunningTime.ts"
import * as Scheduler from "./Scheduler.ts"
import type { TimerHandler } from "./Timers.ts"
import type { Views } from "./Views.ts"

/**
 * Accounts, with the scheduler of their timers running, their deliveries for whoever carries them out, and what changes
 * in them for whoever shows them.
 */
export const layer = (
  options: Partial<Options> = {}
): Layer.Layer<
  Accounts | Deliveries | Outbox | Projector,
  never,
  AccountNumbers | EventVersions | Formats | Journal | Placement | Views | TimerHandler
> =>
  Layer.merge(Scheduler.layer(options.replicated ?? null), Deliveries.layer).pipe(
    Layer.provideMerge(Accounts.layer(options)),
    Layer.provideMerge(Outbox.layer),
    Layer.provide(Layer.mergeAll(Alarm.layer, RunningTime.layer)),
    Layer.provideMerge(Projector.layer)
  )

/** Composes the engine on a journal and views. */
import { Layer } from "effect"
import type { AccountNumbers } from "./log/AccountNumbers.ts"
import { Accounts } from "./Accounts.ts"
import type { Options } from "./actor/Actors.ts"
import { WakeUp } from "./process/WakeUp.ts"
import { Deliveries } from "./Deliveries.ts"
import * as ExpiredKeys from "./actor/ExpiredKeys.ts"
import { CommitFeed } from "./views/CommitFeed.ts"
import type { EventVersions } from "./log/Events.ts"
import type { DocumentFormats } from "./views/DocumentFormats.ts"
import type { Journal } from "./log/Journal.ts"
import type { Placement } from "./process/Placement.ts"
import { Projector } from "./actor/Projector.ts"
import { Pruning } from "./process/Pruning.ts"
import { RunningTime } from "./actor/RunningTime.ts"
import * as Scheduler from "./Scheduler.ts"
import type { TimerHandler } from "./actor/Timers.ts"
import type { Views } from "./views/Views.ts"

/** The accounts, the scheduler that runs their timers, their deliveries, the feed of their commits, and pruning. */
export const layer = (
  options: Partial<Options> = {}
): Layer.Layer<
  Accounts | Deliveries | CommitFeed | Projector | Pruning,
  never,
  AccountNumbers | EventVersions | DocumentFormats | Journal | Placement | Views | TimerHandler
> =>
  Layer.mergeAll(Scheduler.layer, ExpiredKeys.layer(options.replicated ?? null), Deliveries.layer).pipe(
    Layer.provideMerge(Accounts.layer(options)),
    Layer.provideMerge(CommitFeed.layer),
    Layer.provide(Layer.mergeAll(WakeUp.layer, RunningTime.layer)),
    Layer.provideMerge(Pruning.layer),
    Layer.provideMerge(Projector.layer)
  )

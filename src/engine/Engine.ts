/** The whole engine on a journal and views. */
import { Layer } from "effect"
import { Accounts } from "./Accounts.ts"
import type { Options } from "./Actors.ts"
import { Alarm } from "./Alarm.ts"
import type { Journal } from "./Journal.ts"
import { Projector } from "./Projector.ts"
import type { TimerHandler } from "./Timers.ts"
import * as Timers from "./Timers.ts"
import type { Views } from "./Views.ts"

/** Accounts, with the scheduler of their timers running. */
export const layer = (
  options: Partial<Options> = {}
): Layer.Layer<Accounts | Projector, never, Journal | Views | TimerHandler> =>
  Timers.layer.pipe(
    Layer.provideMerge(Accounts.layer(options)),
    Layer.provide(Alarm.layer),
    Layer.provideMerge(Projector.layer)
  )

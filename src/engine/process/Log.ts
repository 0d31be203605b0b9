/**
 * The log: lines for operators, each with the part of Till that wrote it.
 *
 * A cause is logged at most once a second, however often it occurs: the next line of the same cause has the number of
 * those that were left out. Lines that only debugging asks for, below `Info`, are all logged. An operator sets a level
 * for all parts, and others for single parts.
 */
import { Context, Effect, Layer, LogLevel, References } from "effect"
import { Writing } from "./Writing.ts"

/** Pause between two lines of the same cause, in milliseconds. */
export const PAUSE_MILLIS = 1000
/** Causes that are remembered. */
const CAUSES_MAX = 1000

interface Cause {
  /** When the cause may be logged again, by `performance.now()`. */
  nextAt: number
  unlogged: number
}

/** Chooses lines by their causes. */
export class Throttle {
  readonly #causes = new Map<string, Cause>()

  /** Returns the number of lines left out since the last one of this cause; undefined if this one is left out too. */
  take(cause: string, pauseMillis: number, now: number = performance.now()): number | undefined {
    const known = this.#causes.get(cause)
    if (known !== undefined && now < known.nextAt) {
      known.unlogged++
      return undefined
    }
    if (known === undefined && this.#causes.size >= CAUSES_MAX) this.#forget(now)
    this.#causes.set(cause, { nextAt: now + pauseMillis, unlogged: 0 })
    return known?.unlogged ?? 0
  }

  /** Forgets the causes that may be logged again, or all if there are none. */
  #forget(now: number): void {
    for (const [cause, { nextAt }] of this.#causes) if (nextAt <= now) this.#causes.delete(cause)
    if (this.#causes.size >= CAUSES_MAX) this.#causes.clear()
  }
}

interface Policy {
  /** The least level of a part; undefined for that of all parts. */
  readonly levelOf: (part: string) => LogLevel.LogLevel | undefined
  readonly take: Throttle["take"]
}

/** Without a policy, every line is logged. */
const LogPolicy: Context.Reference<Policy> = Context.Reference("till/engine/LogPolicy", {
  defaultValue: (): Policy => ({ levelOf: () => undefined, take: () => 0 })
})

/** Limits repeated lines, and sets the levels of parts. */
export const layer = (levels: ReadonlyMap<string, LogLevel.LogLevel> = new Map()): Layer.Layer<never> =>
  Layer.sync(LogPolicy, () => {
    const throttle = new Throttle()
    return {
      levelOf: (part) => levels.get(part),
      take: (cause, pauseMillis) => throttle.take(cause, pauseMillis)
    }
  })

export interface Repetition {
  /** The cause's pause, if it is longer than a second, in milliseconds. */
  readonly pauseMillis?: number
  /** Set for a failed write, which is not logged while the storage refuses all writes: that has a line of its own. */
  readonly isOfWrite?: boolean
}

export interface LineOptions extends Repetition {
  /** Name of the cause, for a text that differs each time; the text itself otherwise. */
  readonly cause?: string
  readonly annotations?: Readonly<Record<string, unknown>>
}

interface Line {
  readonly text: string
  readonly detail?: unknown
  readonly annotations?: Readonly<Record<string, unknown>> | undefined
}

/** A line that may be written: its least level, and the number of lines left out before it. */
interface Chosen {
  readonly least: LogLevel.LogLevel
  readonly unlogged: number
}

type Level = LogLevel.Severity

const choose = (
  context: Context.Context<never>,
  part: string,
  level: Level,
  cause: string,
  { isOfWrite = false, pauseMillis = PAUSE_MILLIS }: Repetition
): Chosen | undefined => {
  const { levelOf, take } = Context.get(context, LogPolicy)
  const least = levelOf(part) ?? Context.get(context, References.MinimumLogLevel)
  if (LogLevel.isGreaterThan(least, level)) return undefined
  if (isOfWrite && Context.get(context, Writing).refusal() !== undefined) return undefined
  const unlogged = LogLevel.isLessThan(level, "Info") ? 0 : take(`${part} ${cause}`, pauseMillis)
  return unlogged === undefined ? undefined : { least, unlogged }
}

const write = (part: string, level: Level, { least, unlogged }: Chosen, { annotations, detail, text }: Line) =>
  Effect.logWithLevel(level)(text, ...(detail === undefined ? [] : [detail])).pipe(
    Effect.annotateLogs({ part, ...annotations, ...(unlogged > 0 && { unlogged_before: unlogged }) }),
    Effect.provideService(References.MinimumLogLevel, least)
  )

const writer =
  (part: string, level: Level) =>
  (text: string, detail?: unknown, options: LineOptions = {}): Effect.Effect<void> =>
    Effect.withFiber(({ context }) => {
      const chosen = choose(context, part, level, options.cause ?? text, options)
      const { annotations } = options
      return chosen === undefined ? Effect.void : write(part, level, chosen, { text, detail, annotations })
    })

/** Writes lines where no fiber runs. `make` runs only for a line that is not left out, because floods come this way. */
const writerOfCallbacks =
  (part: string, level: Level) =>
  (context: Context.Context<never>, { cause, ...repetition }: Repetition & { cause: string }, make: () => Line) => {
    const chosen = choose(context, part, level, cause, repetition)
    if (chosen !== undefined) Effect.runForkWith(context)(write(part, level, chosen, make()))
  }

/** Makes the log of a part: the folder of `src` that writes the lines. */
export const logOf = (part: string) => ({
  debug: writer(part, "Debug"),
  info: writer(part, "Info"),
  warning: writer(part, "Warn"),
  error: writer(part, "Error"),
  fatal: writer(part, "Fatal"),
  debugIn: writerOfCallbacks(part, "Debug"),
  warningIn: writerOfCallbacks(part, "Warn"),
  errorIn: writerOfCallbacks(part, "Error")
})

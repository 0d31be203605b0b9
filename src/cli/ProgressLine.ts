/**
 * Reports the progress of work on whole journals on standard error: records done, records per second, and time left. On
 * a terminal one line is updated in place; otherwise a line is printed from time to time, and none for work of a few
 * seconds.
 */
import { Clock, Effect, Schedule } from "effect"
import { Progress } from "../app.ts"

const SPACING_MILLIS = { terminal: 500, file: 10_000 }
const ERASE_LINE = "\r\u001b[K"

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 })

/** Formats the progress: `120,000 of 1,000,001 records (12 %), 18,432 records/s, 48 s left`. */
export const lineOf = (total: number, done: number, elapsedMillis: number): string => {
  const perSecond = done / (elapsedMillis / 1000)
  const percent = Math.floor((100 * done) / total)
  const progress = `${grouped.format(Math.floor(done))} of ${grouped.format(total)} records (${percent} %)`
  if (!(perSecond >= 1)) return progress
  return `${progress}, ${grouped.format(perSecond)} records/s, ${durationOf((total - done) / perSecond)} left`
}

/** Formats a duration with at most its two greatest units: `1 h 5 min`, `3 min 20 s` or `9 s`. */
const durationOf = (seconds: number): string => {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole} s`
  const minutes = Math.floor(whole / 60)
  return minutes < 60 ? `${minutes} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** The stream to which the lines are written. */
export interface Output {
  readonly isTTY?: boolean | undefined
  readonly write: (text: string) => unknown
}

/** Runs work and reports its progress. */
export const withProgress = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>, output: Output) {
  const inPlace = output.isTTY === true
  const startedAt = yield* Clock.currentTimeMillis
  let total = 0
  let done = 0
  const show = Effect.map(Clock.currentTimeMillis, (now) => {
    if (total === 0) return
    const line = lineOf(total, Math.min(done, total), now - startedAt)
    output.write(inPlace ? `${ERASE_LINE}${line}` : `${line}\n`)
  })
  const spacing = Schedule.spaced(inPlace ? SPACING_MILLIS.terminal : SPACING_MILLIS.file)
  yield* Effect.forkScoped(Effect.schedule(show, spacing))
  if (inPlace) yield* Effect.addFinalizer(() => Effect.sync(() => output.write(ERASE_LINE)))
  return yield* Effect.provideService(work, Progress, {
    begin: (records) => {
      total = records
    },
    advance: (records) => {
      done += records
    }
  })
}, Effect.scoped)

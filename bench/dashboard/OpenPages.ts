/** What pages that are open cost the creates, and Till's memory. */
import { Effect } from "effect"
import { BenchFailure, failureOf } from "../BenchFailure.ts"
import { median } from "../load/Percentiles.ts"
import * as ProcessTime from "../ProcessTime.ts"
import type { Creates, Ground } from "./Creates.ts"
import { inTurn } from "./Creates.ts"
import type { DashboardPace } from "./DashboardBench.ts"
import type { Visitor } from "./Visitors.ts"
import { signIn } from "./Visitors.ts"

/** A browser's session has no more streams. */
const PAGES_PER_SESSION = 20
const SAMPLE_MILLIS = 100

/** Opens so many pages, home and payments in turn; each loads itself again when it is told to, as its script does. */
const open = Effect.fnUntraced(function* (
  visitors: ReadonlyArray<Visitor>,
  count: number,
  loaded: (isGood: boolean) => void
) {
  yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        Promise.all(
          Array.from({ length: count }, (_, i) => {
            const visitor = visitors[Math.floor(i / PAGES_PER_SESSION)]!
            const path = i % 2 === 0 ? "" : "/payments"
            let isLoading = false
            return visitor.listen(() => {
              if (isLoading) return
              isLoading = true
              visitor
                .load(path)
                .then(
                  ({ status, text }) => loaded(status === 200 && text.includes("</html>")),
                  () => loaded(false)
                )
                .finally(() => (isLoading = false))
            })
          })
        ),
      catch: failureOf("The pages cannot be opened")
    }),
    (closes) => Effect.sync(() => closes.forEach((close) => close()))
  )
})

/** Carries something out, and tells what a process has in memory meanwhile. */
const withResidentBytes = <A, E, R>(pid: number, effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const samples: Array<number> = []
    const timer = setInterval(() => samples.push(ProcessTime.residentBytesOf(pid) ?? NaN), SAMPLE_MILLIS)
    return effect.pipe(
      Effect.map((value) => ({ value, bytes: median(samples) })),
      Effect.ensuring(Effect.sync(() => clearInterval(timer)))
    )
  })

/** Rounds of creates with open pages and without take turns; one without is before and one after all of them. */
export const measure = Effect.fnUntraced(function* (
  { server }: Ground,
  creates: Creates,
  merchant: string,
  pace: DashboardPace
) {
  const sessions = Math.ceil(pace.openPages / PAGES_PER_SESSION)
  const visitors = yield* Effect.replicateEffect(signIn(server, merchant, PAGES_PER_SESSION), sessions)
  const round = withResidentBytes(server.pid, creates.run(pace.secondsPerRound))
  const without = Effect.map(round, ({ value }) => value)
  yield* creates.run(pace.warmUpSeconds)
  const { bytes: before } = yield* round
  let loads = 0
  let wrong = 0
  let counted = 0
  let seconds = 0
  let bytesOpen = NaN
  const withPages = Effect.scoped(
    Effect.gen(function* () {
      yield* open(visitors, pace.openPages, (isGood) => {
        if (isGood) loads++
        else wrong++
      })
      yield* creates.run(pace.warmUpSeconds / 2)
      const [loadsBefore, began] = [loads, performance.now()]
      const { bytes, value: perSecond } = yield* round
      seconds += (performance.now() - began) / 1000
      counted += loads - loadsBefore
      bytesOpen = bytes
      return perSecond
    })
  )
  const live = yield* inTurn(pace.rounds, withPages, without)
  yield* creates.run(pace.warmUpSeconds)
  const { bytes: after } = yield* round
  if (wrong > 0) return yield* new BenchFailure({ problem: `${wrong} open pages were not given what they show.` })
  if (counted === 0) return yield* new BenchFailure({ problem: "No open page was told of any change." })
  return {
    live,
    loadsPerSecond: counted / seconds,
    ...(Number.isFinite(before) && { residentBytes: { before, open: bytesOpen, after } })
  }
}, Effect.scoped)

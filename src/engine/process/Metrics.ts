/**
 * Metrics: counts and durations that a process reports to its operator (docs/metrics.md). Each is defined beside the
 * work that it measures, with a name by Prometheus' conventions.
 *
 * Updates are a few hundred nanoseconds and never fail. A value that exists anyway is not counted again but observed:
 * read when the metrics are. No label has a value that users choose, and a metric has at most `SERIES_MAX` series.
 */
import { Effect, Layer, Metric, type Scope } from "effect"

/** Series of one metric; further combinations of label values count as `other`. */
const SERIES_MAX = 1000
const OTHER = "other"

export interface Definition {
  readonly name: string
  readonly description: string
}

export interface Labelled<Label extends string> extends Definition {
  readonly labels: ReadonlyArray<Label>
}

/** Boundaries of durations, in seconds: those of OpenTelemetry's semantic conventions. */
export const SECONDS: ReadonlyArray<number> = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10
]

export interface Distribution {
  readonly boundaries: ReadonlyArray<number>
}

/** Makes the series of a metric by their label values, each on its first use. */
class Series<M> {
  readonly #labels: ReadonlyArray<string>
  readonly #make: (attributes: Readonly<Record<string, string>>) => M
  readonly #known = new Map<string, M>()

  constructor(labels: ReadonlyArray<string>, make: (attributes: Readonly<Record<string, string>>) => M) {
    this.#labels = labels
    this.#make = make
  }

  of(values: ReadonlyArray<string>): M {
    const key = values.length === 1 ? values[0]! : values.join("\n")
    const known = this.#known.get(key)
    if (known !== undefined) return known
    if (this.#known.size >= SERIES_MAX && values.some((value) => value !== OTHER))
      return this.of(values.map(() => OTHER))
    const made = this.#make(Object.fromEntries(this.#labels.map((label, i) => [label, values[i]!])))
    this.#known.set(key, made)
    return made
  }
}

/** Makes a counter. Its series with the given label values begin at 0; all others with their first count. */
export const counters = <Label extends string>(
  { description, labels, name }: Labelled<Label>,
  begun: ReadonlyArray<ReadonlyArray<string>> = []
): Effect.Effect<(values: ReadonlyArray<string>, by?: number) => void> =>
  Effect.map(Effect.context<never>(), (context) => {
    const series = new Series(labels, (attributes) =>
      Metric.counter(name, { description, attributes, incremental: true })
    )
    const count = (values: ReadonlyArray<string>, by: number = 1) => series.of(values).updateUnsafe(by, context)
    for (const values of begun) count(values, 0)
    return count
  })

/** Makes a counter without labels, which begins at 0. */
export const counter = (definition: Definition): Effect.Effect<(by?: number) => void> =>
  Effect.map(counters({ ...definition, labels: [] }, [[]]), (count) => {
    const none: ReadonlyArray<string> = []
    return (by) => count(none, by)
  })

/** Makes a histogram. Its series with the given label values begin empty; all others with their first value. */
export const histograms = <Label extends string>(
  { boundaries, description, labels, name }: Labelled<Label> & Distribution,
  begun: ReadonlyArray<ReadonlyArray<string>> = []
): Effect.Effect<(values: ReadonlyArray<string>, value: number) => void> =>
  Effect.map(Effect.context<never>(), (context) => {
    const series = new Series(labels, (attributes) => Metric.histogram(name, { description, attributes, boundaries }))
    // A read makes an empty series.
    for (const values of begun) series.of(values).valueUnsafe(context)
    return (values, value) => series.of(values).updateUnsafe(value, context)
  })

/** Observes a series until the scope closes: `read` gives its value when the metrics are read. It must not throw. */
const observe = <Input, State>(
  metric: Metric.Metric<Input, State>,
  read: () => State
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.map(Effect.context<never>(), (context) =>
        Metric.registerUnsafe(metric, context, { get: read, update: () => {}, modify: () => {} })
      ),
      (registration) => Effect.sync(() => registration.remove())
    )
  )

/** Labels and values of one series. */
export type Attributes = Readonly<Record<string, string>>

/** Observes a value that may rise and fall. */
export const observeGauge = (
  { description, name }: Definition,
  read: () => number,
  attributes: Attributes = {}
): Effect.Effect<void, never, Scope.Scope> =>
  observe(Metric.gauge(name, { description, attributes }), () => ({ value: read() }))

/** Observes a count that only rises. */
export const observeCounter = (
  { description, name }: Definition,
  read: () => number
): Effect.Effect<void, never, Scope.Scope> =>
  observe(Metric.counter(name, { description, incremental: true }), () => ({
    count: read(),
    incremental: true
  }))

/** A report of values that a query reads, such as the sizes of tables: series come and go with the values. */
export interface Readings {
  /** Sets a value, which stays until the next `replace`. */
  readonly set: (definition: Definition, attributes: Attributes, value: number) => void
}

/** Makes a function that replaces all values of a report. */
export const readings = (): Effect.Effect<(fill: (set: Readings["set"]) => void) => void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const context = yield* Effect.context<never>()
    let registered: ReadonlyArray<Metric.Registration> = []
    const clear = () => {
      for (const registration of registered) registration.remove()
    }
    yield* Effect.addFinalizer(() => Effect.sync(clear))
    return (fill) => {
      clear()
      const made: Array<Metric.Registration> = []
      fill(({ description, name }, attributes, value) => {
        const gauge = Metric.gauge(name, { description, attributes })
        made.push(Metric.registerUnsafe(gauge, context, { get: () => ({ value }), update: () => {}, modify: () => {} }))
      })
      registered = made
    }
  })

/** A registry for the metrics of one service: without it, all services of a process count into the same series. */
export const layer: Layer.Layer<never> = Layer.sync(Metric.MetricRegistry, () => new Map())

/**
 * A strict reader of Prometheus' text format 0.0.4, by the rules that `promtool check metrics` has: each family is in
 * one place with its help and type first, no series comes twice, names and units follow the conventions, and the
 * buckets of a histogram add up.
 */

export interface Sample {
  /** The name in the sample, such as `…_bucket`. */
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Family {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly samples: Array<Sample>
}

const NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*"
const HELP = new RegExp(String.raw`^# HELP (${NAME}) (\S.*)$`, "u")
const TYPE = new RegExp(String.raw`^# TYPE (${NAME}) (counter|gauge|histogram|summary)$`, "u")
const SAMPLE = new RegExp(String.raw`^(${NAME})(?:\{(.*)\})? (NaN|[+-]Inf|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$`, "u")
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/gy

const fail = (line: string, problem: string): never => {
  throw new Error(`${problem}: ${line}`)
}

const labelsIn = (line: string, text: string): Readonly<Record<string, string>> => {
  const labels: Record<string, string> = {}
  LABEL.lastIndex = 0
  while (LABEL.lastIndex < text.length) {
    const found = LABEL.exec(text)
    if (found === null) return fail(line, "labels that cannot be read")
    const [, name = "", value = ""] = found
    if (name in labels) fail(line, "a label twice")
    labels[name] = value
  }
  return labels
}

const valueOf = (text: string): number => (text.endsWith("Inf") ? Number(`${text}inity`) : Number(text))

/** The names of a family's samples. */
const namesOf = ({ name, type }: Family): ReadonlyArray<string> =>
  type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name]

/** Reads a text; throws at the first line that breaks a rule. */
export const parse = (text: string): ReadonlyMap<string, Family> => {
  if (!text.endsWith("\n")) throw new Error("The text does not end with a line break")
  const families = new Map<string, Family>()
  const series = new Set<string>()
  let help: readonly [name: string, text: string] | undefined
  let current: Family | undefined
  for (const line of text.slice(0, -1).split("\n")) {
    const helped = HELP.exec(line)
    const typed = TYPE.exec(line)
    const sample = SAMPLE.exec(line)
    if (helped !== null) help = [helped[1]!, helped[2]!]
    else if (typed !== null) {
      const [, name = "", type = ""] = typed
      if (help?.[0] !== name) fail(line, "a type without a help")
      if (families.has(name)) fail(line, "a family in two places")
      current = { name, type, help: help![1], samples: [] }
      families.set(name, current)
    } else if (sample !== null && current !== undefined) {
      const [, name = "", labels = "", value = ""] = sample
      if (!namesOf(current).includes(name)) fail(line, "a sample outside of its family")
      const read = { name, labels: labelsIn(line, labels), value: valueOf(value) }
      const key = `${name} ${JSON.stringify(Object.entries(read.labels).toSorted())}`
      if (series.has(key)) fail(line, "a series twice")
      series.add(key)
      current.samples.push(read)
    } else fail(line, "a line that cannot be read")
  }
  for (const family of families.values()) check(family)
  return families
}

const check = (family: Family): void => {
  const { name, samples, type } = family
  if (samples.length === 0) fail(name, "a family without samples")
  if ((type === "counter") !== name.endsWith("_total")) fail(name, "counters, and nothing else, end in _total")
  if (/_(?:ms|millis|milliseconds|minutes|kb|mb|percent)(?:_|$)/u.test(name)) fail(name, "a unit that is no base unit")
  if (type !== "histogram" && /_(?:bucket|count|sum)$/u.test(name)) fail(name, "a name of a histogram's sample")
  if (type === "counter" && samples.some(({ value }) => !(value >= 0))) fail(name, "a negative count")
  if (type === "histogram") checkHistogram(family)
}

const checkHistogram = ({ name, samples }: Family): void => {
  const groups = new Map<string, Array<Sample>>()
  for (const sample of samples) {
    const { le: _, ...labels } = sample.labels
    const key = JSON.stringify(labels)
    groups.set(key, [...(groups.get(key) ?? []), sample])
  }
  for (const [labels, group] of groups) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`)
    const bounds = buckets.map((bucket) => valueOf(bucket.labels["le"]!))
    const counts = buckets.map(({ value }) => value)
    const isAscending = (values: ReadonlyArray<number>, isStrict: boolean) =>
      values.every((value, i) => i === 0 || (isStrict ? value > values[i - 1]! : value >= values[i - 1]!))
    if (!isAscending(bounds, true) || bounds.at(-1) !== Infinity) fail(labels, `wrong buckets of ${name}`)
    if (!isAscending(counts, false)) fail(labels, `buckets of ${name} that do not add up`)
    const count = group.find((sample) => sample.name === `${name}_count`)?.value
    if (count !== counts.at(-1)) fail(labels, `a count of ${name} that is not its last bucket's`)
    if (group.length !== buckets.length + 2) fail(labels, `${name} lacks its sum or its count`)
  }
}

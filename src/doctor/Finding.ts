/** One result of `till doctor` (semantics operation.doctor). */

/** `unknown`: the check could not be made. */
export type Level = "ok" | "warning" | "problem" | "unknown"

export interface Finding {
  /** A name for programs that does not change, such as `database.durability`. */
  readonly check: string
  readonly level: Level
  /** One line, without secrets. */
  readonly text: string
  /** How an operator mends it; null unless there is something to mend. */
  readonly remedy: string | null
}

export const ok = (check: string, text: string): Finding => ({ check, level: "ok", text, remedy: null })

export const warning = (check: string, text: string, remedy: string): Finding => ({
  check,
  level: "warning",
  text,
  remedy
})

export const problem = (check: string, text: string, remedy: string): Finding => ({
  check,
  level: "problem",
  text,
  remedy
})

export const unknown = (check: string, text: string): Finding => ({ check, level: "unknown", text, remedy: null })

const SIZES = ["B", "kB", "MB", "GB", "TB"] as const

/** Formats a number of bytes: `12.3 GB`. */
export const bytes = (count: number): string => {
  const step = Math.max(0, Math.min(SIZES.length - 1, Math.floor(Math.log10(Math.max(1, count)) / 3)))
  const value = count / 1000 ** step
  return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${SIZES[step]}`
}

/** Formats a duration in milliseconds in its largest unit: `3 days`. */
export const duration = (millis: number): string => {
  const seconds = Math.round(millis / 1000)
  for (const [unit, length] of [
    ["day", 86_400],
    ["hour", 3600],
    ["minute", 60]
  ] as const) {
    const count = Math.floor(seconds / length)
    if (count > 0) return `${count} ${unit}${count === 1 ? "" : "s"}`
  }
  return `${seconds} second${seconds === 1 ? "" : "s"}`
}

export const count = (value: number): string => value.toLocaleString("en")

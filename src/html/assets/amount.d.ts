/** Types of `amount.js`, which runs in the browser and on the server. */

/** Formatting parameters of a currency. */
export interface Money {
  /** Three letters in either case. */
  readonly currency: string
  /** Decimal places. */
  readonly decimals: number
  readonly locale: string
}

/** Bounds of an amount in minor units. */
export interface Bounds {
  readonly minimum: number
  readonly maximum: number
}

export type ProblemKind = "missing" | "ambiguous" | "unreadable" | "fraction" | "decimals" | "too_small" | "too_large"

/** The reason why a text is no amount, and the values for a text about it. */
export interface Problem {
  readonly problem: ProblemKind
  readonly values: Readonly<Record<string, string | number>>
}

/** An amount in minor units, or the problem with it. */
export type Read = { readonly minor: number; readonly problem?: never } | ({ readonly minor?: never } & Problem)

export function formatAmount(minor: number, money: Money): string
export function plainAmount(minor: number, money: Money): string
export function withSignBehindLetters(text: string): string
export function decimalAmount(minor: number, money: Money): string
export function readAmount(text: string, money: Money): Read
export function readAmountWithin(text: string, field: Money & Bounds): Read
export function problemText(problem: Problem, texts: Readonly<Record<ProblemKind, string>>): string

/** Types of `amount.js`, which the server runs as well as the browser. */

/** How amounts of a currency are written. */
export interface Money {
  /** Three letters, in either case. */
  readonly currency: string
  /** Digits behind the decimal point. */
  readonly decimals: number
  readonly locale: string
}

/** The least and the most that can be entered, in minor units. */
export interface Bounds {
  readonly minimum: number
  readonly maximum: number
}

/** An amount in minor units, or what is wrong with it, in words for the payer. */
export type Read =
  | { readonly minor: number; readonly problem?: never }
  | { readonly minor?: never; readonly problem: string }

export function formatAmount(minor: number, money: Money): string
export function plainAmount(minor: number, money: Money): string
export function decimalAmount(minor: number, money: Money): string
export function readAmount(text: string, money: Money): Read
export function readAmountWithin(text: string, field: Money & Bounds): Read

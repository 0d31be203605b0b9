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

/** An amount in minor units, or the error about it for the payer. */
export type Read =
  | { readonly minor: number; readonly problem?: never }
  | { readonly minor?: never; readonly problem: string }

export function formatAmount(minor: number, money: Money): string
export function plainAmount(minor: number, money: Money): string
export function decimalAmount(minor: number, money: Money): string
export function readAmount(text: string, money: Money): Read
export function readAmountWithin(text: string, field: Money & Bounds): Read

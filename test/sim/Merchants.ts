/** Merchants who run random programs over the API concurrently, each step checked by its state table. */
import { Effect } from "effect"
import * as CheckoutSessions from "../models/CheckoutSessions.ts"
import * as PaymentIntents from "../models/PaymentIntents.ts"
import * as PaymentMethods from "../models/PaymentMethods.ts"
import { follow } from "../models/Program.ts"
import * as Refunds from "../models/Refunds.ts"
import type { Wire } from "../models/Wire.ts"
import { inSeconds } from "./Clients.ts"

/** A program for each of four merchants. */
export const programs = {
  paymentIntents: PaymentIntents.program,
  checkoutSessions: CheckoutSessions.program,
  paymentMethods: PaymentMethods.program,
  refunds: Refunds.program
}

export interface Programs {
  readonly paymentIntents: typeof PaymentIntents.program.Type
  readonly checkoutSessions: typeof CheckoutSessions.program.Type
  readonly paymentMethods: typeof PaymentMethods.program.Type
  readonly refunds: typeof Refunds.program.Type
}

export const carryOut = (
  { checkoutSessions, paymentIntents, paymentMethods, refunds }: Programs,
  wires: readonly [Wire, Wire, Wire, Wire]
): Effect.Effect<void> => {
  const [first, second, third, fourth] = wires
  const merchants = [
    Effect.flatMap(
      Effect.promise(() => PaymentIntents.over(first)),
      (driver) => follow(PaymentIntents.table, driver, inSeconds(paymentIntents))
    ),
    Effect.flatMap(
      Effect.promise(() => CheckoutSessions.over(second)),
      (driver) => follow(CheckoutSessions.table, driver, inSeconds(checkoutSessions))
    ),
    Effect.flatMap(
      Effect.promise(() => PaymentMethods.over(third)),
      (driver) => follow(PaymentMethods.table, driver, inSeconds(paymentMethods))
    ),
    Effect.suspend(() => follow(Refunds.table, Refunds.over(fourth), inSeconds(refunds)))
  ]
  return Effect.all(merchants, { concurrency: "unbounded", discard: true })
}

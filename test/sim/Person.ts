/**
 * The person who decides about operations without an outcome (semantics operations.decide), as the gateway's ledger
 * shows: its dashboard is what such a person reads.
 */
import { Effect } from "effect"
import type { Operation } from "../../src/domain/Operation.ts"
import type { AccountsShape, Unavailable } from "../../src/engine/Accounts.ts"
import * as OperationOutcomes from "../../src/payments/lifecycles/OperationOutcomes.ts"
import type { OperationDocument } from "../../src/payments/lifecycles/Operations.ts"
import { Processors } from "../../src/payments/processing/Processor.ts"
import { OPERATION } from "../../src/payments/shared/Documents.ts"
import { PaymentsConfig } from "../../src/payments/shared/PaymentsConfig.ts"
import { paymentsConfig } from "../support/PaymentsConfig.ts"
import type { GatewayWorld } from "./GatewayWorld.ts"

/** The operations of an account, up to a hundred. */
export const operationsOf = (
  accounts: AccountsShape,
  account: string
): Effect.Effect<ReadonlyArray<OperationDocument>, Unavailable> =>
  Effect.map(
    accounts.list(account, { kind: OPERATION.name, limit: 100 }),
    ({ documents }) => documents as unknown as ReadonlyArray<OperationDocument>
  )

/** Decides about an operation. Returns false if that has to wait for another operation's outcome. */
export const decide = Effect.fnUntraced(function* (
  accounts: AccountsShape,
  account: string,
  { id, payment_intent }: Operation,
  { gateway, happened }: GatewayWorld
): Effect.fn.Return<boolean, Unavailable> {
  const hasHappened = gateway.hasEffect(id)
  const command = OperationOutcomes.decide(id, hasHappened ? `gw_${payment_intent}` : null).pipe(
    Effect.provideService(PaymentsConfig, paymentsConfig()),
    Effect.provideService(Processors, gateway.processors)
  )
  const isDecided = yield* accounts.run(account, command)
  if (isDecided) happened.note(hasHappened ? "person decided that it happened" : "person decided that it did not")
  return isDecided
})

/**
 * Decides about a payment's operations as the ledger shows now. A request may still be on its way, and a payer or a
 * bank may be asked, so the decision may be wrong. Returns whether there was one.
 */
export const decideAtOnce = Effect.fnUntraced(function* (
  accounts: AccountsShape,
  account: string,
  payment: string,
  world: GatewayWorld
): Effect.fn.Return<boolean, Unavailable> {
  const undecided = (yield* operationsOf(accounts, account)).filter(
    ({ value: { payment_intent, status } }) => payment_intent === payment && status === "decide"
  )
  let isDecided = false
  for (const { value } of undecided) {
    if (!(yield* decide(accounts, account, value, world))) continue
    world.happened.note("person decided among others")
    isDecided = true
  }
  return isDecided
})

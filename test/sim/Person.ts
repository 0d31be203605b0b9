/**
 * The person who decides about operations without an outcome (semantics operations.decide), as the gateway's ledger
 * shows: its dashboard is what such a person reads.
 */
import { Effect } from "effect"
import type { Operation } from "../../src/domain/Operation.ts"
import type { AccountsShape, Unavailable } from "../../src/engine/Accounts.ts"
import type { Document } from "../../src/engine/log/Document.ts"
import * as OperationOutcomes from "../../src/payments/lifecycles/OperationOutcomes.ts"
import { Processors } from "../../src/payments/processing/Processor.ts"
import { OPERATION, type OperationHidden } from "../../src/payments/shared/Documents.ts"
import { PaymentsConfig } from "../../src/payments/shared/PaymentsConfig.ts"
import { paymentsConfig } from "../support/PaymentsConfig.ts"
import type { GatewayWorld } from "./GatewayWorld.ts"

export type OperationDocument = Document<Operation, OperationHidden>

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
 * Decides about a payment's operations of which the ledger has the last word: no request is on its way to the gateway,
 * and neither a payer nor a bank is asked. Returns whether there was one.
 */
export const decideWhatIsKnown = Effect.fnUntraced(function* (
  accounts: AccountsShape,
  account: string,
  payment: string,
  world: GatewayWorld
): Effect.fn.Return<boolean, Unavailable> {
  const { gateway, happened } = world
  const undecided = (yield* operationsOf(accounts, account)).filter(
    ({ value: { id, payment_intent, status } }) =>
      payment_intent === payment && status === "decide" && gateway.isSettled(id, payment)
  )
  let isDecided = false
  for (const { value } of undecided) {
    if (!(yield* decide(accounts, account, value, world))) continue
    happened.note("person decided among others")
    isDecided = true
  }
  return isDecided
})

/**
 * Compares a restored installation with its processor, page by page (semantics processors.reconcile): the processor's
 * list of operations with Till's, then each of Till's operations without an outcome with the processor's word.
 *
 * - An operation of the list that Till has lost is taken in by the lifecycle's own step, if its payment is known and
 *   the step needs nothing that was lost with it. Lost authorizations do: their cards. They are reported.
 * - The list only hints: the processor's answer to a look at the operation is applied.
 * - An operation that the processor has not carried out is given up there before Till calls it so. It is not repeated,
 *   because the lost part of the history may have another one in its place.
 * - A page that was compared twice has its effect once, so a reconciliation that was cut off begins anew.
 */
import { Effect, Option } from "effect"
import type { Operation, OperationStatus } from "../domain/Operation.ts"
import type { AccountsShape, Unavailable } from "../engine/Accounts.ts"
import type { AccountId } from "../engine/log/Document.ts"
import { OPERATION, PAYMENT_INTENT } from "../payments/shared/Documents.ts"
import {
  type Discrepancy,
  NotReconciled,
  type OperationDispatcherShape,
  type ReconciledPage,
  type ReconciliationStep
} from "../payments/lifecycles/OperationDispatcher.ts"
import type { OperationDocument } from "../payments/lifecycles/Operations.ts"
import type { ProcessorsShape } from "../payments/processing/Processor.ts"
import { isDocumentOf } from "../payments/shared/ReadDocument.ts"
import type { ListedOperation } from "../payments/processing/RemoteProcessor.ts"

const PAGE = 50
/** Payments that are compared at once. */
const AT_ONCE = 16
/** Less than the control socket's time for an answer, in milliseconds. */
const STEP_MILLIS_MAX = 15_000

/** Ids of Till's documents. The list has whatever the processor puts there. */
const ID = /^(?:op|pi)_[0-9A-Za-z]{1,64}$/u
const REFERENCE = /^[^\p{Cc}]{1,255}$/u

/** Words of a processor for an operation that has moved no money, and does not wait for any. */
const NOTHING_MOVED: ReadonlySet<string> = new Set(["declined", "too_late", "not_executed", "never_seen"])

/** True if a final operation has the outcome that the list has. */
const agrees = ({ amount, currency, outcome, payment_intent }: Operation, listed: ListedOperation): boolean =>
  outcome!.kind === "approved" || listed.status === "approved"
    ? outcome!.kind === listed.status &&
      amount === listed.amount &&
      currency === listed.currency &&
      payment_intent === listed.payment
    : outcome!.kind === listed.status || NOTHING_MOVED.has(listed.status)

const ofListed = (listed: ListedOperation, result: Discrepancy["result"]): Discrepancy => ({ ...listed, result })

const ofOperation = (
  { amount, currency, id, kind, payment_intent: payment, reference }: Operation,
  result: Discrepancy["result"]
): Discrepancy => ({ id, result, status: null, kind, payment, reference, amount, currency })

export interface Needs extends Pick<OperationDispatcherShape, "adopt"> {
  readonly accounts: Pick<AccountsShape, "read" | "list">
  readonly processors: Pick<ProcessorsShape, "byId">
  readonly find: (account: AccountId, id: string) => Effect.Effect<OperationDocument | undefined, Unavailable>
  /** Asks the processor about an operation, and gives up there what it has not carried out. */
  readonly settle: (account: AccountId, id: string) => Effect.Effect<boolean, Unavailable>
}

export const make = (needs: Needs): OperationDispatcherShape["reconcile"] => {
  return (account, step) =>
    Effect.gen(function* () {
      const processor = needs.processors.byId(step.processor)
      if (processor === null) return yield* new NotReconciled({ message: `There is no processor ${step.processor}.` })
      if (step.part !== "list") return yield* withoutOutcome(needs, account, step, step.part)
      const page = yield* processor.list(step.since, step.after)
      if (page.kind === "unavailable") return yield* new NotReconciled({ message: page.why })
      const payments = [...Map.groupBy(page.operations, ({ payment }) => payment).values()]
      const compared = yield* Effect.forEach(
        payments,
        (operations) => Effect.forEach(operations, (listed) => compare(needs, account, step.processor, listed)),
        { concurrency: AT_ONCE }
      )
      const discrepancies = compared.flat().filter((one) => one !== null)
      return { compared: page.operations.length, discrepancies, next: page.next } satisfies ReconciledPage
    }).pipe(
      Effect.timeoutOption(STEP_MILLIS_MAX),
      Effect.flatMap(
        Option.match({
          onNone: () => Effect.fail(new NotReconciled({ message: "The processor answers too slowly: try again." })),
          onSome: Effect.succeed
        })
      )
    )
}

const compare = Effect.fnUntraced(function* (
  needs: Needs,
  account: AccountId,
  processor: string,
  listed: ListedOperation
): Effect.fn.Return<Discrepancy | null, Unavailable> {
  const { id, status } = listed
  const known = ID.test(id) ? yield* needs.accounts.read(account, id) : undefined
  if (!isDocumentOf(known, OPERATION) || known.value.processor !== processor) {
    return NOTHING_MOVED.has(status) ? null : yield* takeIn(needs, account, processor, listed)
  }
  if (known.value.status === "final" && agrees(known.value, listed)) return null
  yield* needs.settle(account, id)
  const after = (yield* needs.find(account, id))?.value
  // Operations without an outcome are compared by their own parts.
  return after?.status !== "final" || agrees(after, listed) ? null : ofListed(listed, "differs")
})

/** Takes in an operation that Till does not have. */
const takeIn = Effect.fnUntraced(function* (
  { accounts, adopt }: Needs,
  account: AccountId,
  processor: string,
  listed: ListedOperation
): Effect.fn.Return<Discrepancy | null, Unavailable> {
  const { amount, id, kind, payment } = listed
  const found = payment !== null && ID.test(payment) ? yield* accounts.read(account, payment) : undefined
  if (!isDocumentOf(found, PAYMENT_INTENT)) return ofListed(listed, "unknown_payment")
  const remote = found.hidden?.remote
  if (remote?.refunds?.includes(id) === true) return null
  const isLost = id.startsWith(`${OPERATION.prefix}_`)
  const isFit = amount !== null && remote?.processor === processor && (isLost ? ID : REFERENCE).test(id)
  if (!isFit || kind === null || kind === "authorize") return ofListed(listed, "unknown_operation")
  const made = { processor, id, isLost, kind, amount, payment: found.value.id }
  const adopted = yield* adopt(account, made, "look")
  if (adopted === "nothing") return null
  return ofListed(listed, adopted === "adopted" ? "taken_in" : "unanswered")
})

/** Compares a page of Till's operations in a status with the processor. */
const withoutOutcome = Effect.fnUntraced(function* (
  { accounts, find, settle }: Needs,
  account: AccountId,
  { after, processor }: ReconciliationStep,
  status: OperationStatus
): Effect.fn.Return<ReconciledPage, Unavailable> {
  const { documents, hasMore } = yield* accounts.list(account, {
    kind: OPERATION.name,
    prefix: OPERATION.prefix,
    labels: { status },
    limit: PAGE,
    ...(after !== null && { olderThan: after })
  })
  const theirs = documents
    .filter((one) => isDocumentOf(one, OPERATION))
    .filter(({ value }) => value.processor === processor)
  const compared = yield* Effect.forEach(
    theirs,
    Effect.fnUntraced(function* ({ id, value }) {
      const isHeard = yield* settle(account, id)
      const now = (yield* find(account, id))?.value ?? value
      if (now.status === "decide") return ofOperation(now, "decide")
      return now.status === "final" || (now.status === "waiting" && isHeard) ? null : ofOperation(now, "unanswered")
    }),
    { concurrency: AT_ONCE }
  )
  const discrepancies = compared.filter((one) => one !== null)
  return { compared: theirs.length, discrepancies, next: hasMore ? documents.at(-1)!.id : null }
})

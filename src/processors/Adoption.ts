/**
 * Takes in operations that a processor has carried out and this installation has not begun (semantics
 * operations.adopted): refunds that were made at the processor, and operations that a restore has lost. The processor's
 * answer to a look at the operation decides, whatever has named it.
 */
import { Effect } from "effect"
import type { AccountsShape, Unavailable } from "../engine/Accounts.ts"
import type { AccountId } from "../engine/log/Document.ts"
import { logOf } from "../engine/process/Log.ts"
import { PAYMENT_INTENT } from "../payments/shared/Documents.ts"
import type { OperationDispatcherShape } from "../payments/lifecycles/OperationDispatcher.ts"
import * as OperationOutcomes from "../payments/lifecycles/OperationOutcomes.ts"
import type { ProcessorsShape } from "../payments/processing/Processor.ts"
import { isDocumentOf } from "../payments/shared/ReadDocument.ts"

const log = logOf("processors")

export interface Needs {
  readonly accounts: Pick<AccountsShape, "read">
  readonly processors: Pick<ProcessorsShape, "byId">
  readonly written: <A>(
    account: AccountId,
    command: Effect.Effect<A, never, OperationOutcomes.OutcomeServices>
  ) => Effect.Effect<A, Unavailable>
}

export const make = ({ accounts, processors, written }: Needs): OperationDispatcherShape["adopt"] =>
  Effect.fnUntraced(function* (
    account,
    { processor: id, ...made },
    by
  ): Effect.fn.Return<"adopted" | "nothing" | "unheard", Unavailable> {
    const payment = yield* accounts.read(account, made.payment)
    const processor = processors.byId(id)
    if (!isDocumentOf(payment, PAYMENT_INTENT) || processor === null) return "nothing"
    const found = yield* processor.look({ ...made, currency: payment.value.currency })
    switch (found.kind) {
      case "unknown":
      case "in_progress":
        return "unheard"
      case "approved":
      case "pending":
        return (yield* written(account, OperationOutcomes.adopt(id, made, found, by))) ? "adopted" : "unheard"
      case "mismatch":
        yield* log.warning(`The processor ${id} contradicts itself about ${made.id}`, found.why, { cause: "adopt" })
        return "nothing"
      default:
        return "nothing"
    }
  })

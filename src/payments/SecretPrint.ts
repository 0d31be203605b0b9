/**
 * Which secret an installation's data was written with. With another one, the secrets of webhook endpoints and what
 * repeated requests are answered cannot be read, and a request with a card is not known again; so nothing may start.
 */
import { Data, Effect, Redacted } from "effect"
import { createHmac } from "node:crypto"
import type { Kind } from "../engine/Document.ts"
import { Transaction } from "../engine/Transaction.ts"
import type { PaymentsConfigShape } from "./PaymentsConfig.ts"

const SECRET_PRINT: Kind<{ readonly id: string; readonly print: string }> = { name: "secret_print" }
const ID = "secret_print"

/** The data was written with another secret. */
export class ForeignSecret extends Data.TaggedError("ForeignSecret") {}

/** Fails unless the installation's secret is the one of its first start, from which the print is kept. */
export const requireOwnSecret = Effect.fnUntraced(function* ({ sealingKey }: Pick<PaymentsConfigShape, "sealingKey">) {
  const transaction = yield* Transaction
  const print = createHmac("sha256", Redacted.value(sealingKey)).update("print of the secret").digest("hex")
  const known = yield* transaction.get(SECRET_PRINT, ID)
  if (known === undefined) transaction.put(SECRET_PRINT, { id: ID, print })
  else if (known.value.print !== print) return yield* new ForeignSecret()
})

/**
 * The print of the secret that an installation's data was written with. With another one, the secrets of webhook endpoints and what
 * repeated requests are answered cannot be read, and a request with a card is not known again; so nothing may start.
 */
import { Effect, Redacted, Schema } from "effect"
import { createHmac } from "node:crypto"
import type { Document } from "../engine/Document.ts"
import { Formats } from "../engine/Formats.ts"
import { Transaction } from "../engine/Transaction.ts"
import { Views } from "../engine/Views.ts"
import { INSTALLATION } from "./AccountIds.ts"
import type { Kept } from "./Documents.ts"
import { PaymentsConfig } from "./PaymentsConfig.ts"
import type { PaymentsConfigShape } from "./PaymentsConfig.ts"

const SecretPrint = Schema.Struct({ id: Schema.String, print: Schema.String })
type SecretPrint = typeof SecretPrint.Type
export const SECRET_PRINT: Kept<SecretPrint> = { name: "secret_print", shape: { value: SecretPrint } }
const ID = "secret_print"

/** The data was written with another secret. */
export class ForeignSecret extends Schema.TaggedError<ForeignSecret>()("ForeignSecret", {}) {}

const printOf = ({ sealingKey }: Pick<PaymentsConfigShape, "sealingKey">): string =>
  createHmac("sha256", Redacted.value(sealingKey)).update("print of the secret").digest("hex")

/** Keeps the print at the first start; fails with `ForeignSecret` if there is another one. */
export const keepPrint = Effect.fnUntraced(function* (
  config: PaymentsConfigShape
): Effect.fn.Return<void, ForeignSecret, Transaction> {
  const transaction = yield* Transaction
  const known = yield* transaction.get(SECRET_PRINT, ID)
  if (known === undefined) transaction.put(SECRET_PRINT, { id: ID, print: printOf(config) })
  else if (known.value.print !== printOf(config)) return yield* new ForeignSecret()
})

/** Fails with `ForeignSecret` if the views have another print. It is asked before anything runs that works by itself. */
export const requireOwnSecret = Effect.gen(function* () {
  const formats = yield* Formats
  const views = yield* Views
  const [row] = yield* views.documents([{ account: INSTALLATION, id: ID }])
  if (row === undefined) return
  const { value } = formats.document(row) as Document<SecretPrint>
  if (value.print !== printOf(yield* PaymentsConfig)) return yield* new ForeignSecret()
})

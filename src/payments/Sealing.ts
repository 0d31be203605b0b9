/**
 * Sealing encrypts secrets that have to be stored and read again, such as those that sign webhooks, and authenticates
 * them, by AES-256-GCM with a key of the installation's own. So the database alone does not give them away.
 *
 * What is sealed for one purpose does not open for another: `purpose` is authenticated along with it. A nonce is random
 * and never reused within what one key is ever going to seal (96 bits; 2^32 texts are safe).
 *
 * The installation keeps a print of the secret that its data was written with. With another one, the secrets of webhook
 * endpoints and what repeated requests are answered cannot be read, and a request with a card is not known again; so
 * nothing may start.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto"
import { Effect, Redacted, Schema } from "effect"
import type { Document } from "../engine/log/Document.ts"
import { DocumentFormats } from "../engine/views/DocumentFormats.ts"
import type { StorageFailure } from "../engine/log/Journal.ts"
import { Transaction } from "../engine/actor/Transaction.ts"
import { Views } from "../engine/views/Views.ts"
import { INSTALLATION } from "./AccountIds.ts"
import type { Kept } from "./Documents.ts"
import type { PaymentsConfigShape } from "./PaymentsConfig.ts"
import { PaymentsConfig } from "./PaymentsConfig.ts"

const ALGORITHM = "aes-256-gcm"
const NONCE_BYTES = 12
const TAG_BYTES = 16

export interface Sealing {
  /** 32 bytes. */
  readonly key: Redacted.Redacted<Uint8Array>
  /** Names what is sealed, and whose it is. */
  readonly purpose: string
}

/** Seals a text: nonce, ciphertext and tag in base64url. */
export const seal = ({ key, purpose }: Sealing, text: string): string => {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, Redacted.value(key), nonce).setAAD(Buffer.from(purpose))
  return Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]).toString("base64url")
}

/** Opens what `seal` has made. Throws for anything that was not sealed with the same key and for the same purpose. */
export const open = ({ key, purpose }: Sealing, sealed: string): string => {
  const bytes = Buffer.from(sealed, "base64url")
  const nonce = bytes.subarray(0, NONCE_BYTES)
  const decipher = createDecipheriv(ALGORITHM, Redacted.value(key), nonce, { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(purpose))
    .setAuthTag(bytes.subarray(-TAG_BYTES))
  return decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8")
}

const SecretPrint = Schema.Struct({ id: Schema.String, print: Schema.String })
type SecretPrint = typeof SecretPrint.Type
export const SECRET_PRINT: Kept<SecretPrint> = { name: "secret_print", shape: { value: SecretPrint } }
const SECRET_PRINT_ID = "secret_print"

/** The data was written with another secret. */
export class ForeignSecret extends Schema.TaggedError<ForeignSecret>()("ForeignSecret", {}) {}

/** What the installation keeps of the secret. */
export const printOf = ({ sealingKey }: Pick<PaymentsConfigShape, "sealingKey">): string =>
  createHmac("sha256", Redacted.value(sealingKey)).update("print of the secret").digest("hex")

/** Keeps the print at the first start; fails with `ForeignSecret` if there is another one. */
export const keepPrint = Effect.fnUntraced(function* (
  print: string
): Effect.fn.Return<void, ForeignSecret, Transaction> {
  const transaction = yield* Transaction
  const known = yield* transaction.get(SECRET_PRINT, SECRET_PRINT_ID)
  if (known === undefined) transaction.put(SECRET_PRINT, { id: SECRET_PRINT_ID, print })
  else if (known.value.print !== print) return yield* new ForeignSecret()
})

/**
 * Fails with `ForeignSecret` if the views have another print. It is asked before anything runs that works by itself.
 */
export const requireOwnSecret: Effect.Effect<
  void,
  ForeignSecret | StorageFailure,
  DocumentFormats | Views | PaymentsConfig
> = Effect.gen(function* () {
  const formats = yield* DocumentFormats
  const views = yield* Views
  const [row] = yield* views.documents([{ account: INSTALLATION, id: SECRET_PRINT_ID }])
  if (row === undefined) return
  const { value } = formats.document(row) as Document<SecretPrint>
  if (value.print !== printOf(yield* PaymentsConfig)) return yield* new ForeignSecret()
})

/**
 * Encrypts and authenticates stored secrets, such as those that sign webhooks, with AES-256-GCM and the installation's
 * own key, so that the database alone does not reveal them.
 *
 * A text sealed for one `purpose` does not open for another, because the purpose is authenticated data. Nonces are
 * random; 96 bits do not collide within the number of texts that one key seals (2^32 are safe).
 *
 * The installation stores a fingerprint of the secret with which its data was written. A process with another secret
 * could read neither webhook secrets nor stored responses, and would not recognize repeated requests with a card, so it
 * refuses to start.
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
import { PaymentsConfig, type PaymentsConfigShape } from "./PaymentsConfig.ts"

const ALGORITHM = "aes-256-gcm"
const NONCE_BYTES = 12
const TAG_BYTES = 16

export interface Sealing {
  /** 32 bytes. */
  readonly key: Redacted.Redacted<Uint8Array>
  /** Names the kind of text and its owner. */
  readonly purpose: string
}

/** Seals a text: nonce, ciphertext and tag in base64url. */
export const seal = ({ key, purpose }: Sealing, text: string): string => {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, Redacted.value(key), nonce).setAAD(Buffer.from(purpose))
  return Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]).toString("base64url")
}

/** Decrypts a text of `seal`. Throws for any text that was not sealed with the same key and purpose. */
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

export class ForeignSecret extends Schema.TaggedError<ForeignSecret>()("ForeignSecret", {}) {}

/** Computes the fingerprint of the secret that the installation stores. */
export const printOf = ({ sealingKey }: Pick<PaymentsConfigShape, "sealingKey">): string =>
  createHmac("sha256", Redacted.value(sealingKey)).update("print of the secret").digest("hex")

/** Stores the fingerprint at the first start; fails with `ForeignSecret` if another one is stored. */
export const keepPrint = Effect.fnUntraced(function* (
  print: string
): Effect.fn.Return<void, ForeignSecret, Transaction> {
  const transaction = yield* Transaction
  const known = yield* transaction.get(SECRET_PRINT, SECRET_PRINT_ID)
  if (known === undefined) transaction.put(SECRET_PRINT, { id: SECRET_PRINT_ID, print })
  else if (known.value.print !== print) return yield* new ForeignSecret()
})

/** Fails with `ForeignSecret` if the views have another fingerprint. Runs before everything that acts by itself. */
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

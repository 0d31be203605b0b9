/**
 * Merchants' logos (semantics pages.logo). The installation's account holds them beside the merchants, so the journal,
 * backups and every process have them, and both environments show the same one.
 *
 * A merchant has one document: a new image replaces the one before. Its name is a hash of its content, so an address
 * never shows another image. The journal keeps every image that was uploaded, so their number is limited per day.
 */
import { hash } from "node:crypto"
import { Effect, Schema } from "effect"
import { ParameterInvalid } from "../../domain/Errors.ts"
import { ImageType, type RasterImage } from "../../domain/RasterImage.ts"
import { secondsOf } from "../../domain/Time.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { INSTALLATION } from "../shared/AccountIds.ts"
import type { Kept } from "../shared/Documents.ts"
import * as Merchants from "./Merchants.ts"
import { readDocument } from "../shared/ReadDocument.ts"

/** Uploads of a merchant within 24 hours. */
export const UPLOADS_MAX = 20
const DAY_SECONDS = 86_400

const Logo = Schema.Struct({
  /** `logo:<id of the merchant>` */
  id: Schema.String,
  /** Null after it was removed. */
  image: Schema.NullOr(
    Schema.Struct({
      /** Hash and extension, such as `3q2-7w….png`. */
      name: Schema.String,
      type: ImageType,
      /** The file, in base64. */
      content: Schema.String
    })
  ),
  /** Unix seconds of the uploads within the last 24 hours, oldest first. */
  uploaded: Schema.Array(Schema.Int)
})
export const LOGO: Kept<typeof Logo.Type> = { name: "logo", shape: { value: Logo } }

const EXTENSIONS: Readonly<Record<ImageType, string>> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp"
}

const idOf = (merchant: string): string => `logo:${merchant}`

/** The name of an image: a hash of its content, and the extension of its type. */
export const nameOf = ({ bytes, type }: Pick<RasterImage, "bytes" | "type">): string =>
  `${hash("sha256", bytes, "base64url")}.${EXTENSIONS[type]}`

/** Sets a merchant's logo. Returns undefined if there is no such merchant. */
export const upload = Effect.fnUntraced(function* (
  merchant: string,
  image: RasterImage
): Effect.fn.Return<Merchants.Merchant | undefined, ParameterInvalid, Transaction> {
  const transaction = yield* Transaction
  const now = secondsOf(transaction.now)
  const before = (yield* transaction.get(LOGO, idOf(merchant)))?.value
  const name = nameOf(image)
  if (before?.image?.name !== name) {
    const recent = (before?.uploaded ?? []).filter((at) => at > now - DAY_SECONDS)
    if (recent.length >= UPLOADS_MAX) {
      return yield* new ParameterInvalid({ param: "logo", rule: `changed at most ${UPLOADS_MAX} times in 24 hours` })
    }
    const content = Buffer.from(image.bytes).toString("base64")
    transaction.put(LOGO, {
      id: idOf(merchant),
      image: { name, type: image.type, content },
      uploaded: [...recent, now]
    })
  }
  return yield* Merchants.setLogo(merchant, name)
})

/** Removes a merchant's logo. Its document stays, because it counts the uploads. */
export const remove = Effect.fnUntraced(function* (
  merchant: string
): Effect.fn.Return<Merchants.Merchant | undefined, never, Transaction> {
  const transaction = yield* Transaction
  const before = (yield* transaction.get(LOGO, idOf(merchant)))?.value
  if (before !== undefined && before.image !== null) transaction.put(LOGO, { ...before, image: null })
  return yield* Merchants.setLogo(merchant, null)
})

/** Reads a merchant's logo of this name; undefined if it has another one or none. */
export const read = Effect.fnUntraced(function* (merchant: string, name: string) {
  const image = (yield* readDocument(INSTALLATION, LOGO, idOf(merchant)))?.value.image
  return image?.name === name ? { type: image.type, bytes: Buffer.from(image.content, "base64") } : undefined
})

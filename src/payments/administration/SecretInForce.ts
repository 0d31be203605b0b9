/**
 * The fingerprint of the secret that is in force, in the installation's account (semantics operation.secret,
 * operation.roll).
 *
 * A process without that secret could read neither webhook secrets nor stored responses, so it refuses to start. The
 * fingerprint also covers the keys that stay the same through every roll: with others, the process would not recognize
 * repeated requests with a card, payers' links and passwords.
 */
import { Effect, Layer, Schema } from "effect"
import { Accounts } from "../../engine/Accounts.ts"
import type { Document, Millis } from "../../engine/log/Document.ts"
import type { StorageFailure } from "../../engine/log/Journal.ts"
import { RETENTION_MILLIS } from "../../engine/actor/RunningTime.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { Placement } from "../../engine/process/Placement.ts"
import { CommitFeed } from "../../engine/views/CommitFeed.ts"
import { DocumentFormats } from "../../engine/views/DocumentFormats.ts"
import { Views } from "../../engine/views/Views.ts"
import { INSTALLATION } from "../shared/AccountIds.ts"
import type { Kept } from "../shared/Documents.ts"
import { follow } from "../shared/InstallationChanges.ts"
import type { KeyringShape } from "../shared/Keyring.ts"
import { PaymentsConfig } from "../shared/PaymentsConfig.ts"
import { isDocumentOf } from "../shared/ReadDocument.ts"

const SecretPrint = Schema.Struct({
  id: Schema.String,
  print: Schema.String,
  /** Absent from the documents of before the first roll could be: all keys derive from the one secret of `print`. */
  lastingPrint: Schema.optionalKey(Schema.String),
  /** The newest roll; absent before the first. */
  rolled: Schema.optionalKey(
    Schema.Struct({
      /** Wall-clock milliseconds. */
      at: Schema.Int,
      /** Milliseconds of running time. */
      runningAt: Schema.Int
    })
  )
})
export type SecretPrint = typeof SecretPrint.Type
export const SECRET_PRINT: Kept<SecretPrint> = { name: "secret_print", shape: { value: SecretPrint } }
export const SECRET_PRINT_ID = "secret_print"

export class ForeignSecret extends Schema.TaggedError<ForeignSecret>()("ForeignSecret", {}) {}

/** The names of a process' secrets, newest first. */
export const Prints = Schema.Struct({ all: Schema.Array(Schema.String), lastingPrint: Schema.String })
export type Prints = typeof Prints.Type

export const printsOf = ({ all, lastingPrint }: KeyringShape): Prints => ({
  all: all.map(({ print }) => print),
  lastingPrint
})

/** Whether the stored fingerprint is that of a secret which a process has read. */
export const isOwn = ({ all, lastingPrint }: Prints, known: SecretPrint): boolean =>
  all.includes(known.print) && lastingPrint === (known.lastingPrint ?? lastingPrint)

/**
 * Stores the newest secret's fingerprint at the first start, and what an older one lacks; fails with `ForeignSecret`
 * for an unknown one.
 */
export const keepPrint = Effect.fnUntraced(function* (
  prints: Prints
): Effect.fn.Return<void, ForeignSecret, Transaction> {
  const transaction = yield* Transaction
  const known = yield* transaction.get(SECRET_PRINT, SECRET_PRINT_ID)
  const { all, lastingPrint } = prints
  if (known === undefined) transaction.put(SECRET_PRINT, { id: SECRET_PRINT_ID, print: all[0]!, lastingPrint })
  else if (!isOwn(prints, known.value)) return yield* new ForeignSecret()
  else if (known.value.lastingPrint === undefined) transaction.put(SECRET_PRINT, { ...known.value, lastingPrint })
})

/** Puts another secret in force. Fails with `ForeignSecret` if neither it nor the secret before it is in force. */
export const roll = Effect.fnUntraced(function* ({
  from,
  runningAt,
  to
}: {
  readonly from: string
  readonly to: string
  readonly runningAt: Millis
}): Effect.fn.Return<void, ForeignSecret, Transaction> {
  const transaction = yield* Transaction
  const known = yield* transaction.get(SECRET_PRINT, SECRET_PRINT_ID)
  if (known?.value.print === to) return
  if (known?.value.print !== from) return yield* new ForeignSecret()
  transaction.put(SECRET_PRINT, { ...known.value, print: to, rolled: { at: transaction.startedAt, runningAt } })
})

/** The running time is stored every minute, and a process may use the older secret for a moment after a roll. */
const MARGIN_MILLIS = 180_000

/** Returns the running time at which the last answer under the secret before a roll can no longer be repeated. */
export const answersEndAt = ({ rolled }: SecretPrint): Millis =>
  rolled === undefined ? 0 : rolled.runningAt + RETENTION_MILLIS + MARGIN_MILLIS

/** Reads the stored fingerprint from the views; undefined before the first start. */
export const readPrint: Effect.Effect<SecretPrint | undefined, StorageFailure, DocumentFormats | Views> = Effect.gen(
  function* () {
    const formats = yield* DocumentFormats
    const views = yield* Views
    const [row] = yield* views.documents([{ account: INSTALLATION, id: SECRET_PRINT_ID }])
    return row === undefined ? undefined : (formats.document(row) as Document<SecretPrint>).value
  }
)

/**
 * Puts the secret in force that the views name; fails with `ForeignSecret` if it is unknown. Runs before everything
 * that acts by itself.
 */
export const requireOwnSecret = Effect.gen(function* () {
  const known = yield* readPrint
  if (known === undefined) return
  const { keyring } = yield* PaymentsConfig
  if (!isOwn(printsOf(keyring), known)) return yield* new ForeignSecret()
  keyring.follow(known.print)
})

/**
 * Follows rolls as long as the layer lives. `onForeign` runs once, when a secret is put in force that this process has
 * not read: it could not open what the others seal from then on.
 */
export const following = (
  onForeign: Effect.Effect<void>
): Layer.Layer<never, never, Accounts | CommitFeed | PaymentsConfig | Placement> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const { keyring } = yield* PaymentsConfig
      let isForeign = false
      const read = Effect.gen(function* () {
        const known = yield* accounts.read(INSTALLATION, SECRET_PRINT_ID)
        if (!isDocumentOf(known, SECRET_PRINT) || keyring.follow(known.value.print) || isForeign) return
        isForeign = true
        yield* onForeign
      })
      yield* follow(SECRET_PRINT, read)
    })
  )

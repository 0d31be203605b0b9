/**
 * Second factors of people: the secret of an authenticator app, and recovery codes for the loss of the app (semantics
 * dashboard.two_step).
 *
 * The secret is sealed for its person. A recovery code has 80 random bits, so its SHA-256 does not reveal it. A code is
 * compared outside of a command, where the installation's key is at hand, and the command uses it up: a step of the app
 * counts only if it is newer than the last one used, and a recovery code disappears. So no code works twice, also not
 * for two simultaneous requests, and not after the factor was replaced.
 */
import { hash, randomBytes } from "node:crypto"
import { Effect, Redacted, Schema } from "effect"
import { ParameterInvalid } from "../../domain/Errors.ts"
import type { SecondMeans } from "../../domain/Person.ts"
import * as Totp from "../../domain/Totp.ts"
import { secondsOf } from "../../domain/Time.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import type { Document } from "../../engine/log/Document.ts"
import type { Kept } from "../shared/Documents.ts"
import type { PaymentsConfigShape } from "../shared/PaymentsConfig.ts"
import { open, reseal, seal } from "../shared/Sealing.ts"

export const RECOVERY_CODES = 10
const RECOVERY_BYTES = 10

const SecondFactor = Schema.Struct({
  /** `second_factor:<person>` */
  id: Schema.String,
  /** Unix seconds. */
  created: Schema.Int,
  /** The number of unused recovery codes. */
  recovery_codes_left: Schema.Int
})
export type SecondFactor = typeof SecondFactor.Type

const SecondFactorHidden = Schema.Struct({
  /** The app's secret, hex, sealed. */
  sealedSecret: Schema.String,
  /** The newest step of the app whose code was used. */
  lastStep: Schema.Int,
  /** The unused recovery codes, as SHA-256, hex. */
  recoveryCodes: Schema.Array(Schema.String)
})
type SecondFactorHidden = typeof SecondFactorHidden.Type
export type SecondFactorDocument = Document<SecondFactor, SecondFactorHidden>

export const SECOND_FACTOR: Kept<SecondFactor, SecondFactorHidden> = {
  name: "second_factor",
  shape: { value: SecondFactor, hidden: SecondFactorHidden }
}

export const secondFactorId = (person: string): string => `second_factor:${person}`
const personOf = (secondFactorId: string): string => secondFactorId.slice(secondFactorId.indexOf(":") + 1)

/** A code that matched a factor. It holds nothing that could be entered. */
export const Proof = Schema.Struct({
  /** The sealed secret of the factor, which changes with each set-up. */
  factor: Schema.String,
  /** The app's step, or the hash of a recovery code. */
  matched: Schema.Union([Schema.Int, Schema.String])
})
export type Proof = typeof Proof.Type

/** A code that was used before, or whose factor was replaced or turned off since. */
export class CodeUsed extends Schema.TaggedError<CodeUsed>()("CodeUsed", {}) {}

/** A person with a second factor has not proved it. */
export class CodeNeeded extends Schema.TaggedError<CodeNeeded>()("CodeNeeded", {}) {}

type Keys = Pick<PaymentsConfigShape, "keyring">

const sealingOf = ({ keyring }: Keys, person: string) => ({ keyring, purpose: `second factor ${person}` })

/** Seals a factor's secret anew that is under an older secret of the installation (semantics operation.roll). */
export const resealed = (keys: Keys, { hidden, id }: SecondFactorDocument): SecondFactorHidden | undefined => {
  const sealedSecret = reseal(sealingOf(keys, personOf(id)), hidden.sealedSecret)
  return sealedSecret === undefined ? undefined : { ...hidden, sealedSecret }
}

const secretIn = (sealed: string, keys: Keys, person: string): Uint8Array =>
  Buffer.from(open(sealingOf(keys, person), sealed), "hex")

/** Makes a secret for a person's app. Its sealed form goes through the set-up form, so nothing is stored before. */
export const makeSecret = (keys: Keys, person: string) => {
  const secret = randomBytes(Totp.SECRET_BYTES)
  return { secret: secret as Uint8Array, sealed: seal(sealingOf(keys, person), secret.toString("hex")) }
}

/** Opens a secret that a set-up form sends back; undefined for any other text. */
export const openSecret = (keys: Keys, person: string, sealed: string): Uint8Array | undefined => {
  try {
    return secretIn(sealed, keys, person)
  } catch {
    return undefined
  }
}

/** A code as it is compared: without the blanks and dashes that people enter, in lower case. */
const plain = (code: string): string => code.replaceAll(/[\s-]/g, "").toLowerCase()

const hashOf = (person: string, code: string): string => hash("sha256", `${person} ${plain(code)}`, "hex")

/** Compares a code with a person's factor, at a time in Unix seconds; undefined for a wrong one. */
export const match = (
  keys: Keys,
  person: string,
  { hidden }: SecondFactorDocument,
  code: string,
  seconds: number
): Proof | undefined => {
  const factor = hidden.sealedSecret
  const step = Totp.stepOf(secretIn(factor, keys, person), plain(code), seconds)
  if (step !== undefined) return { factor, matched: step }
  const hashed = hashOf(person, code)
  return hidden.recoveryCodes.includes(hashed) ? { factor, matched: hashed } : undefined
}

const find = Effect.fnUntraced(function* (
  person: string
): Effect.fn.Return<SecondFactorDocument | undefined, never, Transaction> {
  const transaction = yield* Transaction
  return yield* transaction.get(SECOND_FACTOR, secondFactorId(person))
})

/** Uses up the code behind a proof. Without a factor nothing has to be proved, and the result is undefined. */
export const useUp = Effect.fnUntraced(function* (
  person: string,
  proof: Proof | null
): Effect.fn.Return<SecondMeans | undefined, CodeNeeded | CodeUsed, Transaction> {
  const found = yield* find(person)
  if (found === undefined) return undefined
  if (proof === null) return yield* new CodeNeeded()
  const transaction = yield* Transaction
  const { hidden, value } = found
  const { matched } = proof
  if (proof.factor !== hidden.sealedSecret) return yield* new CodeUsed()
  if (typeof matched === "number") {
    if (matched <= hidden.lastStep) return yield* new CodeUsed()
    transaction.put(SECOND_FACTOR, value, { ...hidden, lastStep: matched })
    return "app"
  }
  const recoveryCodes = hidden.recoveryCodes.filter((code) => code !== matched)
  if (recoveryCodes.length === hidden.recoveryCodes.length) return yield* new CodeUsed()
  transaction.put(SECOND_FACTOR, { ...value, recovery_codes_left: recoveryCodes.length }, { ...hidden, recoveryCodes })
  return "recovery_code"
})

const newRecoveryCodes = (): ReadonlyArray<string> =>
  Array.from({ length: RECOVERY_CODES }, () =>
    Totp.base32(randomBytes(RECOVERY_BYTES))
      .toLowerCase()
      .replaceAll(/.{4}(?=.)/g, "$&-")
  )

/** A factor with new recovery codes, which are not stored. */
export interface WithRecoveryCodes {
  readonly factor: SecondFactor
  readonly codes: Redacted.Redacted<ReadonlyArray<string>>
}

const putWithCodes = Effect.fnUntraced(function* (
  person: string,
  created: number,
  hidden: Pick<SecondFactorHidden, "sealedSecret" | "lastStep">
): Effect.fn.Return<WithRecoveryCodes, never, Transaction> {
  const transaction = yield* Transaction
  const codes = newRecoveryCodes()
  const factor: SecondFactor = { id: secondFactorId(person), created, recovery_codes_left: codes.length }
  transaction.put(SECOND_FACTOR, factor, { ...hidden, recoveryCodes: codes.map((code) => hashOf(person, code)) })
  return { factor, codes: Redacted.make(codes, { label: "recovery codes" }) }
})

/**
 * Turns a person's factor on, with the sealed secret and the first code of the app. Fails with `ParameterInvalid` for a
 * wrong code, or if the person has a factor.
 */
export const turnOn = Effect.fnUntraced(function* (
  keys: Keys,
  person: string,
  { code, sealed }: { readonly sealed: string; readonly code: string }
): Effect.fn.Return<WithRecoveryCodes, ParameterInvalid, Transaction> {
  const transaction = yield* Transaction
  if ((yield* find(person)) !== undefined) {
    return yield* new ParameterInvalid({ param: null, rule: "about a person without two-step verification" })
  }
  const now = secondsOf(transaction.startedAt)
  const step = Totp.stepOf(secretIn(sealed, keys, person), plain(code), now)
  if (step === undefined) {
    return yield* new ParameterInvalid({ param: "code", rule: "the six digits that your app shows now" })
  }
  return yield* putWithCodes(person, now, { sealedSecret: sealed, lastStep: step })
})

/** Replaces a person's recovery codes. Fails with `ParameterInvalid` without a factor. */
export const renewCodes = Effect.fnUntraced(function* (
  person: string
): Effect.fn.Return<WithRecoveryCodes, ParameterInvalid, Transaction> {
  const found = yield* find(person)
  if (found === undefined) return yield* isOff()
  return yield* putWithCodes(person, found.value.created, found.hidden)
})

const isOff = () => new ParameterInvalid({ param: null, rule: "about a person with two-step verification" })

/** Turns a person's factor off. Fails with `ParameterInvalid` without one. */
export const turnOff = Effect.fnUntraced(function* (
  person: string
): Effect.fn.Return<SecondFactor, ParameterInvalid, Transaction> {
  const found = yield* find(person)
  if (found === undefined) return yield* isOff()
  yield* remove(person)
  return found.value
})

/** Removes a person's factor, if there is one, with the person. */
export const remove = Effect.fnUntraced(function* (person: string): Effect.fn.Return<void, never, Transaction> {
  const transaction = yield* Transaction
  if ((yield* find(person)) !== undefined) transaction.delete(SECOND_FACTOR, secondFactorId(person))
})

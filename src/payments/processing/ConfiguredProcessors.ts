/**
 * The lifecycle of configured processors (semantics processors.*). The installation's account holds them, as it holds
 * merchants and keys, so that every process can resolve them from memory.
 *
 * A merchant has at most one processor per environment that is active or paused, and any number that are retiring:
 * their payments stay with them. Credentials are sealed, and no answer contains them except the one that generates
 * them.
 */
import { Context, Effect, Redacted, Schema } from "effect"
import {
  Processor,
  type ProcessorKind,
  type ProcessorProfile,
  processorStates,
  type ProcessorStep,
  STATUS_AFTER
} from "../../domain/Processor.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { isSecret } from "../../domain/StandardWebhooks.ts"
import { secondsOf } from "../../domain/Time.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import type { Document, Millis } from "../../engine/log/Document.ts"
import { accountOf } from "../shared/AccountIds.ts"
import type { Kept } from "../shared/Documents.ts"
import * as Merchants from "../merchants/Merchants.ts"
import { PaymentsConfig, type PaymentsConfigShape } from "../shared/PaymentsConfig.ts"
import * as Sealing from "../shared/Sealing.ts"

export const ProcessorHidden = Schema.Struct({
  /** The secret shared with the gateway, encrypted. */
  sealedSecret: Schema.String,
  /** The secret before it, for a grace period. */
  previous: Schema.optionalKey(
    Schema.Struct({
      sealedSecret: Schema.String,
      /** Wall-clock milliseconds (semantics time.wall). */
      expiresAt: Schema.Int
    })
  )
})
export type ProcessorHidden = typeof ProcessorHidden.Type
export type ProcessorDocument = Pick<Document<Processor, ProcessorHidden>, "value" | "hidden">

export const PROCESSOR: Kept<Processor, ProcessorHidden> = {
  name: "processor",
  shape: { value: Processor, hidden: ProcessorHidden },
  prefix: PREFIXES.processor,
  labels: ({ livemode, merchant_id, restored_at }) => ({
    merchant_id,
    account: accountOf(merchant_id, livemode),
    ...(restored_at !== undefined && { restored: "true" })
  })
}

/** The active or paused processor of an account, by the account's id. */
const CurrentProcessor = Schema.Struct({ id: Schema.String, processor: Schema.NullOr(Schema.String) })
export const CURRENT_PROCESSOR: Kept<typeof CurrentProcessor.Type> = {
  name: "current_processor",
  shape: { value: CurrentProcessor }
}
/** Returns the id of the document that names an account's active or paused processor. */
export const currentId = (account: string): string => `${account}_processor`

/** The processor does not exist, or its state does not allow the change. `message` is a sentence for an operator. */
export class ProcessorUnfit extends Schema.TaggedError<ProcessorUnfit>()("ProcessorUnfit", {
  message: Schema.String
}) {}

/** A gateway, before or after it is configured. */
export interface GatewayAddress {
  readonly url: string
  /** Newest first. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
}

/** The part of a running service that the administration of processors needs. */
export interface ProcessorGate {
  readonly config: PaymentsConfigShape
  /** Asks a gateway for its profile; fails if it does not answer, or belongs to the other mode. */
  readonly check: (gateway: GatewayAddress, livemode: boolean) => Effect.Effect<ProcessorProfile, ProcessorUnfit>
}

/** Null in a process that serves nothing. */
export const ProcessorGate = Context.Reference<ProcessorGate | null>("till/payments/ProcessorGate", {
  defaultValue: () => null
})

const SECRET_LENGTH = 40

type Keys = Pick<PaymentsConfigShape, "keyring">

const sealingOf = ({ keyring }: Keys, id: string): Sealing.Sealing => ({ keyring, purpose: `processor ${id}` })

/** Seals a processor's secrets anew that are under an older secret of the installation (semantics operation.roll). */
export const resealed = (config: Keys, { hidden, value }: ProcessorDocument): ProcessorHidden | undefined =>
  Sealing.resealPair(sealingOf(config, value.id), hidden)

const sealed = Effect.fnUntraced(function* (id: string, secret: Redacted.Redacted) {
  return Sealing.seal(sealingOf(yield* PaymentsConfig, id), Redacted.value(secret))
})

/** Returns the secrets that count at a time of the wall clock, newest first. */
export const secretsOf = (
  config: Keys,
  { hidden: { previous, sealedSecret }, value: { id } }: ProcessorDocument,
  now: Millis
): ReadonlyArray<Redacted.Redacted> => {
  const open = (text: string) => Redacted.make(Sealing.open(sealingOf(config, id), text), { label: "secret" })
  const older = previous !== undefined && previous.expiresAt > now ? [open(previous.sealedSecret)] : []
  return [open(sealedSecret), ...older]
}

/** The rule that a secret violates; undefined for one that may be used. Never repeats the secret. */
export const secretComplaint = (secret: string): string | undefined =>
  isSecret(secret) ? undefined : "The secret must be whsec_ and the base64 of 24 to 64 bytes."

export interface NewProcessor {
  readonly merchant: string
  readonly livemode: boolean
  readonly kind: ProcessorKind
  readonly url: string
  /** Null generates one. */
  readonly secret: Redacted.Redacted | null
  /** The profile of a gateway that has been checked; null adds a paused processor. */
  readonly profile: ProcessorProfile | null
}

/** Generates a secret: any characters that a transaction generates are base64, in groups of four. */
const newSecret = (transaction: Transaction): Redacted.Redacted =>
  Redacted.make(`whsec_${transaction.newSecret(SECRET_LENGTH)}`, { label: "secret" })

/** Adds a processor: active if it was checked, else paused. Only the result contains a generated secret. */
export const add = Effect.fnUntraced(function* ({ kind, livemode, merchant, profile, secret, url }: NewProcessor) {
  const transaction = yield* Transaction
  if ((yield* Merchants.find(merchant)) === undefined) {
    return yield* new ProcessorUnfit({ message: `There is no merchant ${merchant}.` })
  }
  yield* requireNone(accountOf(merchant, livemode))
  const id = transaction.newId(PREFIXES.processor)
  const made = secret ?? newSecret(transaction)
  const value: Processor = {
    id,
    object: "processor",
    merchant_id: merchant,
    livemode,
    kind,
    status: profile === null ? "paused" : "active",
    url,
    profile,
    created: secondsOf(transaction.startedAt)
  }
  transaction.put(PROCESSOR, value, { sealedSecret: yield* sealed(id, made) })
  putCurrent(transaction, value, id)
  return { value, secret: made }
})

const putCurrent = (transaction: Transaction, { livemode, merchant_id }: Processor, processor: string | null): void =>
  void transaction.put(CURRENT_PROCESSOR, { id: currentId(accountOf(merchant_id, livemode)), processor })

const requireNone = Effect.fnUntraced(function* (account: string) {
  const transaction = yield* Transaction
  const current = (yield* transaction.get(CURRENT_PROCESSOR, currentId(account)))?.value.processor ?? null
  if (current === null) return
  return yield* new ProcessorUnfit({ message: `${account} has the processor ${current}: retire that one first.` })
})

/** Finds a processor; that of one account, if it is given. */
export const find = Effect.fnUntraced(function* (id: string, account?: string) {
  const transaction = yield* Transaction
  const document = yield* transaction.get(PROCESSOR, id)
  const isTheirs =
    document !== undefined &&
    (account === undefined || account === accountOf(document.value.merchant_id, document.value.livemode))
  return isTheirs ? document : yield* noProcessor(id)
})

export const noProcessor = (id: string): ProcessorUnfit =>
  new ProcessorUnfit({
    message: id.startsWith("prc_")
      ? `There is no processor ${id}.`
      : "A processor is named by its id, prc_…, which the list of processors shows."
  })

export interface ProcessorChange {
  readonly url?: string
  readonly secret?: Redacted.Redacted
  /** Seconds for which the secret before counts, too. */
  readonly expiresIn?: number
  /** Null keeps that there was no check yet. */
  readonly profile: ProcessorProfile | null
}

/** Changes a processor's address or secret, or keeps the profile of a check. */
export const update = Effect.fnUntraced(function* (
  id: string,
  { expiresIn = 0, profile, secret, url }: ProcessorChange,
  account?: string
) {
  const transaction = yield* Transaction
  const { hidden, value } = yield* find(id, account)
  const changed: Processor = { ...value, profile, url: url ?? value.url }
  if (secret === undefined) {
    transaction.put(PROCESSOR, changed, hidden)
    return changed
  }
  const expiresAt = transaction.startedAt + expiresIn * 1000
  const previous = expiresIn === 0 ? {} : { previous: { sealedSecret: hidden.sealedSecret, expiresAt } }
  transaction.put(PROCESSOR, changed, { sealedSecret: yield* sealed(id, secret), ...previous })
  return changed
})

/** Replaces a processor's secret by a generated one. The one before it counts for `expiresIn` seconds, too. */
export const rollSecret = Effect.fnUntraced(function* (id: string, expiresIn: number, account?: string) {
  const transaction = yield* Transaction
  const { profile } = (yield* find(id, account)).value
  const secret = newSecret(transaction)
  return { value: yield* update(id, { secret, expiresIn, profile }, account), secret }
})

/** Pauses, resumes or retires a processor. A resumed one has the given profile of its check. */
export const take = Effect.fnUntraced(function* (
  id: string,
  step: ProcessorStep,
  profile: ProcessorProfile | null = null,
  account?: string
) {
  const transaction = yield* Transaction
  const { hidden, value } = yield* find(id, account)
  if (!processorStates.isAllowed(step, value.status)) {
    return yield* new ProcessorUnfit({ message: `${id} is ${value.status}: it cannot be ${PAST[step]}.` })
  }
  if (step === "resume" && value.restored_at !== undefined)
    return yield* new ProcessorUnfit({ message: mustReconcile(id) })
  const status = STATUS_AFTER[step]
  processorStates.requireTransition(id, step, value.status, status)
  if (value.status === "retiring") yield* requireNone(accountOf(value.merchant_id, value.livemode))
  const changed: Processor = { ...value, status, profile: profile ?? value.profile }
  transaction.put(PROCESSOR, changed, hidden)
  if (step !== "pause") putCurrent(transaction, value, status === "active" ? id : null)
  return changed
})

/** The sentence about a processor of a restored installation. */
export const mustReconcile = (id: string): string =>
  `The installation was restored from a backup: run till processors reconcile ${id} first.`

/**
 * Holds processors in an installation that knows nothing after a time: they are only asked until they are reconciled
 * (semantics processors.restored).
 */
export const hold = Effect.fnUntraced(function* (ids: ReadonlyArray<string>, at: Millis) {
  const transaction = yield* Transaction
  for (const id of ids) {
    const { hidden, value } = (yield* transaction.get(PROCESSOR, id))!
    const restored_at = Math.min(value.restored_at ?? Infinity, secondsOf(at))
    transaction.put(
      PROCESSOR,
      { ...value, status: value.status === "active" ? "paused" : value.status, restored_at },
      hidden
    )
  }
})

/** Releases a processor with which the installation was compared. An active one was paused, and has to be resumed. */
export const release = Effect.fnUntraced(function* (id: string) {
  const transaction = yield* Transaction
  const { hidden, value } = yield* find(id)
  const { restored_at: _, ...released } = value
  transaction.put(PROCESSOR, released, hidden)
  return released
})

const PAST: Readonly<Record<ProcessorStep, string>> = { pause: "paused", resume: "resumed", retire: "retired" }

/**
 * Operations at processors as an operator sees them, and a person's decision about one (semantics operations.cli,
 * operations.decide). The command line and the dashboard share the rules.
 *
 * An operation is named by its id alone, which leads to its account. A decision is recorded together with its entry in
 * the audit log, and has two parts: `identify` runs in the process that serves the installation's account, which uses
 * up the codes of two-step verification; `decideAudited` runs where the operation's account is served.
 */
import { Clock, Effect, Fiber, Option, Schema } from "effect"
import { Operation, OperationResolvedBy, OperationStatus } from "../../domain/Operation.ts"
import { hasLengthAtMost } from "../../domain/Length.ts"
import type { Person } from "../../domain/Person.ts"
import { secondsOf } from "../../domain/Time.ts"
import { Accounts, type Unavailable } from "../../engine/Accounts.ts"
import type { AccountId, Document } from "../../engine/log/Document.ts"
import type { Transaction } from "../../engine/actor/Transaction.ts"
import { INSTALLATION, merchantIdOf } from "../shared/AccountIds.ts"
import * as Audit from "../team/Audit.ts"
import { OPERATION, type OperationHidden } from "../shared/Documents.ts"
import { lookAt } from "../lifecycles/OperationDispatcher.ts"
import * as OperationOutcomes from "../lifecycles/OperationOutcomes.ts"
import * as Operations from "../lifecycles/Operations.ts"
import { Passwords } from "../team/Passwords.ts"
import { PaymentsConfig, type PaymentsConfigShape } from "../shared/PaymentsConfig.ts"
import * as People from "../team/People.ts"
import { Processors } from "../processing/Processor.ts"
import { readDocument } from "../shared/ReadDocument.ts"
import * as SecondFactors from "../team/SecondFactors.ts"

/** `message` is a sentence for an operator. */
export class OperationUnfit extends Schema.TaggedError<OperationUnfit>()("OperationUnfit", {
  message: Schema.String
}) {}

const unfit = (message: string) => Effect.fail(new OperationUnfit({ message }))

/** An operation with the facts that the API does not show. Times are in Unix seconds. */
export const OperationReport = Schema.Struct({
  ...Operation.fields,
  merchant_id: Schema.String,
  /** The words that led to the present status, oldest first. */
  evidence: Schema.Array(
    Schema.Struct({
      at: Schema.Int,
      by: OperationResolvedBy,
      outcome: Schema.String,
      detail: Schema.NullOr(Schema.String)
    })
  ),
  /** The time at which the processor is asked next; null for never. */
  next_look: Schema.NullOr(Schema.Int)
})
export type OperationReport = typeof OperationReport.Type

const reportOf = (account: AccountId, document: Operations.OperationDocument, now: number): OperationReport => {
  const { hidden, value } = document
  const next = Operations.nextLookOf(document, now)
  return {
    ...value,
    merchant_id: merchantIdOf(account),
    evidence: hidden.evidence.map((word) => ({ ...word, at: secondsOf(word.at) })),
    next_look: next === null ? null : secondsOf(next)
  }
}

/** Finds the account of an operation. Fails with `isElsewhere` if another process serves it. */
export const accountOfOperation = Effect.fnUntraced(function* (id: string) {
  const account = id.startsWith("op_") ? yield* Accounts.use(({ holder }) => holder(id)) : undefined
  return account ?? (yield* missing(id))
})

const missing = (id: string) =>
  unfit(
    id.startsWith("op_")
      ? `There is no operation ${id}.`
      : "An operation is named by its id, op_…, which the list of operations shows."
  )

export interface ListedOperations {
  readonly account: AccountId
  /** Null for all without an outcome. */
  readonly status: OperationStatus | null
  readonly limit: number
}

const WITHOUT_OUTCOME = OperationStatus.literals.filter((status) => status !== "final")

/** Returns the newest operations of an account in a status, newest first. */
export const list = Effect.fnUntraced(function* ({ account, limit, status }: ListedOperations) {
  const accounts = yield* Accounts
  const { now } = yield* accounts.outlook(account, 1)
  const pages = yield* Effect.forEach(status === null ? WITHOUT_OUTCOME : [status], (status) =>
    accounts.list(account, { kind: OPERATION.name, prefix: OPERATION.prefix, labels: { status }, limit })
  )
  return pages
    .flatMap(({ documents }) => documents as ReadonlyArray<Document<Operation, OperationHidden>>)
    .toSorted((one, other) => (one.id < other.id ? 1 : -1))
    .slice(0, limit)
    .map((document) => reportOf(account, document, now))
})

const find = Effect.fnUntraced(function* (account: AccountId, id: string) {
  return (yield* readDocument(account, OPERATION, id)) ?? (yield* missing(id))
})

export const show = Effect.fnUntraced(function* (id: string) {
  const account = yield* accountOfOperation(id)
  const { now } = yield* Accounts.use(({ outlook }) => outlook(account, 1))
  return reportOf(account, yield* find(account, id), now)
})

/** Less than the control socket's time for an answer, and than a request's. */
const CHECK_MILLIS = 15_000

/** Has the processor asked about an operation now. Ends once its word is durable, or fails after 15 seconds. */
export const check = Effect.fnUntraced(function* (
  account: AccountId,
  id: string
): Effect.fn.Return<void, OperationUnfit | Unavailable, Accounts> {
  const { value } = yield* find(account, id)
  if (value.status === "final") return yield* unfit(`${id} is final: there is nothing to ask.`)
  // A call that takes longer goes on, and its word counts.
  const asked = yield* Effect.forkDetach(lookAt(account, id, "look"))
  const answered = yield* Effect.timeoutOption(Fiber.join(asked), CHECK_MILLIS)
  if (Option.isNone(answered)) {
    return yield* unfit("The processor has not answered within 15 seconds. Till goes on asking.")
  }
})

export interface Credentials {
  readonly merchant: string
  readonly email: string
  readonly password: string
  /** The code of two-step verification; null without one. */
  readonly code: string | null
}

/** Returns the owner of a merchant who has this email and password, and uses the code up if one is needed. */
export const identify = Effect.fnUntraced(function* (
  config: PaymentsConfigShape,
  { code, email, merchant, password }: Credentials
): Effect.fn.Return<Person, OperationUnfit | Unavailable, Accounts> {
  const entry = yield* readDocument(INSTALLATION, People.PERSON_EMAIL, People.personEmailId(email))
  const document = yield* readDocument(INSTALLATION, People.PERSON, entry?.value.people[merchant] ?? "")
  const [found] = yield* Passwords.use(({ ownersOf }) =>
    ownersOf(email, password, document === undefined ? [] : [document])
  ).pipe(Effect.provide(Passwords.layer()), Effect.provideService(PaymentsConfig, config))
  if (found === undefined) return yield* unfit(`This is not the email and password of anybody in ${merchant}.`)
  const { id, role } = found.value
  if (role !== "owner") return yield* unfit(`${email} is not an owner of ${merchant}: only owners decide.`)
  const factor = yield* readDocument(INSTALLATION, SecondFactors.SECOND_FACTOR, SecondFactors.secondFactorId(id))
  if (factor === undefined) return found.value
  const seconds = secondsOf(yield* Clock.currentTimeMillis)
  const proof = SecondFactors.match(config, id, factor, code ?? "", seconds)
  if (proof === undefined) {
    return yield* unfit(code === null ? `${email} also needs a code: add "code".` : "The code is wrong.")
  }
  const used = Effect.mapError(SecondFactors.useUp(id, proof), () => new OperationUnfit({ message: CODE_USED }))
  yield* Accounts.use(({ run }) => run(INSTALLATION, used))
  return found.value
})

const CODE_USED = "This code was already used. Wait for the next one."

/** A person's decision: with the processor's reference it has happened, without one it has not. */
export interface Decision {
  readonly reference: string | null
  readonly reason: string
}

export const REASON_LENGTH_MIN = 10
export const REASON_LENGTH_MAX = 500
const REFERENCE_LENGTH_MAX = 255

/** Returns the rules that a decision violates, by its field. */
export const decisionComplaints = ({ reason, reference }: Decision): Partial<Record<keyof Decision, string>> => {
  const isPlain = (text: string) => !/\p{Cc}/u.test(text)
  const isReason = !hasLengthAtMost(reason.trim(), REASON_LENGTH_MIN - 1) && hasLengthAtMost(reason, REASON_LENGTH_MAX)
  const isReference = reference === null || (reference !== "" && hasLengthAtMost(reference, REFERENCE_LENGTH_MAX))
  return {
    ...(!(isReference && isPlain(reference ?? "")) && {
      reference: `The processor's reference must have 1 to ${REFERENCE_LENGTH_MAX} characters.`
    }),
    ...(!(isReason && isPlain(reason)) && {
      reason: `The reason must be a line of ${REASON_LENGTH_MIN} to ${REASON_LENGTH_MAX} characters.`
    })
  }
}

/** The decision in the words of the audit log. */
export const decisionDetail = ({ reason, reference }: Decision): string =>
  `${reference === null ? "did not happen" : `happened, as ${reference}`}: ${reason}`

/** Decides about an operation. Fails, and changes nothing, if it is none to decide about. */
export const decide = Effect.fnUntraced(function* (
  id: string,
  decision: Decision
): Effect.fn.Return<Operation, OperationUnfit, Transaction | PaymentsConfig | Processors> {
  const found = yield* Operations.find(id)
  if (found === undefined) return yield* missing(id)
  const { status } = found.value
  if (status !== "decide") return yield* unfit(`${id} is ${status}: there is nothing to decide.`)
  if (!(yield* OperationOutcomes.decide(id, decision.reference))) {
    return yield* unfit(
      `${id} cannot be decided now: another operation of its payment has no outcome, or the processor is out of order.`
    )
  }
  return (yield* Operations.find(id))!.value
})

export interface DecisionOfPerson extends Decision {
  readonly operation: string
  readonly person: Audit.AuditedPerson
}

/** Decides about an operation for an owner of its merchant, with the entry in the audit log. */
export const decideAudited = Effect.fnUntraced(function* ({ operation, person, ...decision }: DecisionOfPerson) {
  const complaint = Object.values(decisionComplaints(decision))[0]
  if (complaint !== undefined) return yield* unfit(complaint)
  const account = yield* accountOfOperation(operation)
  const entry = { action: "operation.decide", subject: operation, detail: decisionDetail(decision) }
  const config = yield* PaymentsConfig
  const processors = yield* Processors
  const decided = Effect.andThen(decide(operation, decision), Audit.record(person, entry)).pipe(
    Effect.provideService(PaymentsConfig, config),
    Effect.provideService(Processors, processors)
  )
  return yield* Accounts.use(({ run }) => run(account, decided))
})

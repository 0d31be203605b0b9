/**
 * The outcome of an operation by a gateway's answer (semantics gateways.outcomes). Total: every answer has an outcome,
 * and one that the table does not name is `unknown`.
 */
import { Option, Schema } from "effect"
import { DECLINE_MESSAGES, DeclineCode } from "../../domain/Cards.ts"
import { urlComplaint } from "../../domain/GatewayUrl.ts"
import { clean } from "../../domain/Secrets.ts"
import type { OperationTerms, Outcome } from "../../payments/processing/RemoteProcessor.ts"
import { ErrorBody, State } from "./Messages.ts"
import type { Called, Signed } from "./SignedCall.ts"

/** The question that an answer belongs to. Only `execute` can be refused. */
export type Question = "execute" | "retrieve" | "abandon"

const TEXT_LENGTH_MAX = 500
const CODE_LENGTH_MAX = 100

const decodeState = Schema.decodeUnknownOption(State)
const decodeError = Schema.decodeUnknownOption(ErrorBody)
const isDeclineCode = Schema.is(DeclineCode)

const unknown = (why: string): Outcome => ({ kind: "unknown", why })

/** A gateway's text without card numbers and secrets, of bounded length. */
const plain = (text: string, lengthMax: number): string => clean(text).trim().slice(0, lengthMax)

export const outcomeOf = (question: Question, terms: OperationTerms, called: Called): Outcome => {
  if (called.kind === "unknown") return called
  if (called.kind === "not_sent") {
    // A question that was not sent answers nothing.
    return question === "execute"
      ? { kind: "not_executed", why: called.why, retryAfterMillis: null }
      : unknown(called.why)
  }
  return called.status === 200
    ? Option.match(decodeState(called.body), {
        onNone: () => unknown("The answer is no state of an operation."),
        onSome: (state) => outcomeOfState(question, terms, state)
      })
    : outcomeOfError(question, called)
}

const outcomeOfError = (question: Question, { body, retryAfterMillis, status }: Signed): Outcome => {
  const decoded = decodeError(body)
  if (Option.isNone(decoded)) return unknown(`An answer with status ${status} has no error.`)
  const { code, message, param = null } = decoded.value.error
  const text = plain(message, TEXT_LENGTH_MAX)
  const why = `${code}: ${text}`
  // An error in answer to a question about an operation leaves its outcome open.
  if (question !== "execute") return unknown(why)
  switch (status) {
    case 400:
      return { kind: "refused", param: param === null ? null : plain(param, CODE_LENGTH_MAX), code, message: text }
    case 401:
      return { kind: "not_executed", why, retryAfterMillis: null }
    case 409:
      return code === "mismatch" ? { kind: "mismatch", why } : unknown(why)
    case 429:
    case 503:
      return { kind: "not_executed", why, retryAfterMillis }
    default:
      return unknown(`${status} ${why}`)
  }
}

const outcomeOfState = (question: Question, terms: OperationTerms, state: State): Outcome => {
  if (state.id !== terms.id) return unknown("The answer is about another operation.")
  switch (state.status) {
    case "in_progress":
      return { kind: "in_progress" }
    case "not_executed":
      return { kind: "not_executed", why: "The gateway has not carried out the operation.", retryAfterMillis: null }
    case "never_seen":
      return question === "retrieve"
        ? { kind: "not_executed", why: "The gateway has never seen the operation.", retryAfterMillis: null }
        : unknown("The gateway has never seen an operation that it was sent.")
    default: {
      const difference = differenceOf(terms, state)
      return difference === undefined ? outcomeOfResult(terms, state, state.status) : difference
    }
  }
}

/** Compares an answer with its operation. An operator decides about money that differs. */
const differenceOf = (terms: OperationTerms, state: State): Outcome | undefined => {
  for (const field of ["payment", "amount", "currency"] as const) {
    const [given, expected] = [state[field], terms[field]]
    if (given === undefined || given === null) return unknown(`The answer has no ${field}.`)
    if (given !== expected) return { kind: "mismatch", why: `The ${field} is ${given} instead of ${expected}.` }
  }
  return undefined
}

type Result = Exclude<State["status"], "in_progress" | "not_executed" | "never_seen">

const outcomeOfResult = (terms: OperationTerms, state: State, status: Result): Outcome => {
  const { amount, capture_before: captureBefore = null, currency, reference = null } = state
  const isOutOfPlace = () => unknown(`The status ${status} does not belong to the operation ${terms.kind}.`)
  switch (status) {
    case "approved": {
      if (reference === null) return unknown("The answer has no reference.")
      const end = captureBefore === null ? null : captureBefore * 1000
      return { kind: "approved", reference, amount: amount!, currency: currency!, captureBefore: end }
    }
    case "declined":
      return declineOf(state)
    case "challenge": {
      const url = state.challenge?.url ?? ""
      if (terms.kind !== "authorize") return isOutOfPlace()
      const complaint = urlComplaint(url)
      if (complaint !== undefined) return unknown(`The challenge's URL ${complaint}.`)
      return { kind: "challenge", url, reference }
    }
    case "pending":
      return { kind: "pending", reference }
    case "authenticated":
      return terms.kind === "authorize" ? { kind: "authenticated", reference } : isOutOfPlace()
    case "too_late": {
      if (terms.kind !== "capture" && terms.kind !== "void") return isOutOfPlace()
      const now = state.payment_status ?? null
      return now === null ? unknown("The answer has no payment_status.") : { kind: "too_late", now, reference }
    }
  }
}

const declineOf = ({ decline = null }: State): Outcome => {
  if (decline === null) return unknown("The answer has no decline.")
  const declineCode = isDeclineCode(decline.code) ? decline.code : "generic_decline"
  return {
    kind: "declined",
    declineCode,
    message: plain(decline.message ?? "", TEXT_LENGTH_MAX) || DECLINE_MESSAGES[declineCode],
    processorCode: plain(decline.code, CODE_LENGTH_MAX) || null
  }
}

/** Operations at processors in plain words: in the story of a payment, in lists and on their own pages. */
import type { Operation, OperationKind } from "../../domain/Operation.ts"
import type { Html } from "../../html/Html.ts"
import type { OperationHidden } from "../../payments/shared/Documents.ts"
import { amountText, badge, type Tone, words } from "../frame/Values.ts"

/** The thing that a processor is asked for. */
const THINGS: Readonly<Record<OperationKind, string>> = {
  authorize: "charge",
  capture: "capture",
  void: "release",
  refund: "refund"
}

export const thingOf = ({ kind }: Pick<Operation, "kind">): string => THINGS[kind]

type OutcomeKind = NonNullable<Operation["outcome"]>["kind"]

const OUTCOMES: Readonly<Record<OutcomeKind, readonly [words: string, tone: Tone]>> = {
  approved: ["confirmed", "good"],
  declined: ["declined", "bad"],
  refused: ["refused", "bad"],
  not_executed: ["did not happen", "plain"],
  too_late: ["too late", "plain"],
  superseded: ["replaced by a later attempt", "plain"],
  authenticated: ["authenticated", "good"],
  challenge: ["waiting for the payer", "wait"],
  pending: ["waiting for the processor", "wait"],
  mismatch: ["contradictory", "bad"],
  unknown: ["no answer", "bad"]
}

const STATUSES: Readonly<Record<Exclude<Operation["status"], "final">, readonly [words: string, tone: Tone]>> = {
  open: ["waiting for the answer", "wait"],
  unresolved: ["no answer yet", "bad"],
  waiting: ["waiting", "wait"],
  decide: ["needs a decision", "bad"]
}

/** The status in words, and the name that the API has for it in filters. */
export const statusName = (status: Operation["status"]): string => (status === "final" ? status : STATUSES[status][0])

/** The outcome of a final operation, or the status. */
export const operationBadge = ({ outcome, status }: Operation): Html =>
  status === "final" ? badge(...OUTCOMES[outcome!.kind]) : badge(...STATUSES[status])

export const outcomeWords = (kind: string): string => OUTCOMES[kind as OutcomeKind]?.[0] ?? words(kind)

interface OperationSummary {
  readonly headline: string
  readonly detail?: string | null
  readonly tone?: Tone
  /** The record only asks the processor again. */
  readonly isLook?: boolean
}

/**
 * Summarizes the record that has written an operation, with the events of the record about it. `isTold` is true if the
 * record has moved money, which tells the outcome; the summary is then undefined unless there is more to it.
 */
export const summarizeOperation = (
  operation: Operation,
  { asks, cause, idAtProcessor }: Pick<OperationHidden, "asks" | "cause" | "idAtProcessor">,
  { isTold, types }: { readonly isTold: boolean; readonly types: ReadonlyArray<string> }
): OperationSummary | undefined => {
  const { amount, currency, outcome, resolved_by, status } = operation
  const thing = thingOf(operation)
  const isNews = types.includes("operation.unresolved") || types.includes("operation.resolved")
  if (status === "open") {
    return { headline: `Asked the processor for the ${thing}`, detail: amountText(amount, currency), tone: "wait" }
  }
  if (cause === "processor" && isTold) {
    return { headline: `The ${thing} was ${idAtProcessor === undefined ? "taken in from" : "made at"} the processor` }
  }
  if (asks && !isNews) return { headline: `Asked the processor about the ${thing} again`, isLook: true }
  switch (status) {
    case "unresolved":
      return { headline: `The processor has not answered about the ${thing} yet`, tone: "wait" }
    case "decide":
      return { headline: `Somebody has to decide about the ${thing}`, detail: outcome?.message ?? null, tone: "bad" }
    case "waiting":
      if (isTold) return undefined
      return { headline: `The ${thing} is ${OUTCOMES[outcome!.kind][0]}`, tone: "wait" }
    case "final": {
      const [result, tone] = OUTCOMES[outcome!.kind]
      const isDecided = resolved_by === "operator"
      if (isDecided && !isNews) return { headline: `The processor confirms the decision about the ${thing}` }
      if (isDecided) {
        return { headline: `Decided about the ${thing}: it ${result === "confirmed" ? "happened" : "did not happen"}` }
      }
      if (isTold) return undefined
      return { headline: `The ${thing}: ${result}`, detail: outcome!.message, tone }
    }
  }
}

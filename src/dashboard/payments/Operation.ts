/**
 * The page of an operation at a processor: its facts, each word about it, and what happens next (semantics
 * operations.looks). The processor can be asked at once, and owners decide where there is no certain word (semantics
 * dashboard.operations).
 */
import { Effect, Layer } from "effect"
import { DECIDE_MILLIS } from "../../domain/Operation.ts"
import { ParameterInvalid } from "../../domain/Errors.ts"
import { secondsOf } from "../../domain/Time.ts"
import { Accounts } from "../../engine/Accounts.ts"
import { type Child, html } from "../../html/Html.ts"
import { requireHere } from "../../html/Routing.ts"
import { OPERATION } from "../../payments/shared/Documents.ts"
import * as Administration from "../../payments/administration/OperationAdministration.ts"
import * as Operations from "../../payments/lifecycles/Operations.ts"
import { requireDocument } from "../../payments/shared/ReadDocument.ts"
import { dialog, type Problem } from "../frame/Form.ts"
import { forDevelopers, json } from "../frame/Json.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"
import { table } from "../frame/Table.ts"
import { amountText, code, facts, NOTHING, section, time } from "../frame/Values.ts"
import type { Visit } from "../frame/Visit.ts"
import { historySection } from "../history/History.ts"
import { operationBadge, outcomeWords, thingOf } from "../history/OperationSummary.ts"

const PAGE = "/operations/:id"

/** The next step of an operation, and its time. */
const nextHtml = ({ hidden, value }: Operations.OperationDocument, now: number): Child => {
  const { outcome, status } = value
  const next = Operations.nextLookOf({ hidden, value }, now)
  const at = next === null ? "" : html` Next at ${time(secondsOf(next))}.`
  const leftAt = time(secondsOf(hidden.begunAt + DECIDE_MILLIS))
  switch (status) {
    case "open":
      return "A request waits for the processor's answer, for 20 seconds at most."
    case "unresolved":
      return html`The processor has not answered, so it may have carried this out or not. Till goes on asking.${at} If
      there is no answer until ${leftAt}, a person has to decide.`
    case "waiting":
      return outcome?.kind === "challenge"
        ? html`The payer has to confirm with their bank. Till also asks the processor by itself.${at}`
        : html`The processor needs time. Till asks whether there is an outcome.${at}`
    case "decide":
      return html`${outcome?.message} Look the payment up in the processor's own records, then decide here. Until then
      Till asks once a day, and the processor's word still counts.${at}`
    case "final":
      return hidden.asks
        ? html`A person has decided. Till asks the processor once a day to confirm it.${at}`
        : "Nothing. The outcome is certain."
  }
}

const BY: Readonly<Record<string, string>> = {
  answer: "the answer",
  look: "asked again",
  webhook: "a message",
  operator: "a person"
}

const evidenceTable = ({ hidden: { evidence } }: Operations.OperationDocument): Child =>
  table({
    caption: "Words about this operation, oldest first",
    columns: [
      { name: "Time", cell: ({ at }) => time(secondsOf(at)) },
      { name: "Word", cell: ({ outcome }) => outcomeWords(outcome) },
      { name: "From", cell: ({ by }) => BY[by] },
      { name: "Detail", long: true, cell: ({ detail }) => (detail === null ? NOTHING : html`<bdi>${detail}</bdi>`) }
    ],
    rows: evidence,
    empty: "The processor has given no word yet."
  })

const buttons = (visit: Visit, { value }: Operations.OperationDocument, problem: Problem | null): Child => {
  const { id, status } = value
  const check = dialog("Ask now", {
    visit,
    action: `/operations/${id}/check`,
    submit: "Ask the processor",
    tone: "quiet",
    problem,
    content: () => html`<p>Till asks the processor at once, for up to 15 seconds. Nothing is carried out twice.</p>`
  })
  const decide = dialog("Decide", {
    visit,
    action: `/operations/${id}/decide`,
    submit: "Decide",
    tone: "danger",
    problem,
    content: (fields) => [
      fields.choice({
        name: "outcome",
        label: `Has the ${thingOf(value)} happened?`,
        options: [
          ["", "Choose"],
          ["happened", "Yes, by the processor's records"],
          ["did-not-happen", "No, by the processor's records"]
        ]
      }),
      fields.text({ name: "reference", label: "The processor's reference", hint: "Needed if it happened." }),
      fields.text({ name: "reason", label: "Reason", required: true, hint: "For the audit log." })
    ]
  })
  return html`<div class="buttons">
    ${status !== "final" && visit.may("settle") && check} ${status === "decide" && visit.may("processors") && decide}
  </div>`
}

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const document = yield* requireDocument(visit.account, OPERATION, id)
  const { value } = document
  const { amount, created, currency, outcome, payment_intent, processor, reference, refund } = value
  const { now } = yield* Accounts.use(({ outlook }) => outlook(visit.account, 1))
  return {
    title: `The ${thingOf(value)} of ${amountText(amount, currency)} at the processor`,
    section: "Payments",
    back: ["/operations", "Operations"],
    live: ["operation", "event", "delivery"],
    aside: [operationBadge(value), buttons(visit, document, problem)],
    content: [
      facts([
        ["ID", code(id)],
        ["Payment", objectLink(visit, payment_intent)],
        ["Refund", refund && objectLink(visit, refund)],
        ["Processor", visit.may("processors") ? objectLink(visit, processor) : code(processor)],
        ["Processor's reference", reference && code(reference)],
        ["Outcome", outcome && [outcomeWords(outcome.kind), outcome.code && html` <code>${outcome.code}</code>`]],
        ["Processor's own code", outcome?.processor_code],
        ["Message", outcome?.message],
        ["Began", time(created)],
        ["Changed", time(value.updated)]
      ]),
      section("What happens next", html`<p>${nextHtml(document, now)}</p>`),
      section("What the processor said", evidenceTable(document)),
      yield* historySection(visit, { ids: [id] }),
      forDevelopers(json(visit, value, "The operation as JSON"))
    ]
  }
})

const onPage = { page: PAGE, show } as const

const check = action({
  ...onPage,
  name: "operation.check",
  right: "settle",
  path: `${PAGE}/check`,
  notice: "The processor was asked.",
  prepare: Effect.fnUntraced(function* (visit, { id = "" }) {
    yield* requireHere(visit.account)
    const { status } = (yield* requireDocument(visit.account, OPERATION, id)).value
    const prepared = { entered: {}, command: Effect.map(Operations.find(id), (found) => found!.value) }
    // The form again, which may have brought the outcome.
    if (status === "final") return prepared
    return yield* Administration.check(visit.account, id).pipe(
      Effect.as(prepared),
      Effect.catchTag("OperationUnfit", ({ message }) => Effect.succeed(new Invalid({}, message)))
    )
  })
})

const decide = action({
  ...onPage,
  name: "operation.decide",
  right: "processors",
  path: `${PAGE}/decide`,
  notice: "Decided.",
  confirms: () => true,
  prepare: (_, { id = "" }, values) => {
    const [outcome, text, reason] = ["outcome", "reference", "reason"].map((name) =>
      (values.get(name) ?? "").trim()
    ) as [string, string, string]
    const hasHappened = outcome === "happened"
    const decision = { reference: hasHappened ? text : null, reason }
    const complaints = {
      ...Administration.decisionComplaints(decision),
      ...(!hasHappened && text !== "" && { reference: "Leave this empty if it has not happened." }),
      ...(!hasHappened && outcome !== "did-not-happen" && { outcome: "Choose what the processor's records say." })
    }
    if (Object.keys(complaints).length > 0) return Effect.succeed(new Invalid(complaints))
    return Effect.succeed({
      entered: decision,
      detail: Administration.decisionDetail(decision),
      command: Effect.mapError(
        Administration.decide(id, decision),
        () => new ParameterInvalid({ param: null, rule: "about an operation that is to be decided" })
      )
    })
  }
})

export const layer = Layer.mergeAll(page(PAGE, "see", show), check, decide)

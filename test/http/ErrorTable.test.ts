/**
 * The error table compared with semantics errors.table, for the failures on the error pages: the document defines
 * status, type, parameter and text of each code, and the page of the code shows whether the answer is stored (semantics
 * idempotency.stored, idempotency.released).
 */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as Domain from "../../src/domain/Errors.ts"
import { IdempotencyKeyInUse, Unavailable } from "../../src/engine/Accounts.ts"
import { envelope, type Failure, internalError, type WireError, wireErrorOf } from "../../src/http/ErrorTable.ts"
import { FAILURES } from "../../src/pages/docs/ErrorExamples.ts"
import { EXPLANATIONS } from "../../src/pages/docs/ErrorExplanations.ts"

interface Row {
  readonly status: number
  readonly type: WireError["type"]
  readonly codes: ReadonlyArray<string>
  readonly param: string
  readonly messages: ReadonlyArray<string>
}

/** The type that goes with a status, by the row `errors.envelope`. */
const typeOf = (status: number): WireError["type"] => {
  if (status === 401 || status === 403) return "authentication_error"
  if (status === 402) return "payment_error"
  if (status === 429) return "rate_limit_error"
  return status >= 500 ? "api_error" : "invalid_request_error"
}

/** The rows of semantics errors.table. */
const ROWS: ReadonlyArray<Row> = fs
  .readFileSync(new URL("../../docs/semantics.md", import.meta.url), "utf8")
  .split("\n")
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .filter(([, status = ""]) => /^[45]\d\d$/.test(status))
  .map(([, status, codes, , param, messages]) => ({
    status: Number(status),
    type: typeOf(Number(status)),
    codes: codes!.split(" / "),
    param: param!,
    messages: messages!.replace(/ \(backticks.*\)$/, "").split(" / ")
  }))

/** Texts that rows outside of semantics errors.table define. */
const OTHER_TEXTS: { readonly [Tag in Failure["_tag"]]?: string } = {
  CardDeclined: "Your card has insufficient funds.",
  CredentialsBearer: "Send the API key by HTTP Basic, as the user name with an empty password.",
  FieldNotExpandable: "The field 'charges' is not expandable on GET /v1/payment_intents/{id}.",
  RefundTooLarge: "The refund amount exceeds the amount available to refund.",
  PaymentMethodTaken: "The payment method 'pm_1fK3dV9ab7Qe0TzXw5MnR2Lc' belongs to another customer.",
  TooManyAttempts:
    "Too many attempts to pay for this Checkout Session have failed. " +
    "Please retry after the period specified in the Retry-After header.",
  PaymentMethodRequired: "This PaymentIntent has no payment method; provide payment_method or payment_method_data.",
  PaymentIntentBelongsToSession:
    "This PaymentIntent belongs to Checkout Session cs_1fK3dV9ab7Qe0TzXw5MnR2Lc; expire the session instead."
}

/** The kinds that semantics errors.kinds lists. */
const KINDS = /\*\*errors\.kinds\*\* Kinds in messages: ([^.]*)\./u
  .exec(fs.readFileSync(new URL("../../docs/semantics.md", import.meta.url), "utf8"))![1]!
  .split(/,\s+/u)

/** True if a text matches a template: `{…}` stands for any text, and a trailing `…` for any end. */
const fits = (template: string, text: string): boolean => {
  const pattern = template
    .split(/(\{\w+\}|…)/)
    .map((part) => (/^(?:\{\w+\}|…)$/.test(part) ? ".+" : part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")))
    .join("")
  return new RegExp(`^${pattern}$`).test(text)
}

const paramOf = (failure: Failure): string | null => ("param" in failure ? failure.param : null)

/** The values that the column `param` allows: one of its names, or, for "path", the failure's own. */
const assertParam = (column: string, failure: Failure, param: string | null) => {
  const named = [...column.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)
  if (column === "null") return assert.isNull(param)
  if (column.startsWith("the second")) return assert.strictEqual(param, (failure as Domain.ParametersExclusive).second)
  if (named.includes(param ?? "")) return assert.include([param, null], paramOf(failure))
  assert.match(column, /path|its path|referencing parameter/)
  assert.strictEqual(param, paramOf(failure))
}

describe("errors", () => {
  it("errors.kinds: name these kinds of objects", () => {
    // Errors of the dashboard name these as well.
    const ofDashboard = ["Merchant", "Person", "Session", "Note"]
    assert.sameMembers([...Domain.ResourceKind.literals], [...KINDS, ...ofDashboard])
  })

  it("of semantics errors.table are those of the table, and no others", () => {
    const codes = new Set([...Object.values(FAILURES).map((failure) => wireErrorOf(failure).code), "internal_error"])
    const documented = ROWS.flatMap((row) => row.codes).filter(
      (code) => code !== "payment_intent_authentication_failure"
    )
    assert.deepStrictEqual([...codes].toSorted(), documented.toSorted())
  })

  it.each(Object.values(FAILURES).map((failure) => [failure._tag, failure] as const))("%s", (tag, failure) => {
    const error = wireErrorOf(failure)
    const { code, message, param, stored, type } = error
    const row = ROWS.find(({ codes }) => codes.includes(code))!
    assert.deepInclude(error, { status: row.status, type: row.type })
    assertParam(row.param, failure, param)
    const other = OTHER_TEXTS[tag]
    if (other === undefined) {
      assert.isTrue(
        row.messages.some((template) => fits(template, message)),
        message
      )
    } else assert.strictEqual(message, other)
    const { remedies } = EXPLANATIONS.get(code)!
    assert.strictEqual(
      stored,
      /response is stored|attempt is stored/.test(remedies.join(" ")),
      "semantics idempotency.stored, idempotency.released"
    )
    const body = JSON.parse(envelope(error, "https://docs.example.test"))
    assert.deepInclude(body.error, { type, code, message, param, doc_url: `https://docs.example.test/errors/${code}` })
  })

  it.each([
    ["amount_to_capture", "Amount to capture must be at most 5."],
    ["line_items", "The total of `line_items` must be at most 5."],
    ["tiers[0][unit_amount]", "`tiers[0][unit_amount]` must be at most 5."]
  ])("an amount is named in words, unless it is nested: %s", (param, message) => {
    assert.deepInclude(wireErrorOf(new Domain.AmountTooLarge({ param, max: 5 })), { param, message })
  })

  it("Retry-After is sent if a repetition may succeed", () => {
    assert.deepStrictEqual(wireErrorOf(new IdempotencyKeyInUse()).headers, { "retry-after": "1" })
    const unavailable = wireErrorOf(new Unavailable({ reason: "internal" }))
    assert.deepStrictEqual(unavailable.headers, { "retry-after": "1" })
    assert.notInclude(unavailable.message, "internal")
  })

  it("a decline carries its details", () => {
    const { charge, declineCode, paymentIntent } = FAILURES.CardDeclined
    const { error } = JSON.parse(envelope(wireErrorOf(FAILURES.CardDeclined), ""))
    assert.deepInclude(error, { decline_code: declineCode, charge, payment_intent: paymentIntent })
  })

  it("a defect reveals no details", () => {
    assert.deepInclude(internalError, { status: 500, type: "api_error", code: "internal_error", stored: false })
    assert.strictEqual(internalError.message, "An unexpected error occurred.")
  })
})

/** Every answer of a gateway has an outcome (semantics gateways.outcomes). */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { OperationRequest, Outcome } from "../../../src/payments/processing/RemoteProcessor.ts"
import { outcomeOf, type Question } from "../../../src/processors/protocol/Outcomes.ts"
import { calledOf, type Signed } from "../../../src/processors/protocol/SignedCall.ts"
import * as StandardWebhooks from "../../../src/domain/StandardWebhooks.ts"
import { DECLINE_MESSAGES } from "../../../src/domain/Cards.ts"
import { errorOf, NOW_SECONDS, OTHER, requestOf, SECRET, stateOf } from "./Calls.ts"

const signed = (status: number, body: unknown, retryAfterMillis: number | null = null): Signed => ({
  kind: "signed",
  status,
  body,
  retryAfterMillis
})

const outcome = (
  body: unknown,
  request: Partial<OperationRequest> = {},
  question: Question = "execute",
  status = 200
) => outcomeOf(question, requestOf(request), signed(status, body))

const APPROVED: Outcome = {
  kind: "approved",
  reference: "ref_1",
  amount: 2000,
  currency: "usd",
  captureBefore: null
}

describe("gateways.outcomes: a state", () => {
  const CASES: Readonly<Record<string, readonly [object, Partial<OperationRequest>, Outcome]>> = {
    approved: [{}, {}, APPROVED],
    "approved, with the end of a hold": [
      { capture_before: 1_800_000_007 },
      { capture: "manual" },
      { ...APPROVED, captureBefore: 1_800_000_007_000 }
    ],
    "declined, with a code of Till's": [
      { status: "declined", decline: { code: "lost_card", message: "No." } },
      {},
      { kind: "declined", declineCode: "lost_card", message: "No.", processorCode: "lost_card" }
    ],
    "declined, with another code and no message": [
      { status: "declined", decline: { code: "51" } },
      {},
      {
        kind: "declined",
        declineCode: "generic_decline",
        message: DECLINE_MESSAGES.generic_decline,
        processorCode: "51"
      }
    ],
    "declined, with a card number in its message": [
      { status: "declined", decline: { code: "x", message: "4242 4242 4242 4242 is bad" } },
      {},
      { kind: "declined", declineCode: "generic_decline", message: "**** is bad", processorCode: "x" }
    ],
    challenge: [
      { status: "challenge", challenge: { url: "https://bank.example/3ds" } },
      {},
      { kind: "challenge", url: "https://bank.example/3ds", reference: "ref_1" }
    ],
    pending: [{ status: "pending", reference: null }, {}, { kind: "pending", reference: null }],
    authenticated: [{ status: "authenticated" }, {}, { kind: "authenticated", reference: "ref_1" }],
    "too late, because of a capture": [
      { status: "too_late", payment_status: "succeeded" },
      { kind: "void" },
      { kind: "too_late", now: "succeeded", reference: "ref_1" }
    ],
    "too late, because of a void": [
      { status: "too_late", payment_status: "canceled" },
      { kind: "capture" },
      { kind: "too_late", now: "canceled", reference: "ref_1" }
    ]
  }
  it.each(Object.entries(CASES))("%s", (_, [state, request, expected]) => {
    for (const question of ["execute", "retrieve", "abandon"] as const) {
      assert.deepStrictEqual(outcome(stateOf(state), request, question), expected)
    }
  })

  const OPEN: Readonly<Record<string, readonly [object, Partial<OperationRequest>?]>> = {
    "about another operation": [{ id: "op_2" }],
    "approved without a reference": [{ reference: null }],
    "approved without an amount": [{ amount: null }],
    "declined without a decline": [{ status: "declined" }],
    "of a challenge without an address": [{ status: "challenge" }],
    "of a challenge over http": [{ status: "challenge", challenge: { url: "http://bank.example/" } }],
    "of a challenge by script": [{ status: "challenge", challenge: { url: "javascript:alert(1)" } }],
    "of a challenge of a refund": [
      { status: "challenge", challenge: { url: "https://bank.example/" } },
      { kind: "refund" }
    ],
    "authenticated, of a capture": [{ status: "authenticated" }, { kind: "capture" }],
    "too late, of an authorization": [{ status: "too_late", payment_status: "succeeded" }],
    "too late, of a refund": [{ status: "too_late", payment_status: "succeeded" }, { kind: "refund" }],
    "too late without a payment_status": [{ status: "too_late" }, { kind: "void" }],
    "that is not in the table": [{ status: "done" }],
    "with an amount that is no integer": [{ amount: "2000" }]
  }
  it.each(Object.entries(OPEN))("%s is unknown", (_, [state, request]) => {
    assert.strictEqual(outcome(stateOf(state), request).kind, "unknown")
  })

  it.each([
    ["payment", "pi_2"],
    ["amount", 2001],
    ["amount", 20],
    ["currency", "eur"]
  ])("with another %s than the operation's is a mismatch: %s", (field, value) => {
    for (const status of ["approved", "pending", "declined"]) {
      const state = stateOf({ status, decline: { code: "x" }, [field]: value })
      assert.strictEqual(outcome(state).kind, "mismatch")
    }
  })

  it("of an operation that was not carried out is not_executed", () => {
    for (const question of ["execute", "retrieve", "abandon"] as const) {
      assert.strictEqual(outcome({ id: "op_1", status: "not_executed" }, {}, question).kind, "not_executed")
      assert.strictEqual(outcome({ id: "op_1", status: "in_progress" }, {}, question).kind, "in_progress")
    }
  })

  it("never_seen is not_executed for a look, and unknown where the gateway must have seen the operation", () => {
    const state = { id: "op_1", status: "never_seen" }
    assert.strictEqual(outcome(state, {}, "retrieve").kind, "not_executed")
    assert.strictEqual(outcome(state, {}, "execute").kind, "unknown")
    assert.strictEqual(outcome(state, {}, "abandon").kind, "unknown")
  })
})

describe("gateways.outcomes: an error", () => {
  it("400 is a refusal", () => {
    assert.deepStrictEqual(outcome(errorOf("unknown_token", "token"), {}, "execute", 400), {
      kind: "refused",
      param: "token",
      code: "unknown_token",
      message: "Why."
    })
  })

  it("409 mismatch is a mismatch, and another 409 unknown", () => {
    assert.strictEqual(outcome(errorOf("mismatch"), {}, "execute", 409).kind, "mismatch")
    assert.strictEqual(outcome(errorOf("bad_request"), {}, "execute", 409).kind, "unknown")
  })

  it("401, 429 and 503 are not_executed, with the pause of Retry-After", () => {
    for (const [status, expected] of [
      [401, null],
      [429, 7000],
      [503, 7000]
    ] as const) {
      const called = signed(status, errorOf("unavailable"), 7000)
      assert.deepStrictEqual(outcomeOf("execute", requestOf(), called), {
        kind: "not_executed",
        why: "unavailable: Why.",
        retryAfterMillis: expected
      })
    }
  })

  it("in answer to a look or a fence leaves the outcome open", () => {
    for (const status of [400, 401, 409, 429, 500, 503]) {
      for (const question of ["retrieve", "abandon"] as const) {
        assert.strictEqual(outcome(errorOf("mismatch"), {}, question, status).kind, "unknown")
      }
    }
  })

  it.each([201, 202, 204, 301, 308, 402, 403, 404, 500, 502, 504])("%i is unknown", (status) => {
    assert.strictEqual(outcome(errorOf("bad_request"), {}, "execute", status).kind, "unknown")
    assert.strictEqual(outcome(stateOf(), {}, "execute", status).kind, "unknown")
  })

  it("without a code is unknown", () => {
    for (const status of [400, 401, 409, 429, 503]) {
      assert.strictEqual(outcome("<h1>Bad Gateway</h1>", {}, "execute", status).kind, "unknown")
    }
  })
})

const QUESTIONS = Schema.Literals(["execute", "retrieve", "abandon"])
const KINDS = Schema.Literals(["authorize", "capture", "void", "refund"])
const STATUSES = Schema.Literals([200, 200, 200, 201, 204, 301, 400, 401, 402, 404, 409, 429, 500, 502, 503])
/** A JSON value, with the protocol's names among its own. */
const Junk = Schema.Union([Schema.Null, Schema.Boolean, Schema.Int, Schema.String])
const Body = Schema.Struct({
  id: Schema.Union([Schema.Literal("op_1"), Junk]),
  status: Schema.Union([
    Schema.Literals(["approved", "declined", "challenge", "pending", "authenticated", "too_late", "in_progress"]),
    Junk
  ]),
  payment: Schema.optionalKey(Schema.Union([Schema.Literal("pi_1"), Junk])),
  reference: Schema.optionalKey(Junk),
  amount: Schema.optionalKey(Schema.Union([Schema.Literal(2000), Junk])),
  currency: Schema.optionalKey(Schema.Union([Schema.Literal("usd"), Junk])),
  decline: Schema.optionalKey(Schema.Union([Schema.Struct({ code: Junk, message: Junk }), Junk])),
  challenge: Schema.optionalKey(Schema.Union([Schema.Struct({ url: Junk }), Junk])),
  capture_before: Schema.optionalKey(Junk),
  payment_status: Schema.optionalKey(Schema.Union([Schema.Literals(["succeeded", "canceled"]), Junk])),
  error: Schema.optionalKey(Schema.Union([Schema.Struct({ code: Junk, message: Junk, param: Junk }), Junk]))
})
const Text = Schema.Union([Schema.String, Body])
const bytesOf = (text: typeof Text.Type) => Buffer.from(typeof text === "string" ? text : JSON.stringify(text))

describe("gateways.outcomes: any bytes with any status", () => {
  it.prop(
    "that are signed have an outcome, and are approved only with the operation's money",
    [QUESTIONS, KINDS, STATUSES, Text, Schema.Record(Schema.String, Schema.String), Schema.String],
    ([question, kind, status, text, others, retryAfter]) => {
      const body = bytesOf(text)
      const signature = StandardWebhooks.sign([SECRET], "msg_1", NOW_SECONDS, body)
      const headers = { ...others, "retry-after": retryAfter, ...signature }
      const called = calledOf([SECRET], "msg_1", { kind: "answered", status, headers, body }, NOW_SECONDS)
      assert.strictEqual(called.kind, "signed")
      const request = requestOf({ kind })
      const result = outcomeOf(question, request, called)
      if (result.kind === "approved") {
        assert.deepStrictEqual([status, result.amount, result.currency], [200, request.amount, request.currency])
        assert.isAbove(result.reference.length, 0)
      }
      if (result.kind === "refused") assert.deepStrictEqual([question, status], ["execute", 400])
    },
    { arbitrary: { runs: 1000 } }
  )

  it.prop(
    "that are not signed, or for another request or with another secret, are unknown",
    [QUESTIONS, STATUSES, Text, Schema.Literals(["none", "other secret", "other request", "other time"])],
    ([question, status, text, how]) => {
      const body = bytesOf(text)
      const secret = how === "other secret" ? OTHER : SECRET
      const time = how === "other time" ? NOW_SECONDS - 301 : NOW_SECONDS
      const id = how === "other request" ? "msg_2" : "msg_1"
      const headers = how === "none" ? {} : StandardWebhooks.sign([secret], id, time, body)
      const called = calledOf([SECRET], "msg_1", { kind: "answered", status, headers, body }, NOW_SECONDS)
      assert.strictEqual(outcomeOf(question, requestOf(), called).kind, "unknown")
    }
  )

  it.prop(
    "that did not arrive are unknown, and not_executed only if the request was not sent",
    [QUESTIONS],
    ([question]) => {
      const lost = calledOf([SECRET], "msg_1", { kind: "lost", why: "It was cut." }, NOW_SECONDS)
      assert.deepStrictEqual(outcomeOf(question, requestOf(), lost), { kind: "unknown", why: "It was cut." })
      const unsent = calledOf([SECRET], "msg_1", { kind: "not_sent", why: "It was not." }, NOW_SECONDS)
      const expected = question === "execute" ? "not_executed" : "unknown"
      assert.strictEqual(outcomeOf(question, requestOf(), unsent).kind, expected)
    }
  )
})

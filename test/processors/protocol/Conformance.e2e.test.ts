/**
 * The check of a gateway names exactly the rule that the gateway breaks (semantics gateways.rules, gateways.promises).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Exchange from "../../../src/processors/Exchange.ts"
import { conformance, passes } from "../../../src/processors/protocol/Conformance.ts"
import * as HttpProcessor from "../../../src/processors/protocol/HttpProcessor.ts"
import { RULE_NAMES, type RuleName } from "../../../src/processors/protocol/Rules.ts"
import { requestOf } from "./Calls.ts"
import { exampleGateway, type ExampleGateway, type Mistake } from "./ExampleGateway.ts"

const checked = (gateway: ExampleGateway) =>
  conformance({
    url: gateway.url,
    secret: gateway.secret,
    restart: Effect.promise(() => gateway.restart())
  })

/** Lets the gateway wait within an operation, which is harmless by itself. */
const ASYNCHRONOUS: ReadonlyArray<Mistake> = [
  [`const execute = (operation) =>`, `const execute = async (operation) =>`],
  [`body = answerTo(`, `body = await answerTo(`]
]

/** For each rule, the mistakes of a gateway that keeps all others. */
const MISTAKES: Readonly<Record<RuleName, ReadonlyArray<Mistake>>> = {
  "signature.answer": [
    [`writeHead(status, signed(request.headers["webhook-id"] ?? "none", json))`, `writeHead(status)`]
  ],
  "signature.request": [[`return bytes.length === expected.length && timingSafeEqual(bytes, expected)`, `return true`]],
  "signature.stale": [[`<= TOLERANCE_SECONDS`, `<= 1e9`]],
  "authorize.approve": [[`{ status: "approved", capture_before }`, `{ status: "approved", reference: null }`]],
  "authorize.decline": [[`{ status: "declined", decline: { code } }`, `{ status: "declined", decline: { code: "" } }`]],
  "authorize.challenge": [["const challenge = { url: `${HERE}", "const challenge = { url: `"]],
  "authorize.pending": [
    [
      `operations.get(id)?.state ??`,
      `(operations.get(id)?.state.status === "pending" ? null : operations.get(id)?.state) ??`
    ]
  ],
  "authorize.amount_echo": [
    [
      `reference: next.reference, amount, currency,`,
      `reference: next.reference, amount: kind === "authorize" ? Math.ceil(amount / 10) * 10 : amount, currency,`
    ]
  ],
  "retrieve.never_seen": [
    [`{ id, status: "never_seen" }`, `{ id, status: id.includes("retrieve") ? "in_progress" : "never_seen" }`]
  ],
  "idempotent.same": [
    [`if (known?.refusal) throw new Refusal(...known.refusal)`, `if (known?.refusal) return carryOut(operation, body)`]
  ],
  "idempotent.other_body": [[`known?.body && known.body !== body`, `false`]],
  "idempotent.at_once": [
    [
      `if (known) return known.state\n  try`,
      `if (known) return known.state\n  if (operation.kind === "refund") await new Promise((resolve) => setTimeout(resolve, 50))\n  try`
    ],
    ...ASYNCHRONOUS
  ],
  "idempotent.after_restart": [[`fs.writeFileSync(file, lines)`, ``]],
  "payment.approved_once": [
    [`!["open", "challenged"].includes(payment.status)`, `["pending", "canceled"].includes(payment.status)`]
  ],
  "capture.part": [[`captured: operation.amount }`, `captured: payment.held }`]],
  "capture.twice": [
    [
      `if (tooLate(payment)) return tooLate(payment)\n    if (payment.status !== "held")`,
      `if (payment.status === "canceled") return tooLate(payment)\n    if (payment.status === "captured") return both({ status: "approved" }, payment)\n    if (payment.status !== "held")`
    ]
  ],
  "capture.too_much": [[`if (operation.amount > payment.held)`, `if (false)`]],
  "void.held": [[`{ ...payment, status: "canceled" }`, `payment`]],
  "void.captured": [
    [
      `if (tooLate(payment)) return tooLate(payment)\n    if (payment.status === "pending")`,
      `if (payment.status === "pending")`
    ]
  ],
  "refund.part": [["const reference = `gwr_${id}`", "const reference = undefined"]],
  "refund.too_much": [
    [`if (amount > left) throw new Refusal("amount_too_large"`, `if (amount > left) throw new Refusal("bad_request"`]
  ],
  "refund.at_once": [
    [
      `if (known) return known.state\n  try`,
      `if (known) return known.state
  if (operation.kind === "refund") {
    const before = payments.get(operation.payment)
    put({ operation: { body, state: { id, status: "in_progress", at: seconds() } } })
    await new Promise((resolve) => setTimeout(resolve, 50))
    payments.set(operation.payment, before)
  }
  try`
    ],
    ...ASYNCHRONOUS
  ],
  "abandon.unseen_then_late": [[`put({ operation: { state: notExecuted(id) } })`, `return notExecuted(id)`]],
  "abandon.final": [
    [`return operations.get(id).state\n  },\n  "operation.list"`, `return notExecuted(id)\n  },\n  "operation.list"`]
  ],
  "abandon.challenge": [[`if (status === "challenge") change(`, `if (false) change(`]],
  "errors.signed": [[`error instanceof Refusal || error instanceof SyntaxError`, `error instanceof Refusal`]],
  "list.pages": [[`+ 1\n    const data`, `+ (after === null ? 1 : 2)\n    const data`]]
}

describe("gateways.rules: the example gateway", () => {
  it.live("keeps all rules, also killed in between", () =>
    Effect.gen(function* () {
      const results = yield* checked(yield* exampleGateway())
      assert.deepStrictEqual(
        results,
        RULE_NAMES.map((rule) => ({ rule, result: "kept" as const }))
      )
      assert.isTrue(passes(results))
    })
  )
})

describe("gateways.promises: a payer at the example gateway", () => {
  it.live.each([
    ["passes a challenge", false, "approved"],
    ["does not pass the challenge of an abandoned operation", true, "not_executed"]
  ] as const)("%s", ([, isAbandoned, outcome]) =>
    Effect.gen(function* () {
      const { secret, url } = yield* exampleGateway()
      const exchange = yield* Exchange.make({ hosts: { httpsOnly: true, besidePublic: "any" } })
      const processor = HttpProcessor.make({ id: "prc_1", url, secrets: [secret], exchange })
      const request = requestOf({ token: "tok_challenge", returnUrl: "http://localhost/return" })
      assert.strictEqual((yield* processor.perform(request)).kind, "challenge")
      if (isAbandoned) assert.strictEqual((yield* processor.fence(request)).kind, "not_executed")
      const page = yield* Effect.promise(() =>
        fetch(`${url}/challenge/${request.id}`, { method: "POST", body: "passed=yes", redirect: "manual" })
      )
      assert.strictEqual(page.headers.get("location"), request.returnUrl)
      assert.strictEqual((yield* processor.look(request)).kind, outcome)
    })
  )
})

describe("gateways.rules: a gateway that breaks", () => {
  it.live.each(RULE_NAMES)("%s alone is found by it", (name) =>
    Effect.gen(function* () {
      const results = yield* checked(yield* exampleGateway(...MISTAKES[name]))
      const broken = results.filter(({ result }) => result === "broken")
      assert.deepStrictEqual(
        broken.map(({ rule }) => rule),
        [name],
        JSON.stringify(broken)
      )
      assert.isFalse(passes(results))
    })
  )
})

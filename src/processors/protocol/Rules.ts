/** The named rules of a gateway's check (semantics gateways.rules). Each tries one promise of the protocol. */
import { Clock, Effect, Equal } from "effect"
import { urlComplaint } from "../../domain/GatewayUrl.ts"
import { secondsOf } from "../../domain/Time.ts"
import { broken, type Broken, ensure, type GatewayProbe, NotTried, shown } from "./GatewayProbe.ts"
import type { State } from "./Messages.ts"

type Try = (probe: GatewayProbe) => Effect.Effect<void, Broken | NotTried>

export const RULE_NAMES = [
  "signature.answer",
  "signature.request",
  "signature.stale",
  "authorize.approve",
  "authorize.decline",
  "authorize.challenge",
  "authorize.pending",
  "authorize.amount_echo",
  "retrieve.never_seen",
  "idempotent.same",
  "idempotent.other_body",
  "idempotent.at_once",
  "idempotent.after_restart",
  "payment.approved_once",
  "capture.part",
  "capture.twice",
  "capture.too_much",
  "void.held",
  "void.captured",
  "refund.part",
  "refund.too_much",
  "refund.at_once",
  "abandon.unseen_then_late",
  "abandon.final",
  "abandon.challenge",
  "errors.signed",
  "list.pages"
] as const
export type RuleName = (typeof RULE_NAMES)[number]

export interface Rule {
  readonly name: RuleName
  /** Rules that have to be kept before this one can be tried. */
  readonly needs: ReadonlyArray<RuleName>
  /** One sentence about the gateway. */
  readonly text: string
  readonly try: Try
}

const OTHER_SIGNATURE = `v1,${Buffer.alloc(32).toString("base64")}`
const STALE_SECONDS = 900
const SAME_AT_ONCE = 20
const REFUNDS_AT_ONCE = 10
const RESTART_PAUSE_MILLIS = 250
const RESTART_LOOKS_MAX = 120
const LISTED = 5

/** Fails unless a forged request gets a signed 401 and is not carried out. */
const requireUnauthorized = (probe: GatewayProbe, forgery: { readonly late?: number; readonly signature?: string }) =>
  Effect.gen(function* () {
    const operation = probe.operation({ kind: "authorize", token: yield* probe.token("approve") })
    const answer = yield* probe.signed({ type: "operation.execute", operation }, forgery)
    yield* ensure(answer.status === 401, `The answer had the status ${answer.status} instead of 401.`)
    const { status } = yield* probe.retrieve(operation.id)
    yield* ensure(status === "never_seen", `The operation of the request got the status ${status}.`)
  })

const facts = ({ amount, currency, payment, reference, status }: State) => ({
  status,
  payment: payment ?? null,
  reference: reference ?? null,
  amount: amount ?? null,
  currency: currency ?? null
})

/** Waits until a restarted gateway answers: 30 seconds at most. */
const answersAgain = (probe: GatewayProbe, looks = 0): Effect.Effect<void, Broken> =>
  Effect.catchTag(Effect.asVoid(probe.check()), "Broken", (failure) =>
    looks === RESTART_LOOKS_MAX
      ? Effect.fail(failure)
      : Effect.delay(
          Effect.suspend(() => answersAgain(probe, looks + 1)),
          RESTART_PAUSE_MILLIS
        )
  )

const signatures: ReadonlyArray<Rule> = [
  {
    name: "signature.answer",
    needs: [],
    text: "Every answer is signed, with the id of its request.",
    try: (probe) => Effect.asVoid(probe.check())
  },
  {
    name: "signature.request",
    needs: ["signature.answer"],
    text: "A request with a wrong signature gets a signed 401, and is not carried out.",
    try: (probe) => requireUnauthorized(probe, { signature: OTHER_SIGNATURE })
  },
  {
    name: "signature.stale",
    needs: ["signature.answer"],
    text: "A request that was signed 15 minutes ago, or will be in 15 minutes, gets a signed 401.",
    try: (probe) =>
      Effect.andThen(
        requireUnauthorized(probe, { late: -STALE_SECONDS }),
        requireUnauthorized(probe, { late: STALE_SECONDS })
      )
  }
]

const authorizations: ReadonlyArray<Rule> = [
  {
    name: "authorize.approve",
    needs: ["signature.answer"],
    text: "The token `approve` is approved, with a reference of the payment.",
    try: Effect.fnUntraced(function* (probe) {
      const token = yield* probe.token("approve")
      for (const capture of ["automatic", "manual"] as const) {
        const { reference } = yield* probe.expect(probe.operation({ kind: "authorize", token, capture }), "approved")
        yield* ensure((reference ?? "") !== "", "The state has no reference.")
      }
    })
  },
  {
    name: "authorize.decline",
    needs: ["signature.answer"],
    text: "The token `decline` is declined with a code, and nothing can be captured.",
    try: Effect.fnUntraced(function* (probe) {
      const token = yield* probe.token("decline")
      const operation = probe.operation({ kind: "authorize", token, capture: "manual" })
      const { decline = null } = yield* probe.expect(operation, "declined")
      yield* ensure((decline?.code ?? "") !== "", "The state has no decline code.")
      yield* probe.refused(probe.operation({ kind: "capture", payment: operation.payment }), "not_capturable")
    })
  },
  {
    name: "authorize.challenge",
    needs: ["signature.answer"],
    text: "The token `challenge` leads the payer to an https page.",
    try: Effect.fnUntraced(function* (probe) {
      const token = yield* probe.token("challenge")
      const { challenge = null } = yield* probe.expect(probe.operation({ kind: "authorize", token }), "challenge")
      const complaint = urlComplaint(challenge?.url ?? "")
      if (complaint !== undefined) yield* broken(`The challenge's URL ${complaint}.`)
    })
  },
  {
    name: "authorize.pending",
    needs: ["signature.answer"],
    text: "The token `pending` gets the status pending, and the operation can be retrieved.",
    try: Effect.fnUntraced(function* (probe) {
      const token = yield* probe.token("pending")
      const operation = probe.operation({ kind: "authorize", token })
      yield* probe.expect(operation, "pending")
      const { status } = yield* probe.retrieve(operation.id)
      yield* ensure(
        status === "pending" || status === "approved" || status === "declined",
        `The pending operation was retrieved with the status ${status}.`
      )
    })
  },
  {
    name: "authorize.amount_echo",
    needs: ["authorize.approve"],
    text: "A state repeats the payment, the amount and the currency of its operation.",
    try: Effect.fnUntraced(function* (probe) {
      const token = yield* probe.token("approve")
      const { currencies = null } = yield* probe.check()
      for (const [amount, currency] of [
        [1, currencies?.[0] ?? "usd"],
        [123_457, currencies?.at(-1) ?? "eur"]
      ] as const) {
        const operation = probe.operation({ kind: "authorize", token, amount, currency })
        const state = yield* probe.expect(operation, "approved")
        for (const field of ["payment", "amount", "currency"] as const) {
          yield* ensure(state[field] === operation[field], `The ${field} was ${state[field]}, not ${operation[field]}.`)
        }
      }
    })
  }
]

const idempotency: ReadonlyArray<Rule> = [
  {
    name: "retrieve.never_seen",
    needs: ["signature.answer"],
    text: "An operation that never arrived is retrieved as never_seen.",
    try: Effect.fnUntraced(function* (probe) {
      const { status } = yield* probe.retrieve(probe.newId("op"))
      yield* ensure(status === "never_seen", `The status was ${status}.`)
    })
  },
  {
    name: "idempotent.same",
    needs: ["authorize.approve"],
    text: "The same operation gets the same state each time, and a refused one stays refused.",
    try: Effect.fnUntraced(function* (probe) {
      const operation = yield* probe.authorized("automatic")
      const states = yield* Effect.replicateEffect(probe.expect(operation, "approved"), 2)
      const kept = yield* probe.retrieve(operation.id)
      yield* ensure(
        states.every((state) => Equal.equals(state, kept)),
        "A repeated operation got another state."
      )
      const token = yield* probe.token("decline")
      const attempt = probe.operation({ kind: "authorize", token, capture: "manual" })
      yield* probe.settled(attempt)
      const capture = probe.operation({ kind: "capture", payment: attempt.payment })
      const refusal = yield* probe.settled(capture)
      yield* probe.authorized("manual", { payment: attempt.payment })
      const repeated = yield* probe.settled(capture)
      yield* ensure(
        shown(repeated) === shown(refusal),
        `A capture got ${shown(refusal)}, and ${shown(repeated)} when it was repeated after an authorization.`
      )
    })
  },
  {
    name: "idempotent.other_body",
    needs: ["authorize.approve"],
    text: "A known id with another body gets a signed 409 mismatch, and changes nothing.",
    try: Effect.fnUntraced(function* (probe) {
      const operation = yield* probe.authorized("automatic")
      const answer = yield* probe.settled({ ...operation, amount: operation.amount + 1 })
      yield* ensure(
        answer.kind === "error" && answer.status === 409 && answer.code === "mismatch",
        `The answer was ${shown(answer)} instead of 409 mismatch.`
      )
      const { amount } = yield* probe.retrieve(operation.id)
      yield* ensure(amount === operation.amount, "The operation's amount changed.")
    })
  },
  {
    name: "idempotent.at_once",
    needs: ["authorize.approve"],
    text: `${SAME_AT_ONCE} requests for the same refund at the same time refund once.`,
    try: Effect.fnUntraced(function* (probe) {
      const { payment } = yield* probe.authorized("automatic", { amount: 1000 })
      const refund = probe.operation({ kind: "refund", payment, amount: 100 })
      const answers = yield* Effect.all(
        Array.from({ length: SAME_AT_ONCE }, () => probe.settled(refund)),
        { concurrency: "unbounded" }
      )
      const different = answers.find((answer) => answer.kind === "error" || answer.state.status !== "approved")
      if (different !== undefined) yield* broken(`One of the requests got ${shown(different)}.`)
      const rest = yield* probe.settled(probe.operation({ kind: "refund", payment, amount: 900 }))
      yield* ensure(
        rest.kind === "state" && rest.state.status === "approved",
        `After one refund of 100 of 1000, a refund of 900 got ${shown(rest)}.`
      )
    })
  },
  {
    name: "idempotent.after_restart",
    needs: ["authorize.approve"],
    text: "A killed and restarted gateway keeps its states.",
    try: Effect.fnUntraced(function* (probe) {
      const { restart } = probe.options
      if (restart === null) return yield* new NotTried({ message: "It needs --restart." })
      const operation = yield* probe.authorized("automatic")
      const before = yield* probe.retrieve(operation.id)
      yield* Effect.mapError(restart, ({ message }) => new NotTried({ message }))
      yield* answersAgain(probe)
      const after = yield* probe.retrieve(operation.id)
      yield* ensure(
        Equal.equals(facts(after), facts(before)),
        `The operation had the status ${before.status} before the restart, and ${after.status} after it.`
      )
      const { amount, payment } = operation
      yield* probe.expect(probe.operation({ kind: "refund", payment, amount }), "approved")
    })
  }
]

const payments: ReadonlyArray<Rule> = [
  {
    name: "payment.approved_once",
    needs: ["authorize.approve"],
    text: "A payment is approved once, and a new authorization ends its challenged one.",
    try: Effect.fnUntraced(function* (probe) {
      const { payment } = yield* probe.authorized("automatic")
      const token = yield* probe.token("approve")
      yield* probe.refused(probe.operation({ kind: "authorize", token, payment }), "already_authorized")
      const challenged = yield* Effect.catchTag(probe.token("challenge"), "NotTried", () => Effect.succeed(null))
      if (challenged === null) return
      const first = probe.operation({ kind: "authorize", token: challenged })
      yield* probe.expect(first, "challenge")
      yield* probe.expect(probe.operation({ kind: "authorize", token, payment: first.payment }), "approved")
      const { status } = yield* probe.retrieve(first.id)
      yield* ensure(status === "not_executed", `The challenged authorization then had the status ${status}.`)
    })
  },
  {
    name: "capture.part",
    needs: ["authorize.approve"],
    text: "A part of a held amount can be captured, and only that part be refunded.",
    try: Effect.fnUntraced(function* (probe) {
      const { payment } = yield* probe.authorized("manual", { amount: 1000 })
      yield* probe.expect(probe.operation({ kind: "capture", payment, amount: 400 }), "approved")
      yield* probe.expect(probe.operation({ kind: "refund", payment, amount: 400 }), "approved")
      const more = yield* probe.settled(probe.operation({ kind: "refund", payment, amount: 1 }))
      yield* ensure(more.kind === "error", `A refund of more than the captured part got ${shown(more)}.`)
    })
  },
  {
    name: "capture.twice",
    needs: ["authorize.approve"],
    text: "A second capture is too late, and captures nothing.",
    try: Effect.fnUntraced(function* (probe) {
      const { payment } = yield* probe.authorized("manual", { amount: 1000 })
      yield* probe.settled(probe.operation({ kind: "capture", payment, amount: 1000 }))
      const second = yield* probe.expect(probe.operation({ kind: "capture", payment, amount: 1000 }), "too_late")
      const status = second.payment_status ?? null
      yield* ensure(status === "succeeded", `The payment_status was ${status} instead of succeeded.`)
    })
  },
  {
    name: "capture.too_much",
    needs: ["authorize.approve"],
    text: "More than the held amount cannot be captured.",
    try: Effect.fnUntraced(function* (probe) {
      const { payment } = yield* probe.authorized("manual", { amount: 1000 })
      yield* probe.refused(probe.operation({ kind: "capture", payment, amount: 1001 }), "amount_too_large")
    })
  },
  {
    name: "void.held",
    needs: ["authorize.approve"],
    text: "A held amount can be given up, and is then not captured.",
    try: Effect.fnUntraced(function* (probe) {
      const { payment } = yield* probe.authorized("manual", { amount: 1000 })
      yield* probe.expect(probe.operation({ kind: "void", payment, amount: 1000 }), "approved")
      const late = yield* probe.expect(probe.operation({ kind: "capture", payment, amount: 1000 }), "too_late")
      const status = late.payment_status ?? null
      yield* ensure(status === "canceled", `The payment_status was ${status} instead of canceled.`)
    })
  },
  {
    name: "void.captured",
    needs: ["authorize.approve"],
    text: "A void of a captured payment is too late.",
    try: Effect.fnUntraced(function* (probe) {
      const { payment } = yield* probe.authorized("automatic", { amount: 1000 })
      const late = yield* probe.expect(probe.operation({ kind: "void", payment, amount: 1000 }), "too_late")
      const status = late.payment_status ?? null
      yield* ensure(status === "succeeded", `The payment_status was ${status} instead of succeeded.`)
    })
  },
  {
    name: "refund.part",
    needs: ["authorize.approve"],
    text: "A payment can be refunded in parts, each with a reference.",
    try: Effect.fnUntraced(function* (probe) {
      const { payment } = yield* probe.authorized("automatic", { amount: 1000 })
      for (const amount of [300, 700]) {
        const { reference } = yield* probe.expect(probe.operation({ kind: "refund", payment, amount }), "approved")
        yield* ensure((reference ?? "") !== "", "The state has no reference.")
      }
    })
  },
  {
    name: "refund.too_much",
    needs: ["authorize.approve"],
    text: "More than the captured amount is not refunded, neither at once nor in parts.",
    try: Effect.fnUntraced(function* (probe) {
      const { payment } = yield* probe.authorized("automatic", { amount: 1000 })
      yield* probe.refused(probe.operation({ kind: "refund", payment, amount: 1001 }), "amount_too_large")
      yield* probe.settled(probe.operation({ kind: "refund", payment, amount: 600 }))
      yield* probe.refused(probe.operation({ kind: "refund", payment, amount: 500 }), "amount_too_large")
    })
  },
  {
    name: "refund.at_once",
    needs: ["authorize.approve"],
    text: `${REFUNDS_AT_ONCE} refunds at the same time do not exceed the captured amount.`,
    try: Effect.fnUntraced(function* (probe) {
      const { payment } = yield* probe.authorized("automatic", { amount: 1000 })
      const refunds = Array.from({ length: REFUNDS_AT_ONCE }, () =>
        probe.operation({ kind: "refund", payment, amount: 200 })
      )
      const answers = yield* Effect.all(
        refunds.map((refund) => probe.settled(refund)),
        { concurrency: "unbounded" }
      )
      const approved = answers.filter((answer) => answer.kind === "state" && answer.state.status === "approved")
      yield* ensure(approved.length === 5, `${approved.length} refunds of 200 were approved for a payment of 1000.`)
    })
  }
]

const rest: ReadonlyArray<Rule> = [
  {
    name: "abandon.unseen_then_late",
    needs: ["authorize.approve"],
    text: "An abandoned operation that had not arrived is never carried out, however late it arrives.",
    try: Effect.fnUntraced(function* (probe) {
      const token = yield* probe.token("approve")
      const operation = probe.operation({ kind: "authorize", token })
      const { status } = yield* probe.abandon(operation.id)
      yield* ensure(status === "not_executed", `The abandoned operation had the status ${status}.`)
      yield* probe.expect(operation, "not_executed")
      yield* probe.expect(probe.operation({ kind: "authorize", token, payment: operation.payment }), "approved")
    })
  },
  {
    name: "abandon.final",
    needs: ["authorize.approve"],
    text: "An operation that was carried out is not undone by its abandonment.",
    try: Effect.fnUntraced(function* (probe) {
      const operation = yield* probe.authorized("manual", { amount: 1000 })
      const { status } = yield* probe.abandon(operation.id)
      yield* ensure(status === "approved", `The approved operation had the status ${status} when it was abandoned.`)
      const { status: kept } = yield* probe.retrieve(operation.id)
      yield* ensure(kept === "approved", `The approved operation had the status ${kept} afterwards.`)
    })
  },
  {
    name: "abandon.challenge",
    needs: ["authorize.approve", "authorize.challenge"],
    text: "An abandoned operation whose payer has not authenticated has ended, and its payment can be authorized anew.",
    try: Effect.fnUntraced(function* (probe) {
      const operation = probe.operation({ kind: "authorize", token: yield* probe.token("challenge") })
      yield* probe.expect(operation, "challenge")
      const { status } = yield* probe.abandon(operation.id)
      yield* ensure(
        status === "not_executed",
        `The challenged operation had the status ${status} when it was abandoned.`
      )
      yield* probe.expect(operation, "not_executed")
      yield* probe.authorized("automatic", { payment: operation.payment })
      const { status: kept } = yield* probe.retrieve(operation.id)
      yield* ensure(kept === "not_executed", `The abandoned operation had the status ${kept} afterwards.`)
    })
  },
  {
    name: "errors.signed",
    needs: ["signature.answer"],
    text: "Errors are signed and have a code: for a text that is not JSON, and for unknown types, tokens and payments.",
    try: Effect.fnUntraced(function* (probe) {
      for (const text of ["{", JSON.stringify({ type: "no.such.type" })]) {
        const called = yield* probe.send(text)
        if (called.kind !== "signed") return yield* broken(called.why)
        yield* ensure(called.status === 400, `The answer to ${text} had the status ${called.status} instead of 400.`)
      }
      const token = `tok_none_${probe.newId("op")}`
      const described = yield* probe.react({ type: "token.describe", token })
      yield* ensure(
        described.kind === "error" && described.status === 400 && described.code === "unknown_token",
        `token.describe of an unknown token got ${shown(described)} instead of 400 unknown_token.`
      )
      yield* probe.refused(probe.operation({ kind: "authorize", token }), "unknown_token")
      yield* probe.refused(probe.operation({ kind: "capture" }), "unknown_payment")
    })
  },
  {
    name: "list.pages",
    needs: ["authorize.approve"],
    text: "operation.list has every operation since a time, once, in pages.",
    try: Effect.fnUntraced(function* (probe) {
      const since = secondsOf(yield* Clock.currentTimeMillis) - 1
      const made = yield* Effect.replicateEffect(probe.authorized("automatic"), LISTED)
      const found: Array<string> = []
      let after: string | null = null
      do {
        const page: { readonly data: ReadonlyArray<State>; readonly next?: string | null } = yield* probe.list(
          since,
          after,
          2
        )
        yield* ensure(page.data.length <= 2, `A page of at most 2 had ${page.data.length} operations.`)
        yield* ensure(page.data.length > 0 || (page.next ?? null) === null, "An empty page had a next one.")
        found.push(...page.data.map(({ id }) => id))
        yield* ensure(new Set(found).size === found.length, "An operation was listed twice.")
        after = page.next ?? null
      } while (after !== null)
      const missing = made.filter(({ id }) => !found.includes(id))
      yield* ensure(missing.length === 0, `${missing.length} of ${LISTED} operations were not listed.`)
    })
  }
]

export const RULES: ReadonlyArray<Rule> = [...signatures, ...authorizations, ...idempotency, ...payments, ...rest]

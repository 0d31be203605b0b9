/** Warnings on the home page: problems that need action. */
import { Effect } from "effect"
import type { PaymentIntentStatus } from "../../domain/PaymentIntentStates.ts"
import type { Clause } from "../../domain/SearchQuery.ts"
import { type Child, html } from "../../html/Html.ts"
import { INSTALLATION } from "../../payments/shared/AccountIds.ts"
import type { AccountClock } from "../../payments/TestHelpers.ts"
import { API_KEY } from "../../payments/merchants/ApiKeys.ts"
import { mustReconcile, PROCESSOR } from "../../payments/processing/ConfiguredProcessors.ts"
import { OPERATION, PAYMENT_INTENT } from "../../payments/shared/Documents.ts"
import { Processors } from "../../payments/processing/Processor.ts"
import { queryCondition, SEARCHED_PAYMENT_INTENT } from "../../payments/shared/Search.ts"
import { badge, time, type Tone } from "../frame/Values.ts"
import type { Health } from "../developers/EndpointHealth.ts"
import { listObjects, searchObjects } from "../frame/Queries.ts"
import type { Visit } from "../frame/Visit.ts"

const KEYS_MAX = 100
const PROCESSORS_MAX = 20
/** Larger counts are shown as "100 or more". */
const COUNT_MAX = 100
/** The processor responds within seconds. A payment that is open for longer than this is reported. */
const UNRESOLVED_SECONDS = 15 * 60

export interface Matter {
  readonly tone: Tone
  readonly title: string
  readonly text: Child
  readonly href: string
}

const several = (count: number, isMore: boolean, one: string, many: string): string =>
  isMore ? `${count} or more ${many}` : count === 1 ? `One ${one}` : `${count} ${many}`

const spanOf = (seconds: number): string => {
  const [count, unit] =
    seconds >= 172_800
      ? [seconds / 86_400, "days"]
      : seconds >= 7200
        ? [seconds / 3600, "hours"]
        : [seconds / 60, "minutes"]
  const rounded = Math.max(1, Math.round(count))
  return `${rounded} ${rounded === 1 ? unit.slice(0, -1) : unit}`
}

/** Payments in a status that were created before a time in Unix seconds. */
const findOlder = ({ account }: Visit, status: PaymentIntentStatus, before: number) => {
  const clause = (field: string, operator: Clause["operator"], value: string | number): Clause => {
    return { negated: false, field, operator, value }
  }
  const clauses = [clause("status", ":", status), clause("created", "<", before)]
  const condition = queryCondition({ connective: "AND", clauses }, SEARCHED_PAYMENT_INTENT)
  return searchObjects(account, PAYMENT_INTENT, condition, { limit: COUNT_MAX })
}

const readKeys = ({ account, livemode, merchant }: Visit) =>
  Effect.map(listObjects(INSTALLATION, API_KEY, { labels: { account }, limit: KEYS_MAX }), ({ rows }) =>
    rows.filter((key) => key.merchant_id === merchant.id && key.livemode === livemode)
  )

/** Operations without an outcome, with the age of the oldest. */
const operationMatters = Effect.fnUntraced(function* (visit: Visit, now: number) {
  const found: Array<Matter> = []
  for (const [status, tone, what, text] of UNDECIDED) {
    const { hasMore, rows } = yield* listObjects(visit.account, OPERATION, { labels: { status }, limit: COUNT_MAX })
    const oldest = rows.at(-1)
    if (oldest === undefined) continue
    const age = spanOf(now - oldest.created)
    found.push({
      tone,
      title: several(rows.length, hasMore, `operation ${what}`, `operations ${what}`),
      text: `${text} The oldest began ${hasMore ? "more than " : ""}${age} ago.`,
      href: visit.to("/operations", { status })
    })
  }
  return found
})

const UNDECIDED = [
  ["decide", "bad", "to decide", "The processor has given no certain word."],
  ["unresolved", "bad", "without an answer", "Till goes on asking the processor."]
] as const

/** Processors that take no new payments. */
const processorMatters = Effect.fnUntraced(function* (visit: Visit) {
  const { rows } = yield* listObjects(INSTALLATION, PROCESSOR, {
    labels: { account: visit.account },
    limit: PROCESSORS_MAX
  })
  const { byId, mayBegin } = yield* Processors
  return rows.flatMap(({ id, profile, restored_at, status }): ReadonlyArray<Matter> => {
    const isOut = byId(id) !== null && !mayBegin(id)
    if (status !== "paused" && !(status === "active" && isOut)) return []
    const name = html`<bdi>${profile?.name ?? id}</bdi>`
    const href = visit.to(visit.may("processors") ? `/developers/processors/${id}` : "/operations")
    return status === "paused"
      ? [
          {
            tone: "wait",
            title: "The processor is paused",
            text:
              restored_at === undefined
                ? html`${name} takes no payments until it is resumed.`
                : html`${name} takes no payments. ${mustReconcile(id)}`,
            href
          }
        ]
      : [
          {
            tone: "bad",
            title: "The processor is out of order",
            text: html`${name} has failed too often. New payments are refused until it answers again.`,
            href
          }
        ]
  })
})

/** Returns the warnings, most urgent first. `now` is the account's clock. */
export const findMatters = Effect.fnUntraced(function* (
  visit: Visit,
  { ahead, now }: AccountClock,
  endpoints: ReadonlyArray<Health>
) {
  const found: Array<Matter> = [...(yield* processorMatters(visit)), ...(yield* operationMatters(visit, now))]
  const unresolved = yield* findOlder(visit, "processing", now - UNRESOLVED_SECONDS)
  if (unresolved.rows.length > 0) {
    found.push({
      tone: "bad",
      title: several(unresolved.rows.length, unresolved.hasMore, "payment", "payments") + " without a result",
      text: `The card processor has not answered for more than ${spanOf(UNRESOLVED_SECONDS)}.`,
      href: visit.to("/payments", { status: "processing" })
    })
  }
  for (const { endpoint, failing } of endpoints) {
    const isEnabled = endpoint.status === "enabled"
    if (failing.length === 0 && isEnabled) continue
    const url = html`<bdi>${endpoint.url}</bdi>`
    const deliveries = failing.length === 1 ? "1 recent delivery" : `${failing.length} recent deliveries`
    const were = failing.length === 1 ? "was" : "were"
    found.push({
      tone: isEnabled ? "bad" : "wait",
      title: isEnabled ? "Webhooks are failing" : "Webhooks are off",
      text: isEnabled
        ? html`${deliveries} to ${url} ${were} rejected or timed out.`
        : html`Nothing is sent to ${url} until you switch it on again.`,
      href: visit.to(`/webhooks/${endpoint.id}`)
    })
  }
  for (const { expires_at, last4, prefix, status } of yield* readKeys(visit)) {
    if (status !== "rolling" || expires_at === null) continue
    found.push({
      tone: "wait",
      title: "A key is about to expire",
      text: html`<code>${prefix}…${last4}</code> stops working at ${time(expires_at)}.`,
      href: visit.to("/developers")
    })
  }
  const held = yield* findOlder(visit, "requires_capture", now)
  if (held.rows.length > 0) {
    found.push({
      tone: "wait",
      title: several(held.rows.length, held.hasMore, "payment", "payments") + " to capture",
      text: "Authorized payments that are not captured are released to the payer after a few days.",
      href: visit.to("/payments", { status: "requires_capture" })
    })
  }
  if (ahead > 0) {
    found.push({
      tone: "plain",
      title: "The test clock is ahead",
      text: `It is ${spanOf(ahead)} ahead, so new payments get a date in the future.`,
      href: visit.to("/developers")
    })
  }
  return found
})

export const attentionSection = (found: ReadonlyArray<Matter>): Child =>
  found.length > 0 &&
  html`<section class="attention" aria-labelledby="attention">
    <h2 id="attention">Needs attention</h2>
    <ul>
      ${found.map(
        ({ href, text, title, tone }) => html`<li><a href="${href}">${badge(title, tone)}</a> <span>${text}</span></li>`
      )}
    </ul>
  </section>`

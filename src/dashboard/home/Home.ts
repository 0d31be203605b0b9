/** The home page: payment volume, recent payments, and warnings. */
import { Effect, Schema } from "effect"
import { DeclineCode } from "../../domain/Cards.ts"
import { Accounts } from "../../engine/Accounts.ts"
import { type Child, html } from "../../html/Html.ts"
import { readClock } from "../../payments/TestHelpers.ts"
import { PAYMENT_INTENT } from "../../payments/shared/Documents.ts"
import { type Health, readHealth } from "../developers/EndpointHealth.ts"
import { attentionSection, findMatters } from "./Attention.ts"
import { chart, ranking } from "../frame/Chart.ts"
import { table } from "../frame/Table.ts"
import { amountText, badge, money, NOTHING, section, words } from "../frame/Values.ts"
import { type Counted, type Numbered, numbersOf, type RangeName, rangeNamed, RANGES, type Sums } from "./Numbers.ts"
import { noPayments, paymentColumns } from "../payments/Payments.ts"
import { customersOf } from "../payments/Payers.ts"
import { listObjects } from "../frame/Queries.ts"
import { page, type Show } from "../frame/Page.ts"
import { wallText } from "../frame/TimeZones.ts"
import type { Visit } from "../frame/Visit.ts"

const PAYMENTS_MAX = 8

/** The share of attempted payments that succeeded: `83 %`. Rounded down, so 100 % means no failure. */
const rateOf = ({ failed, paid }: Pick<Sums, "failed" | "paid">): string =>
  paid + failed === 0 ? "–" : `${Math.floor((100 * paid) / (paid + failed))} %`

const choice = (label: string, options: ReadonlyArray<readonly [href: string, name: string, isChosen: boolean]>) =>
  html`<nav class="choice" aria-label="${label}">
    ${options.map(
      ([href, name, isChosen]) => html`<a href="${href}" ${isChosen && html`aria-current="true"`}>${name}</a>`
    )}
  </nav>`

const figures = (entries: ReadonlyArray<readonly [name: string, value: Child, more: Child]>) =>
  html`<dl class="figures">
    ${entries.map(
      ([name, value, more]) =>
        html`<div>
          <dt>${name}</dt>
          <dd><strong>${value}</strong> <small>${more}</small></dd>
        </div>`
    )}
  </dl>`

/** The start of an interval in a time zone: `11-27 05:00` for an hour, `2026-11-27` for a day. */
const labelOf = (range: RangeName, zone: string, start: number): string => {
  const text = wallText(zone, start)
  return range === "24h" ? text.slice(5, 16) : text.slice(0, 10)
}

interface Drawn {
  readonly range: RangeName
  readonly zone: string
  readonly starts: ReadonlyArray<number>
}

const charts = ({ range, starts, zone }: Drawn, { currency, refunds, steps }: Counted): Child => {
  const per = range === "24h" ? "per hour" : "per day"
  const amount = (minor: number) => amountText(minor, currency)
  const drawChart = (
    title: string,
    unit: string,
    barOf: (sums: Sums) => Omit<Parameters<typeof chart>[0]["bars"][0], "label">,
    partName?: string
  ) =>
    chart({
      title: `${title} ${per}`,
      unit,
      ...(partName !== undefined && { partName }),
      zone,
      bars: steps.map((sums, index) => ({ label: labelOf(range, zone, starts[index]!), ...barOf(sums) }))
    })
  return html`<div class="charts">
      ${drawChart("Volume", "Received", ({ volume }) => ({ value: volume, text: amount(volume) }))}
      ${drawChart(
        "Payments",
        "Attempted",
        ({ failed, paid }) => ({
          value: paid + failed,
          part: failed,
          text: failed === 0 ? String(paid) : `${paid + failed}, ${failed} failed`
        }),
        "Failed"
      )}
      ${refunds > 0 && drawChart("Refunds", "Refunded", ({ refunded }) => ({ value: refunded, text: amount(refunded) }))}
    </div>
    ${lateDays({ range, starts, zone })}`
}

/** A hint where days begin late, because sums exist by hours in UTC. */
const lateDays = ({ range, starts, zone }: Drawn): Child => {
  const time = wallText(zone, starts.at(-1)!).slice(11, 16)
  return (
    range !== "24h" &&
    /:(?!00)/.test(time) &&
    html`<p class="hint">Days begin at ${time}: Till counts in whole hours of UTC.</p>`
  )
}

const declinesChart = (visit: Visit, from: number, { currency, declines }: Counted): Child => {
  const total = declines.values().reduce((sum, count) => sum + count, 0)
  const rows = [...declines]
    .map(([id, count]) => ({ id, count, reason: words(id) }))
    .toSorted((one, other) => other.count - one.count)
  if (rows.length === 0) return html`<div class="empty">No declined payments.</div>`
  return ranking({
    title: "Declined attempts by reason",
    ranked: rows.map(({ count, id, reason }) => ({
      name: reason,
      values: [count],
      text: String(count),
      // The link finds payments that still have this decline.
      ...(Schema.is(DeclineCode)(id) && {
        href: visit.to("/payments", { decline: id, currency, from: labelOf("7d", visit.zone, from) })
      })
    })),
    table: table({
      caption: "Declined attempts by reason",
      columns: [
        { name: "Reason", cell: ({ reason }) => reason },
        { name: "Attempts", align: "end", cell: ({ count }) => count },
        { name: "Share", align: "end", cell: ({ count }) => `${Math.round((100 * count) / total)} %` }
      ],
      rows,
      empty: null
    })
  })
}

/** A figure of the range before, for comparison. */
const beforeText = (range: RangeName, figure: Child): Child => html`<br />${figure} in the ${RANGES[range].name} before`

const overview = (visit: Visit, range: RangeName, { before, currencies, starts }: Numbered): Child => {
  const [first] = currencies
  const asked = visit.query.get("currency")
  const counted = currencies.find(({ currency }) => currency === asked) ?? first
  const ranges = Object.entries(RANGES).map(
    ([key, { name }]) => [visit.here({ range: key }), name, key === range] as const
  )
  const chosen = html`<div class="choices">
    ${
      currencies.length > 1 &&
      choice(
        "Currency",
        currencies.map(({ currency }) => [
          visit.here({ currency }),
          currency.toUpperCase(),
          currency === counted?.currency
        ])
      )
    }
    ${choice("Time range", ranges)}
  </div>`
  if (counted === undefined) {
    return section("Overview", html`<div class="empty">No payments in the last ${RANGES[range].name}.</div>`, chosen)
  }
  const { currency, failed, paid, refunded, refunds, volume } = counted
  const earlier = before.get(currency)
  const compared = (text: string, figureOf: (earlier: Sums) => Child): Child => [
    text,
    earlier !== undefined && beforeText(range, figureOf(earlier))
  ]
  return [
    section(
      "Overview",
      [
        figures([
          [
            "Volume",
            money(volume, currency),
            compared("received, before refunds", ({ volume }) => money(volume, currency))
          ],
          ["Success rate", rateOf(counted), compared(`${paid} of ${paid + failed} attempted payments`, rateOf)],
          [
            "Refunds",
            money(refunded, currency),
            compared(refunds === 1 ? "one refund" : `${refunds} refunds`, ({ refunded }) => money(refunded, currency))
          ]
        ]),
        charts({ range, zone: visit.zone, starts }, counted)
      ],
      chosen
    ),
    section("Declines", declinesChart(visit, starts[0]!, counted))
  ]
}

const healthTable = (visit: Visit, endpoints: ReadonlyArray<Health>) =>
  table({
    caption: "Webhook endpoints with their recent deliveries",
    columns: [
      { name: "Endpoint", long: true, cell: ({ endpoint }) => endpoint.url },
      { name: "Status", cell: ({ endpoint }) => badge(endpoint.status) },
      {
        name: "Success",
        align: "end",
        cell: ({ delivered, failing }) =>
          delivered + failing.length === 0 ? NOTHING : rateOf({ paid: delivered, failed: failing.length })
      },
      { name: "Delivered", align: "end", cell: ({ delivered }) => delivered },
      { name: "Failing", align: "end", cell: ({ failing }) => failing.length },
      { name: "Waiting", align: "end", cell: ({ waiting }) => waiting }
    ],
    rows: endpoints,
    href: ({ id }) => visit.to(`/webhooks/${id}`),
    empty: null
  })

/** `12 of 36 delivered, 20 failing, 4 waiting`. */
const healthText = ({ delivered, failing, waiting }: Health): string => {
  const all = delivered + failing.length + waiting
  if (all === 0) return "no deliveries"
  const others = [failing.length > 0 && `${failing.length} failing`, waiting > 0 && `${waiting} waiting`]
  return [`${delivered} of ${all} delivered`, ...others].filter(Boolean).join(", ")
}

const webhooks = (visit: Visit, endpoints: ReadonlyArray<Health>): Child => {
  const to = visit.to("/webhooks")
  if (endpoints.length === 0) {
    return html`<div class="empty">
      No endpoints yet. <a href="${to}">Webhooks</a> notify your server about events.
    </div>`
  }
  return ranking({
    title: "Recent deliveries by endpoint",
    kinds: ["Delivered", "Failing", "Waiting"],
    isShares: true,
    ranked: endpoints.map((one) => ({
      name: one.endpoint.url,
      href: visit.to(`/webhooks/${one.id}`),
      values: [one.delivered, one.failing.length, one.waiting],
      text: healthText(one)
    })),
    table: healthTable(visit, endpoints)
  })
}

const show: Show = Effect.fnUntraced(function* (visit) {
  const range = rangeNamed(visit.query.get("range"))
  const clock = yield* Accounts.use((accounts) => accounts.run(visit.account, readClock))
  const { rows } = yield* listObjects(visit.account, PAYMENT_INTENT, { limit: PAYMENTS_MAX })
  const customers = yield* customersOf(visit.account, rows)
  const counted = yield* numbersOf(visit.account, range, clock.now, visit.zone)
  const endpoints = yield* readHealth(visit)
  const found = yield* findMatters(visit, clock, endpoints)
  return {
    title: "Home",
    section: "Home",
    live: ["payment_intent", "customer", "refund", "webhook_endpoint", "delivery"],
    content: [
      visit.person.has_password
        ? null
        : html`<p class="message">
            You signed in with a one-time link. <a href="${visit.to("/account")}">Set an email and password</a> in the
            next 10 minutes so you can sign in again.
          </p>`,
      attentionSection(found),
      overview(visit, range, counted),
      section(
        "Recent payments",
        table({
          caption: "Newest payments",
          columns: paymentColumns(visit, customers),
          rows,
          href: ({ id }) => visit.to(`/payments/${id}`),
          empty: noPayments(visit)
        }),
        html`<a href="${visit.to("/payments")}">All payments</a>`
      ),
      section("Webhooks", webhooks(visit, endpoints))
    ]
  }
})

export const layer = page("", "see", show)

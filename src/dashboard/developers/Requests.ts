/** The request log: list, filters, grouped errors and the page of a request. */
import { Effect, Layer } from "effect"
import { API_VERSIONS } from "../../domain/ApiVersion.ts"
import { statusesOf } from "../../domain/RequestLog.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { type ErrorGroup, type LoggedRequest, type RequestFilter, RequestLog } from "../../engine/RequestLog.ts"
import { type Child, html } from "../../html/Html.ts"
import { seeOther } from "../../html/PageResponse.ts"
import { filters } from "../frame/Form.ts"
import { json } from "../frame/Json.ts"
import { cursorIn, pageLinks, table } from "../frame/Table.ts"
import { badge, code, facts, NOTHING, section, time, type Tone } from "../frame/Values.ts"
import { csvFile, type CsvFile, csvLink, createdColumn } from "../frame/CsvFile.ts"
import { recordSection } from "../history/History.ts"
import { REQUEST } from "../frame/Live.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import { PAGE_ROWS } from "../frame/Queries.ts"
import { download, page, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

const toneOf = (status: number): Tone => (status < 400 ? "good" : status < 500 ? "wait" : "bad")

const secondsOf = (millis: number): number => Math.floor(millis / 1000)

const filterErrors = (query: URLSearchParams): Readonly<Record<string, string>> | null => {
  const status = query.get("status")?.trim() ?? ""
  return status === "" || statusesOf(status) !== undefined ? null : { status: "Enter a status such as 402, or 4xx." }
}

const readFilter = (query: URLSearchParams): RequestFilter => {
  const given = (name: string) => {
    const text = query.get(name)?.trim().replaceAll("\0", "") ?? ""
    return text === "" ? undefined : text
  }
  const asked = {
    status: statusesOf(given("status") ?? ""),
    method: given("method")?.toUpperCase(),
    path: given("path"),
    apiKey: given("key"),
    apiVersion: given("version"),
    idempotencyKey: given("idempotency_key"),
    object: given("object"),
    code: given("code")
  }
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined))
}

const isErrors = (visit: Visit): boolean => visit.query.get("view") === "errors"

const filterForm = (visit: Visit) =>
  filters(
    visit,
    "/requests",
    (fields) => [
      isErrors(visit) && html`<input type="hidden" name="view" value="errors" />`,
      fields.text({ name: "status", label: "Status (402, 4xx)" }),
      fields.choice({
        name: "method",
        label: "Method",
        options: [["", "Any"], ...["GET", "POST", "DELETE"].map((method) => [method, method] as const)]
      }),
      fields.text({ name: "path", label: "Path begins with" }),
      fields.text({ name: "object", label: "Object ID" }),
      fields.text({ name: "code", label: "Error code" }),
      fields.text({ name: "idempotency_key", label: "Idempotency key" }),
      fields.text({ name: "key", label: "API key ID" }),
      fields.choice({
        name: "version",
        label: "API version",
        options: [["", "Any"], ...API_VERSIONS.map((version) => [version, version] as const)]
      })
    ],
    { errors: filterErrors(visit.query) ?? {} }
  )

const replayBadge = ({ originalRequest }: LoggedRequest): Child =>
  originalRequest !== null && badge("replayed", "plain")

const requestsTable = (visit: Visit, requests: ReadonlyArray<LoggedRequest>, isFiltered: boolean) =>
  table({
    caption: "Requests, newest first",
    columns: [
      { name: "Request", long: true, cell: ({ method, path }) => html`${method} ${path}` },
      {
        name: "Status",
        cell: (request) => html`${badge(String(request.status), toneOf(request.status))} ${replayBadge(request)}`
      },
      {
        name: "Error",
        cell: ({ error }) => (error === null ? NOTHING : html`<code class="whole">${error.code}</code>`),
        wide: true
      },
      {
        name: "Idempotency key",
        wide: true,
        cell: ({ idempotencyKey }) => (idempotencyKey === null ? NOTHING : html`<code>${idempotencyKey}</code>`)
      },
      { name: "Duration", align: "end", cell: ({ millis }) => `${millis.toFixed(1)}\u00a0ms`, wide: true },
      { name: "Date", cell: ({ at }) => time(secondsOf(at)) }
    ],
    rows: requests,
    href: ({ id }) => visit.to(`/requests/${id}`),
    empty: isFiltered
      ? "No requests match these filters."
      : html`No requests yet. See <a href="${visit.to("/developers")}">Developers</a> for an example.`
  })

const errorsTable = (visit: Visit, groups: ReadonlyArray<ErrorGroup>) =>
  table({
    caption: "Errors in recent requests, most frequent first",
    columns: [
      { name: "Error", cell: ({ code }) => html`<code class="whole">${code}</code>` },
      {
        name: "Status",
        cell: ({ method, status }) =>
          html`<span class="whole">${badge(String(status), toneOf(status))} ${method}</span>`
      },
      { name: "Requests", align: "end", cell: ({ count }) => String(count) },
      { name: "Parameter", cell: ({ param }) => (param === null ? NOTHING : html`<code>${param}</code>`), wide: true },
      { name: "Latest message", long: true, cell: ({ last }) => last.message, wide: true },
      {
        name: "Latest",
        cell: ({ last }) => html`<a href="${visit.to(`/requests/${last.id}`)}">${time(secondsOf(last.at))}</a>`
      }
    ],
    rows: groups,
    href: ({ code, method, status }) => visit.here({ view: null, code, method, status: String(status), after: null }),
    empty: "No failed requests."
  })

const views = (visit: Visit): Child =>
  html`<p class="views">
    ${isErrors(visit) ? html`<a href="${visit.here({ view: null })}">All requests</a>` : html`<strong>All requests</strong>`}
    ${
      isErrors(visit)
        ? html`<strong>Grouped by error</strong>`
        : html`<a href="${visit.here({ view: "errors", after: null, before: null })}">Grouped by error</a>`
    }
  </p>`

/** Retention of the log, and the number of requests that it dropped. */
const bounds = (days: number, leftOut: number): Child =>
  html`<p class="hint">
    Kept for ${days} ${days === 1 ? "day" : "days"}, without card data and secrets.
    ${leftOut > 0 && html`<strong>${leftOut}</strong> recent requests were not logged: there were too many at once.`}
  </p>`

const showAll: Show = Effect.fnUntraced(function* (visit) {
  const log = yield* RequestLog
  const frame = { title: "Requests", section: "Requests", live: [REQUEST] } as const
  if (log.days === 0) {
    return {
      ...frame,
      content: html`<p class="empty">The request log is off: <code>TILL_REQUEST_LOG_DAYS</code> is 0.</p>`
    }
  }
  const filter = readFilter(visit.query)
  const above = [views(visit), filterForm(visit)]
  if (filterErrors(visit.query) !== null) {
    return {
      ...frame,
      status: 400,
      content: [...above, html`<p class="empty">We couldn't read this search. Correct the marked field.</p>`]
    }
  }
  if (isErrors(visit)) {
    const groups = yield* log.errors(visit.account, filter)
    return { ...frame, content: [...above, errorsTable(visit, groups), bounds(log.days, log.leftOut())] }
  }
  const cursor = cursorIn(visit.query)
  const { hasMore, requests } = yield* log.list(visit.account, { filter, limit: PAGE_ROWS, ...cursor })
  return {
    ...frame,
    aside: html`<div class="buttons">${csvLink(visit, "/requests.csv", requests)}</div>`,
    content: [
      ...above,
      requestsTable(visit, requests, Object.keys(filter).length > 0),
      pageLinks(visit, requests, hasMore),
      bounds(log.days, log.leftOut())
    ]
  }
})

const objectHtml = (visit: Visit, id: string): Child =>
  html`<div>
    ${objectLink(visit, id)} <a class="whole" href="${visit.to("/requests", { object: id })}">requests</a>
  </div>`

const filterLink = (visit: Visit, name: string, value: string): Child =>
  html`<a href="${visit.to("/requests", { [name]: value })}"><code>${value}</code></a>`

const factsOf = (visit: Visit, request: LoggedRequest) =>
  facts([
    ["ID", code(request.id)],
    ["Date", time(secondsOf(request.at))],
    ["Duration", `${request.millis.toFixed(1)}\u00a0ms`],
    ["API key", filterLink(visit, "key", request.apiKey)],
    ["API version", filterLink(visit, "version", request.apiVersion)],
    [
      "Idempotency key",
      request.idempotencyKey === null ? null : filterLink(visit, "idempotency_key", request.idempotencyKey)
    ],
    [
      "Replay of",
      request.originalRequest === null
        ? null
        : html`<a href="${visit.to(`/requests/${request.originalRequest}`)}"
            ><code>${request.originalRequest}</code></a
          >`
    ],
    ["Objects", request.objects.length === 0 ? null : request.objects.map((id) => objectHtml(visit, id))]
  ])

const errorHtml = ({ publicUrl }: Visit, { error }: LoggedRequest): Child =>
  error &&
  section(
    "Error",
    facts([
      ["Message", error.message],
      ["Code", html`<a href="${publicUrl}/docs/errors/${error.code}"><code>${error.code}</code></a>`],
      ["Type", html`<code>${error.type}</code>`],
      ["Parameter", error.param === null ? null : html`<code>${error.param}</code>`]
    ])
  )

/** The response from the journal. Requests that changed nothing have none there, only the log's error. */
const answerHtml = (visit: Visit, { error, originalRequest }: LoggedRequest, answer: string | null): Child =>
  section(
    "Response",
    answer?.startsWith("{") === true
      ? json(visit, answer, "The response as JSON")
      : html`<p class="empty">
          ${
            answer !== null
              ? "Not shown, because it contains a secret."
              : originalRequest !== null
                ? "The response of the original request."
                : error === null
                  ? "Not stored, because the request changed nothing."
                  : "The error above. Nothing was changed."
          }
        </p>`
  )

/** The journal record that the request has written, if any. */
const recordOf = Effect.fnUntraced(function* (account: AccountId, { at, id, method, millis, objects }: LoggedRequest) {
  if (method === "GET" || objects.length === 0) return undefined
  const query = { request: id, ids: objects, at, millis }
  return yield* Accounts.use((accounts) => accounts.recordOf(account, query))
})

const showOne: Show = Effect.fnUntraced(function* (visit, { id = "" }) {
  const log = yield* RequestLog
  const request = (yield* log.find(visit.account, [id])).get(id)
  if (request === undefined) return undefined
  const record = yield* recordOf(visit.account, request)
  return {
    title: `${request.method} ${request.path}`,
    section: "Requests",
    back: ["/requests", "Requests"],
    aside: [badge(String(request.status), toneOf(request.status)), replayBadge(request)],
    content: [
      factsOf(visit, request),
      errorHtml(visit, request),
      record && (yield* recordSection(visit, record)),
      section(
        request.method === "GET" ? "Query" : "Body",
        request.sent === null
          ? html`<p class="empty">Empty, or too large for the log.</p>`
          : json(visit, request.sent, "The request as it was logged")
      ),
      answerHtml(visit, request, record?.answer ?? null)
    ]
  }
})

const columns: CsvFile<LoggedRequest>["columns"] = [
  ["Request ID", ({ id }) => id],
  createdColumn(({ at }) => Math.floor(at / 1000)),
  ["Method", ({ method }) => method],
  ["Path", ({ path }) => path],
  ["Status", ({ status }) => String(status)],
  ["Duration (ms)", ({ millis }) => millis.toFixed(1)],
  ["Error", ({ error }) => error?.code],
  ["Error message", ({ error }) => error?.message],
  ["Parameter", ({ error }) => error?.param],
  ["Idempotency key", ({ idempotencyKey }) => idempotencyKey],
  ["Replay of", ({ originalRequest }) => originalRequest],
  ["API key", ({ apiKey }) => apiKey],
  ["API version", ({ apiVersion }) => apiVersion],
  ["Objects", ({ objects }) => objects.join(" ")]
]

/** The filtered requests as CSV, without bodies (semantics request_log.kept). */
const file = download(
  "/requests.csv",
  "see",
  Effect.fnUntraced(function* (visit) {
    if (filterErrors(visit.query) !== null) return seeOther(visit.to("/requests", Object.fromEntries(visit.query)))
    const log = yield* RequestLog
    const filter = readFilter(visit.query)
    const read: CsvFile<LoggedRequest>["read"] = ({ cursor, limit }) =>
      Effect.map(log.list(visit.account, { filter, limit, ...cursor }), ({ hasMore, requests }) => ({
        rows: requests,
        hasMore
      }))
    return yield* csvFile(visit, { name: "requests", columns, read })
  })
)

export const layer = Layer.mergeAll(page("/requests", "see", showAll), page("/requests/:id", "see", showOne), file)

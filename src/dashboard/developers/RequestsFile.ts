/** The requests that an address asks for as CSV, without what was sent (semantics 9.66). */
import { Effect } from "effect"
import type { LoggedRequest } from "../../engine/RequestLog.ts"
import { RequestLog } from "../../engine/RequestLog.ts"
import { seeOther } from "../../html/PageResponse.ts"
import type { CsvFile } from "../frame/CsvFile.ts"
import { csvFile, csvTime } from "../frame/CsvFile.ts"
import { filterOf, problemsOf } from "./Requests.ts"
import { download } from "../frame/Page.ts"

const columns: CsvFile<LoggedRequest>["columns"] = [
  ["id", ({ id }) => id],
  ["created_utc", ({ at }) => csvTime(Math.floor(at / 1000))],
  ["method", ({ method }) => method],
  ["path", ({ path }) => path],
  ["status", ({ status }) => String(status)],
  ["took_ms", ({ millis }) => millis.toFixed(1)],
  ["error_code", ({ error }) => error?.code],
  ["error_message", ({ error }) => error?.message],
  ["parameter", ({ error }) => error?.param],
  ["idempotency_key", ({ idempotencyKey }) => idempotencyKey],
  ["replay_of", ({ originalRequest }) => originalRequest],
  ["api_key", ({ apiKey }) => apiKey],
  ["api_version", ({ apiVersion }) => apiVersion],
  ["objects", ({ objects }) => objects.join(" ")]
]

export const layer = download(
  "/requests.csv",
  "see",
  Effect.fnUntraced(function* (visit) {
    if (problemsOf(visit.query) !== null) return seeOther(visit.to("/requests", Object.fromEntries(visit.query)))
    const log = yield* RequestLog
    const filter = filterOf(visit.query)
    const read: CsvFile<LoggedRequest>["read"] = ({ cursor, limit }) =>
      Effect.map(log.list(visit.account, { filter, limit, ...cursor }), ({ hasMore, requests }) => ({
        rows: requests,
        hasMore
      }))
    return yield* csvFile(visit, { name: "requests", columns, read })
  })
)

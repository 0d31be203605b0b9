/** The log of requests over HTTP (semantics request_log.list). */
import { Effect } from "effect"
import { LIMIT_DEFAULT } from "../../api/List.ts"
import * as Contract from "../../api/RequestLogs.ts"
import { RequestLogOff, ResourceMissing } from "../../domain/Errors.ts"
import { type RequestLog as Shown, statusesOf } from "../../domain/RequestLog.ts"
import { timeIn } from "../../engine/log/Identifiers.ts"
import { type LoggedRequest, type RequestFilter, RequestLog } from "../../engine/RequestLog.ts"
import { parseJson } from "../../json/JsonParse.ts"
import { isLive } from "../../payments/shared/AccountIds.ts"
import { handlers, jsonOf } from "./Handler.ts"
import { createdOf, cursorOf, listJson } from "./Lists.ts"

export const requestLogs = handlers(Contract.RequestLogs, {
  list: Effect.fnUntraced(function* ({ caller: { account }, path, query }) {
    const log = yield* keptLog
    const cursor = yield* cursorOf(account, query, "Request", (of, id) =>
      Effect.map(log.find(of, [id]), (found) => found.has(id))
    )
    const page = yield* log.list(account, {
      filter: filterOf(query),
      limit: query.limit ?? LIMIT_DEFAULT,
      created: createdOf(query),
      ...cursor
    })
    const items = page.requests.map((request) => ({ id: request.id, json: jsonOf(shown(request)) }))
    return listJson<Shown>(items, page.hasMore, path)
  }),

  retrieve: Effect.fnUntraced(function* ({ caller: { account }, params: { id } }) {
    const log = yield* keptLog
    const request = (yield* log.find(account, [id])).get(id)
    if (request === undefined) return yield* new ResourceMissing({ kind: "Request", id, param: "id" })
    return jsonOf(shown(request))
  })
})

const keptLog = Effect.flatMap(RequestLog, (log) =>
  log.days === 0 ? Effect.fail(new RequestLogOff()) : Effect.succeed(log)
)

interface Filters {
  readonly status?: string
  readonly method?: string
  readonly path?: string
  readonly api_key?: string
  readonly api_version?: string
  readonly idempotency_key?: string
  readonly object?: string
  readonly error_code?: string
}

const filterOf = (query: Filters): RequestFilter => ({
  status: query.status === undefined ? undefined : statusesOf(query.status),
  method: query.method,
  path: query.path,
  apiKey: query.api_key,
  apiVersion: query.api_version,
  idempotencyKey: query.idempotency_key,
  object: query.object,
  code: query.error_code
})

const shown = (request: LoggedRequest): Shown => {
  const sent: unknown = request.sent === null ? null : parseJson(request.sent)
  const isQuery = request.method === "GET"
  return {
    id: request.id,
    object: "request_log",
    created: Math.floor(timeIn(request.id) / 1000),
    livemode: isLive(request.account),
    method: request.method,
    path: request.path,
    status: request.status,
    duration_ms: request.millis,
    api_key: request.apiKey,
    api_version: request.apiVersion,
    idempotency_key: request.idempotencyKey,
    original_request: request.originalRequest,
    error: request.error,
    objects: request.objects,
    request_body: isQuery ? null : sent,
    query: isQuery ? (sent as Shown["query"]) : null
  }
}

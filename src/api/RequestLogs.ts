/** The request log: requests and their results, newest first (semantics request_log.kept, request_log.list). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { ApiKeyId } from "../domain/Identifiers.ts"
import { RequestLog, statusesOf } from "../domain/RequestLog.ts"
import { text } from "../domain/Text.ts"
import { requestHeaders } from "./Access.ts"
import { errors } from "./Errors.ts"
import { List, listQuery } from "./List.ts"

const Statuses = Schema.String.check(
  Schema.makeFilter((filter: string) => statusesOf(filter) !== undefined, {
    rule: "a status, such as `402`, or a class of them, such as `4xx`"
  })
).annotate({ description: "One status, `402`, or all of a class, `4xx`." })

const Method = Schema.String.check(Schema.isPattern(/^[A-Z]{1,20}$/u)).annotate({
  rule: "a method in upper case, such as `POST`"
})

const filter = (description: string) =>
  Schema.optionalKey(text().check(Schema.isMinLength(1)).annotate({ rule: "a string that is not empty", description }))

const OFF =
  "An installation without a request log returns `400 request_log_off`. Requests to the log itself are not logged."

export const RequestLogs = HttpApiGroup.make("request_logs").add(
  HttpApiEndpoint.get("list", "/v1/request_logs", {
    headers: requestHeaders,
    query: {
      ...listQuery,
      status: Schema.optionalKey(Statuses),
      method: Schema.optionalKey(Method),
      path: filter("The beginning of the path: `/v1/payment_intents`."),
      api_key: Schema.optionalKey(ApiKeyId),
      api_version: filter("The API version of the response."),
      idempotency_key: filter("The idempotency key, as sent."),
      object: filter("The ID of an object that the path or the response names."),
      error_code: filter("The `code` of the error: `card_declined`.")
    },
    success: List(RequestLog),
    error: errors
  })
    .annotate(OpenApi.Summary, "List requests")
    .annotate(
      OpenApi.Description,
      `Requests appear shortly after their response, stay for some days, and contain no card data or secrets. ${OFF}`
    ),
  HttpApiEndpoint.get("retrieve", "/v1/request_logs/:id", {
    headers: requestHeaders,
    params: { id: Schema.String },
    success: RequestLog,
    error: errors
  })
    .annotate(OpenApi.Summary, "Retrieve a request")
    .annotate(OpenApi.Description, OFF)
)

/** The log of requests: what was asked and how it was answered, newest first (semantics 9.66, 9.78). */
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

const given = (description: string) =>
  Schema.optionalKey(text().check(Schema.isMinLength(1)).annotate({ rule: "a string that is not empty", description }))

const OFF =
  "An installation that keeps no requests answers `400 request_log_off`. What is asked of this log is not in it."

export const RequestLogs = HttpApiGroup.make("request_logs").add(
  HttpApiEndpoint.get("list", "/v1/request_logs", {
    headers: requestHeaders,
    query: {
      ...listQuery,
      status: Schema.optionalKey(Statuses),
      method: Schema.optionalKey(Method),
      path: given("The beginning of the path: `/v1/payment_intents`."),
      api_key: Schema.optionalKey(ApiKeyId),
      api_version: given("The version of the answer."),
      idempotency_key: given("The idempotency key, as it was sent."),
      object: given("The ID of an object that the path or the answer names."),
      error_code: given("The `code` of the error: `card_declined`.")
    },
    success: List(RequestLog),
    error: errors
  })
    .annotate(OpenApi.Summary, "List requests")
    .annotate(
      OpenApi.Description,
      `Requests are there a moment after they were answered, for some days, and without card data and secrets. ${OFF}`
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

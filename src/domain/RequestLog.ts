/** The entries of the request log, and its status filter (semantics request_log.kept, request_log.list). */
import { Schema } from "effect"
import { ApiKeyId, RequestId } from "./Identifiers.ts"
import { Timestamp } from "./Time.ts"

/** The first and the last status of a range. */
export type Statuses = readonly [from: number, to: number]

/** Parses a filter: `402`, or `4xx` for all statuses from 400 to 499; undefined for any other text. */
export const statusesOf = (filter: string): Statuses | undefined => {
  const [, first, rest] = /^([1-5])(xx|[0-9]{2})$/iu.exec(filter) ?? []
  if (first === undefined || rest === undefined) return undefined
  const isClass = rest.toLowerCase() === "xx"
  return isClass ? [Number(`${first}00`), Number(`${first}99`)] : [Number(first + rest), Number(first + rest)]
}

/** An entry of the request log. `created` is when the request arrived, in Unix seconds of the wall clock. */
export const RequestLog = Schema.Struct({
  id: RequestId,
  object: Schema.Literal("request_log"),
  created: Timestamp,
  livemode: Schema.Boolean,
  method: Schema.String.annotate({ examples: ["POST"] }),
  /** The path without the query. */
  path: Schema.String.annotate({ examples: ["/v1/payment_intents"] }),
  status: Schema.Int.annotate({ examples: [402] }),
  /** Milliseconds from the arrival to the response. */
  duration_ms: Schema.Finite,
  api_key: ApiKeyId,
  api_version: Schema.String,
  idempotency_key: Schema.NullOr(Schema.String),
  /** The request whose response this one repeated. */
  original_request: Schema.NullOr(RequestId),
  error: Schema.NullOr(
    Schema.Struct({
      type: Schema.String.annotate({ examples: ["payment_error"] }),
      code: Schema.String.annotate({ examples: ["card_declined"] }),
      param: Schema.NullOr(Schema.String),
      message: Schema.String.annotate({ examples: ["Your card was declined."] })
    })
  ),
  /** Up to 12 ids of objects named by the path or the response. */
  objects: Schema.Array(Schema.String.annotate({ examples: ["pi_08Qm3vXk1Zr9TbLw5YcHn2Ea"] })),
  request_body: Schema.NullOr(Schema.Unknown),
  query: Schema.NullOr(Schema.Record(Schema.String, Schema.String))
}).annotate({ identifier: "RequestLog" })
export type RequestLog = typeof RequestLog.Type

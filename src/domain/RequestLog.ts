/** What the log of requests shows of one, and what lists of them are filtered by (semantics 9.66, 9.78). */
import { Schema } from "effect"
import { ApiKeyId, RequestId } from "./Identifiers.ts"
import { Timestamp } from "./Time.ts"

/** The first and the last of some statuses. */
export type Statuses = readonly [from: number, to: number]

/** Reads a filter: `402`, or `4xx` for all that begin with a 4; undefined for anything else. */
export const statusesOf = (filter: string): Statuses | undefined => {
  const [, first, rest] = /^([1-5])(xx|[0-9]{2})$/iu.exec(filter) ?? []
  if (first === undefined || rest === undefined) return undefined
  const isClass = rest.toLowerCase() === "xx"
  return isClass ? [Number(`${first}00`), Number(`${first}99`)] : [Number(first + rest), Number(first + rest)]
}

/** `created` is when the request arrived, by the wall clock, in Unix seconds. */
export const RequestLog = Schema.Struct({
  id: RequestId,
  object: Schema.Literal("request_log"),
  created: Timestamp,
  livemode: Schema.Boolean,
  method: Schema.String.annotate({ examples: ["POST"] }),
  /** Without the query. */
  path: Schema.String.annotate({ examples: ["/v1/payment_intents"] }),
  status: Schema.Int.annotate({ examples: [402] }),
  /** From its arrival until it was answered. */
  duration_ms: Schema.Finite,
  api_key: ApiKeyId,
  api_version: Schema.String,
  idempotency_key: Schema.NullOr(Schema.String),
  /** The request whose answer this one got again. */
  original_request: Schema.NullOr(RequestId),
  error: Schema.NullOr(
    Schema.Struct({
      type: Schema.String.annotate({ examples: ["payment_error"] }),
      code: Schema.String.annotate({ examples: ["card_declined"] }),
      param: Schema.NullOr(Schema.String),
      message: Schema.String.annotate({ examples: ["Your card was declined."] })
    })
  ),
  /** Ids that the path or the answer names, 12 at most. */
  objects: Schema.Array(Schema.String.annotate({ examples: ["pi_08Qm3vXk1Zr9TbLw5YcHn2Ea"] })),
  /** As far as it is kept: parameters of the API, without card data and secrets. */
  request_body: Schema.NullOr(Schema.Unknown),
  /** The same of the query. */
  query: Schema.NullOr(Schema.Record(Schema.String, Schema.String))
}).annotate({ identifier: "RequestLog" })
export type RequestLog = typeof RequestLog.Type

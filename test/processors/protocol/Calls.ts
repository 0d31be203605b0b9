/** Operations, and gateways that answer as a test decides, with true signatures. */
import { Effect, Redacted } from "effect"
import type { OperationRequest } from "../../../src/payments/processing/RemoteProcessor.ts"
import type { Exchange, PostRequest, Reply } from "../../../src/processors/Exchange.ts"
import * as StandardWebhooks from "../../../src/domain/StandardWebhooks.ts"

export const SECRET = Redacted.make(`whsec_${Buffer.alloc(32, 7).toString("base64")}`)
export const OTHER = Redacted.make(`whsec_${Buffer.alloc(32, 8).toString("base64")}`)
export const NOW_SECONDS = 1_800_000_000

export const requestOf = (part: Partial<OperationRequest> = {}): OperationRequest => ({
  id: "op_1",
  kind: "authorize",
  payment: "pi_1",
  amount: 2000,
  currency: "usd",
  token: "tok_1",
  reference: null,
  capture: "automatic",
  authenticated: false,
  offSession: false,
  returnUrl: null,
  customer: null,
  description: null,
  descriptor: null,
  billingDetails: null,
  begunAt: 0,
  ...part
})

/** A state that fits the operation of `requestOf`. */
export const stateOf = (part: object = {}) => ({
  id: "op_1",
  status: "approved",
  payment: "pi_1",
  reference: "ref_1",
  amount: 2000,
  currency: "usd",
  at: 1_800_000_000,
  decline: null,
  challenge: null,
  capture_before: null,
  ...part
})

export const errorOf = (code: string, param: string | null = null) => ({ error: { code, message: "Why.", param } })

export interface Answer {
  readonly status: number
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
  /** The secret that signs; null for an answer without a signature. */
  readonly secret?: Redacted.Redacted | null
  /** The id that the signature is for; that of the request if absent. */
  readonly id?: string
}

/** An exchange that keeps its requests, and gets signed answers. */
export const exchangeWith = (answer: (request: PostRequest) => Answer | Exclude<Reply, { kind: "answered" }>) => {
  const requests: Array<PostRequest> = []
  const exchange: Exchange = {
    post: (request) =>
      Effect.sync((): Reply => {
        requests.push(request)
        const given = answer(request)
        if ("kind" in given) return given
        const body = Buffer.from(given.body)
        const { "webhook-id": id = "", "webhook-timestamp": time } = request.headers
        const { secret = SECRET } = given
        const signature = secret === null ? {} : StandardWebhooks.sign([secret], given.id ?? id, Number(time), body)
        return { kind: "answered", status: given.status, headers: { ...given.headers, ...signature }, body }
      })
  }
  return { exchange, requests }
}

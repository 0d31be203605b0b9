/** Asserts the shape that every error response has (semantics errors.envelope, responses.headers). */
import { assert } from "@effect/vitest"
import { DOCS_URL, type Reply, VERSION } from "../support/MemoryTill.ts"

const TYPES = ["invalid_request_error", "authentication_error", "payment_error", "rate_limit_error", "api_error"]

/** The headers of every response. */
export const assertHeaders = ({ headers }: Reply): void => {
  assert.strictEqual(headers.get("content-type"), "application/json")
  assert.strictEqual(headers.get("x-api-version"), VERSION)
  assert.match(headers.get("x-request-id") ?? "", /^req_[0-9A-Za-z]{24}$/)
  assert.strictEqual(headers.get("cache-control"), "no-store")
}

/** Asserts an error with all five keys and a link to its documentation. */
export const assertEnvelope = (reply: Reply): void => {
  assertHeaders(reply)
  const { error, ...rest } = reply.body
  assert.deepStrictEqual(rest, {})
  assert.include(TYPES, error.type)
  assert.match(error.code, /^[a-z_]+$/)
  assert.isString(error.message)
  assert.notStrictEqual(error.message, "")
  assert.isTrue(error.param === null || typeof error.param === "string")
  assert.strictEqual(error.doc_url, `${DOCS_URL}/errors/${error.code}`)
}

/** Asserts an error with this status, code and parameter. */
export const assertError = (reply: Reply, status: number, code: string, param: string | null = null): void => {
  assert.deepStrictEqual(
    { status: reply.status, code: reply.body?.error?.code, param: reply.body?.error?.param },
    { status, code, param },
    reply.text
  )
  assertEnvelope(reply)
}

/** Asserts a success. */
export const assertOk = (reply: Reply): void => {
  assert.strictEqual(reply.status, 200, reply.text)
  assertHeaders(reply)
}

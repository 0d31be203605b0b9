/** Responses are read as they were written, however they come; what is not plain is left to others. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { parseReply } from "../../../src/http/plain/PlainReply.ts"
import { INCOMPLETE, NOT_PLAIN } from "../../../src/http/plain/PlainRequest.ts"
import { responseBytes } from "../../../src/http/plain/PlainResponse.ts"

const status = Schema.Literals([200, 201, 302, 400, 402, 404, 409, 421, 429, 500, 503])
const body = Schema.Array(Schema.Literals(["{}", "é", "\r\n\r\n", "\u{1f9fe}", '"a":1', "HTTP/1.1 200 OK\r\n"])).check(
  Schema.isMaxLength(5)
)
const name = Schema.Literals(["content-type", "x-request-id", "till-answer", "till-account", "X-Api-Version", "etag"])
const value = Schema.Literals(["carried", "", "application/json; charset=utf-8", 'W/"a b"', "~ !", "a:b"])
const headers = Schema.Array(Schema.Tuple([name, value])).check(Schema.isMaxLength(6))
const keepsAlive = Schema.Boolean

const bytesOf = (text: string | Buffer): Buffer => (typeof text === "string" ? Buffer.from(text, "latin1") : text)

describe("a plain response", () => {
  it.prop(
    "is read as it was written, and not before all of it is there",
    [status, headers, body, keepsAlive],
    ([status, lines, parts, keepsAlive]) => {
      const given = Object.fromEntries(lines)
      const body = parts.join("")
      const bytes = bytesOf(responseBytes(status, given, body, keepsAlive ? 60_000 : undefined))
      for (let length = 0; length < bytes.length; length++) {
        assert.strictEqual(parseReply(bytes.subarray(0, length)), INCOMPLETE, `${length} of ${bytes.length} bytes`)
      }
      const behind = Buffer.concat([bytes, Buffer.from("HTTP/1.1 200 OK\r\n")])
      for (const all of [bytes, behind]) {
        const reply = parseReply(all)
        if (typeof reply === "string") return assert.fail(reply)
        assert.strictEqual(reply.status, status)
        assert.strictEqual(reply.body.toString(), body)
        assert.strictEqual(reply.end, bytes.length)
        for (const [name, value] of Object.entries(given)) assert.strictEqual(reply.headers[name.toLowerCase()], value)
        assert.strictEqual(reply.headers["connection"], keepsAlive ? "keep-alive" : "close")
      }
    },
    { arbitrary: { runs: 200 } }
  )

  it("has no body with 204", () => {
    const reply = parseReply(bytesOf(responseBytes(204, {}, "", 60_000)))
    if (typeof reply === "string") return assert.fail(reply)
    assert.deepStrictEqual([reply.status, reply.body.length], [204, 0])
  })
})

describe("a response that is not plain", () => {
  const ok = "HTTP/1.1 200 OK\r\n"
  for (const [what, text] of Object.entries({
    "an interim one": "HTTP/1.1 100 Continue\r\n\r\n",
    "an older version": "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n",
    "no response": "GET /v1/customers HTTP/1.1\r\ncontent-length: 0\r\n\r\n",
    chunks: `${ok}transfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    "chunks and a length": `${ok}content-length: 0\r\ntransfer-encoding: chunked\r\n\r\n`,
    "no length": `${ok}\r\n`,
    "a length that is none": `${ok}content-length: +1\r\n\r\na`,
    "a length for nothing": "HTTP/1.1 204 No Content\r\ncontent-length: 1\r\n\r\na",
    "two lengths": `${ok}content-length: 0\r\nContent-Length: 0\r\n\r\n`,
    "a repeated header": `${ok}content-length: 0\r\nset-cookie: a\r\nset-cookie: b\r\n\r\n`,
    "a name of every object": `${ok}content-length: 0\r\nconstructor: a\r\n\r\n`,
    "a folded line": `${ok}content-length: 0\r\na: b\r\n c\r\n\r\n`,
    "space before the colon": `${ok}content-length : 0\r\n\r\n`,
    "space behind the value": `${ok}content-length: 0 \r\n\r\n`,
    "a line feed alone": `${ok}content-length: 0\r\na: b\nc: d\r\n\r\n`,
    "another encoding": `${ok}content-length: 0\r\na: \xe9\r\n\r\n`,
    "a head without end": `${ok}a: ${"b".repeat(65_536)}`,
    "a head that is too long": `${ok}content-length: 0\r\na: ${"b".repeat(65_536)}\r\n\r\n`
  })) {
    it(`is left to others: ${what}`, () => {
      assert.strictEqual(parseReply(Buffer.from(text, "latin1")), NOT_PLAIN)
    })
  }
})

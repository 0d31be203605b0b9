import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { ResponseReader } from "../../bench/load/ResponseReader.ts"

const Response = Schema.Struct({
  status: Schema.Int.check(Schema.isBetween({ minimum: 200, maximum: 599 })),
  body: Schema.String.check(Schema.isMaxLength(300)),
  header: Schema.Literals(["Content-Length", "content-length", "CONTENT-LENGTH", "chunked"])
})
/** Lengths of the chunks, used cyclically. */
const Cuts = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 400 }))).check(Schema.isMinLength(1))

const bytesOf = ({ body, header, status }: typeof Response.Type, cuts: ReadonlyArray<number>): Buffer => {
  const head = `HTTP/1.1 ${status} OK\r\nX-Request-Id: req_1\r\n`
  if (header !== "chunked") return Buffer.from(`${head}${header}: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
  const bytes = Buffer.from(body)
  const parts = [Buffer.from(`${head}Transfer-Encoding: chunked\r\n\r\n`)]
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const chunk = bytes.subarray(at, at + cuts[i % cuts.length]!)
    at += chunk.length
    parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n"))
  }
  return Buffer.concat([...parts, Buffer.from("0\r\n\r\n")])
}

/** Positions at which responses end, as the reader sees them. */
const read = (reader: ResponseReader, bytes: Buffer, cuts: ReadonlyArray<number>): boolean => {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const chunk = bytes.subarray(at, at + cuts[i % cuts.length]!)
    at += chunk.length
    // A chunk as a socket gives it: the first bytes of a larger buffer.
    const ended = reader.push(Buffer.concat([chunk, Buffer.from("HTTP/1.1 rest of an earlier chunk")]), chunk.length)
    assert.strictEqual(ended, at === bytes.length)
  }
  return true
}

describe("ResponseReader", () => {
  it.effect.prop(
    "finds status and end of every response, however it is cut",
    [Schema.Array(Response).check(Schema.isMaxLength(5)), Cuts, Cuts],
    ([responses, cuts, chunks]) =>
      Effect.sync(() => {
        const reader = new ResponseReader()
        for (const response of responses) {
          read(reader, bytesOf(response, chunks), cuts)
          assert.strictEqual(reader.status, response.status)
          reader.reset()
        }
      })
  )

  const push = (text: string) => new ResponseReader().push(Buffer.from(text), Buffer.byteLength(text))

  it("refuses what it cannot measure", () => {
    const chunked = (body: string) => push(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body}`)
    assert.throws(() => push("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n2\r\n{}"), "without Content-Length")
    assert.isFalse(chunked("2\r\n{}\r\n"))
    assert.throws(() => chunked("2\r\n{}}\r\n0\r\n\r\n"), "longer than its size")
    assert.throws(() => chunked("2\r\n{}\r\n0\r\n\r\nHTTP/1.1"), "longer than its chunks")
    assert.throws(() => chunked("2;a=b\r\n{}\r\n0\r\n\r\n"), "Not the size of a chunk")
    assert.throws(() => chunked("0\r\nA: b\r\n\r\n"), "trailers")
    assert.throws(() => push("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1"), "longer than")
    assert.throws(() => push("SSH-2.0-OpenSSH_9.2\r\n\r\n"), "Not an HTTP/1.1 response")
    assert.throws(() => push("x".repeat(20_000)), "does not end")
  })

  it("does not take a header of the body for one of the head", () =>
    assert.throws(() => push("HTTP/1.1 200 OK\r\n\r\nContent-Length: 3\r\n"), "without Content-Length"))
})

/**
 * Only the status line decides the result of an attempt, for any bytes before and after it (semantics
 * webhooks.success).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { Socket } from "node:net"
import { CLOSED, isDelivered } from "../../src/webhooks/AttemptResult.ts"
import { receiver } from "./RawReceiver.ts"
import { makeSender, messageTo } from "./Sending.ts"

const INTERIM = [
  "HTTP/1.1 100 Continue\r\n\r\n",
  "HTTP/1.1 100\n\n",
  "HTTP/1.0 102 Processing\r\nx: y\r\n\r\n",
  "HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n folded: too\r\ncontent-length: 7\r\n\r\n",
  "\r\n"
]
const VERSIONS = ["HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/2", "HTTP/3.0"]
const REASONS = ["", " ", " OK", " Très bien \u0000\u0080", ` ${"long ".repeat(2000)}`, " HTTP/1.1 500 No", "\t200"]

const JUNK = {
  nothing: "",
  "an empty answer": "content-length: 0\r\n\r\n",
  "a body that ends with the connection": "\r\nyes",
  "half a header": "content-le",
  "no header": "this is none\r\n\r\n",
  "a folded header": "x-folded: one\r\n two\r\n\tthree\r\ncontent-length: 2\r\n\r\nok",
  "a header before any name": " folded\r\n\r\n",
  "more than 16 KiB of headers": `${`x-long: ${"y".repeat(500)}\r\n`.repeat(60)}content-length: 2\r\n\r\nok`,
  "one header of 100 KiB": `x-long: ${"y".repeat(100_000)}\r\n\r\n`,
  "two lengths": "content-length: 2\r\ncontent-length: 3\r\n\r\nok!",
  "a length and chunks": "content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
  "a length that is none": "content-length: -5\r\n\r\nok",
  "a length with a blank": "content-length : 2\r\n\r\nok",
  "an unknown encoding": "transfer-encoding: rot13\r\n\r\nbx",
  "a chunk that is none": "transfer-encoding: chunked\r\n\r\nzz\r\nok",
  "a body that is cut off": "content-length: 100\r\n\r\nhalf",
  "a second answer": "content-length: 2\r\n\r\nokHTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n",
  "an upgrade": "connection: upgrade\r\nupgrade: h2c\r\ncontent-length: 0\r\n\r\n",
  "bytes of all kinds": String.fromCharCode(...Array.from({ length: 256 }, (_, code) => code))
}

const answer = Schema.Struct({
  interim: Schema.Array(Schema.Literals(INTERIM)).check(Schema.isMaxLength(3)),
  version: Schema.Literals(VERSIONS),
  status: Schema.Int.check(Schema.isBetween({ minimum: 200, maximum: 599 })),
  reason: Schema.Literals(REASONS),
  lineEnd: Schema.Literals(["\r\n", "\n"]),
  junk: Schema.Literals(Object.keys(JUNK) as Array<keyof typeof JUNK>),
  ends: Schema.Boolean,
  /** End of a packet, in thousandths of the answer or in bytes. */
  cuts: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1000 }))).check(Schema.isMaxLength(4)),
  cutsAreBytes: Schema.Boolean
})

type Answer = typeof answer.Type

const bytesOf = ({ interim, junk, lineEnd, reason, status, version }: Answer): Buffer =>
  Buffer.from(`${interim.join("")}${version} ${status}${reason}${lineEnd}${JUNK[junk]}`, "latin1")

/** Writes pieces so that each is read separately. */
const writePieces = async (socket: Socket, bytes: Buffer, { cuts, cutsAreBytes, ends }: Answer): Promise<void> => {
  socket.setNoDelay(true)
  const places = cuts.map((cut) => (cutsAreBytes ? Math.min(cut, bytes.length) : (bytes.length * cut) / 1000))
  const pieces = [...places.map(Math.floor).toSorted((a, b) => a - b), bytes.length]
  let from = 0
  for (const to of pieces) {
    if (to > from && !socket.destroyed) socket.write(bytes.subarray(from, to))
    from = to
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  if (ends) socket.end()
}

/** Codes of undici, of its parser, of the system and of OpenSSL. */
const CODE = /UND_|HPE_|E[A-Z]{4}|ERR_|[A-Z]+_[A-Z]+/u

describe("an answer", () => {
  it.live.prop(
    "is delivered or refused by its status line, for any bytes before it, after it or missing",
    [answer],
    ([sent]) =>
      Effect.gen(function* () {
        const there = yield* receiver(({ socket }) => void writePieces(socket, bytesOf(sent), sent))
        const sender = yield* makeSender({ timeLimitMillis: 20_000, bodyMillis: 50 })
        const result = yield* sender.send(messageTo(there.url))
        assert.strictEqual(result.status, sent.status)
        assert.strictEqual(isDelivered(result), sent.status < 300)
        // No byte of one attempt counts as the answer to another.
        there.behaviour = ({ socket }) => socket.write("HTTP/1.1 418 Teapot\r\ncontent-length: 0\r\n\r\n")
        assert.strictEqual((yield* sender.send(messageTo(there.url))).status, 418)
      }).pipe(Effect.scoped),
    { arbitrary: { runs: 400 } }
  )

  it.live.prop(
    "that is not HTTP is described by a sentence with its first bytes",
    [Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))), Schema.Boolean],
    ([codes, ends]) =>
      Effect.gen(function* () {
        const bytes = Buffer.from(codes)
        const first = bytes.toString("latin1").replace(/^[\r\n]+/u, "")
        if (first === "" || "HTTP/".startsWith(first[0]!)) return
        const there = yield* receiver(({ socket }) => void (ends ? socket.end(bytes) : socket.write(bytes)))
        const { error, status } = yield* (yield* makeSender()).send(messageTo(there.url))
        assert.isNull(status)
        assert.match(error!, /^The (?:answer was not HTTP: it began with .+|server speaks TLS on this port: .+)\.$/u)
        assert.notMatch(error!.replace(/".*"/u, ""), /UND_|HPE_|EPROTO/u)
      }).pipe(Effect.scoped),
    { arbitrary: { runs: 200 } }
  )

  it.live("that is not HTTP is described without card numbers and secrets", () =>
    Effect.gen(function* () {
      const there = yield* receiver(
        ({ socket }) => void socket.end("+OK 4242 4242 4242 4242 sk_live_abcdefgh whsec_abcdef")
      )
      const { error } = yield* (yield* makeSender()).send(messageTo(there.url))
      assert.strictEqual(error, 'The answer was not HTTP: it began with "+OK **** **** ****".')
    })
  )

  for (const [said, expected] of [
    ["HTTP/1.1 200", 200],
    ["HTTP/1.1 204 No", 204],
    ["HTTP/1.1 20", CLOSED],
    ["HTT", CLOSED],
    ["", CLOSED],
    ["HTTP/1.1 100 Continue\r\n\r\n", CLOSED],
    ["HTTP/1.1 100 Continue\r\nx", CLOSED],
    ["HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", 101],
    ["HTTP/1.1 2000 OK\r\n\r\n", 'The answer was not HTTP: it began with "HTTP/1.1 2000 OK".'],
    ["HTTP/1.1 OK\r\n\r\n", 'The answer was not HTTP: it began with "HTTP/1.1 OK".'],
    ["\u0016\u0003\u0003", "The server speaks TLS on this port: the URL has to begin with https://."]
  ] as const) {
    it.live(`of ${JSON.stringify(said)} and the end of the connection is ${expected}`, () =>
      Effect.gen(function* () {
        const there = yield* receiver(({ socket }) => void socket.end(Buffer.from(said, "latin1")))
        const result = yield* (yield* makeSender()).send(messageTo(there.url))
        assert.strictEqual(result.status ?? result.error, expected)
        assert.notMatch(String(result.error), CODE)
      })
    )
  }
})

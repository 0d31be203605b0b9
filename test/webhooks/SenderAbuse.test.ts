/**
 * Receivers that misbehave. An attempt ends within its limits, only the status line decides its result, and the
 * connection is closed: each test waits until the receiver's side of it is closed.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { CLOSED, TIMED_OUT } from "../../src/webhooks/AttemptResult.ts"
import type { Options } from "../../src/webhooks/Sender.ts"
import { answerOf, answersWith, type Behaviour, type RawReceiver, receiver, writeForever } from "./RawReceiver.ts"
import { makeSender, messageTo, sendAndSettle } from "./Sending.ts"

/** With SHORT, the time limit must end the attempt, but not before it has begun. With LONG, another cause must. */
const SHORT = { timeLimitMillis: 1000 }
const LONG = 50_000

const STATUS_LINE = "HTTP/1.1 200 OK\r\n"
const ENDLESS = "transfer-encoding: chunked\r\n\r\n"
const GIGABYTE = 2 ** 30
/** 64 KiB plus the system's buffers on both sides. */
const ACCEPTED_MAX = 32 * 2 ** 20

const chunked = (bytes: number) => Buffer.from(`${bytes.toString(16)}\r\n${"x".repeat(bytes)}\r\n`)

interface Case {
  readonly behaviour: Behaviour
  readonly options: Options
  readonly expected: number | string
  readonly check?: (there: RawReceiver) => void
}

const bounded = ({ sockets }: RawReceiver) => assert.isBelow(sockets[0]!.bytesWritten, ACCEPTED_MAX)

const CASES: Readonly<Record<string, Case>> = {
  "hangs before the status line": { behaviour: () => {}, options: SHORT, expected: TIMED_OUT },
  "sends half a status line": {
    behaviour: ({ socket }) => socket.write("HTTP/1.1 2"),
    options: SHORT,
    expected: TIMED_OUT
  },
  "sends informational answers for ever": {
    behaviour: ({ socket }) => writeForever(socket, "HTTP/1.1 102 Processing\r\n\r\n", 20),
    options: SHORT,
    expected: TIMED_OUT
  },
  "floods with informational answers": {
    behaviour: ({ socket }) => writeForever(socket, "HTTP/1.1 102 Processing\r\n\r\n".repeat(1000)),
    options: { timeLimitMillis: LONG },
    expected: "More than 128 KiB came before the status of the answer.",
    check: bounded
  },
  "sends empty lines for ever": {
    behaviour: ({ socket }) => writeForever(socket, "\r\n".repeat(1000)),
    options: { timeLimitMillis: LONG },
    expected: "More than 128 KiB came before the status of the answer.",
    check: bounded
  },
  "never ends the reason phrase": {
    behaviour: ({ socket }) => {
      socket.write("HTTP/1.1 200 ")
      writeForever(socket, "O".repeat(1000))
    },
    options: { timeLimitMillis: LONG, bodyMillis: LONG },
    expected: 200,
    check: bounded
  },
  "drips headers": {
    behaviour: ({ socket }) => {
      socket.write(STATUS_LINE)
      writeForever(socket, "a", 20)
    },
    options: { timeLimitMillis: LONG, bodyMillis: 250 },
    expected: 200
  },
  "floods with headers": {
    behaviour: ({ socket }) => {
      socket.write(STATUS_LINE)
      writeForever(socket, `x-flood: ${"x".repeat(1000)}\r\n`)
    },
    options: { timeLimitMillis: LONG },
    expected: 200,
    check: bounded
  },
  "sends garbage": {
    behaviour: ({ socket }) => writeForever(socket, "SSH-2.0-OpenSSH_9.9\r\n"),
    options: { timeLimitMillis: LONG },
    expected: 'The answer was not HTTP: it began with "SSH-2.0-OpenSSH_9.9".',
    check: bounded
  },
  "closes without an answer": {
    behaviour: ({ socket }) => socket.end(),
    options: { timeLimitMillis: LONG },
    expected: CLOSED,
    check: ({ requests }) => assert.strictEqual(requests.length, 1)
  },
  "resets without an answer": {
    behaviour: ({ socket }) => socket.resetAndDestroy(),
    options: { timeLimitMillis: LONG },
    expected: CLOSED,
    check: ({ requests }) => assert.strictEqual(requests.length, 1)
  },
  "closes in the middle of the headers": {
    behaviour: ({ socket }) => socket.end(`${STATUS_LINE}content-le`),
    options: { timeLimitMillis: LONG },
    expected: 200
  },
  "closes in the middle of the body": {
    behaviour: ({ socket }) => socket.end(`${STATUS_LINE}content-length: 100\r\n\r\nhalf`),
    options: { timeLimitMillis: LONG },
    expected: 200
  },
  "never ends the body": {
    behaviour: ({ socket }) => {
      socket.write(STATUS_LINE + ENDLESS)
      writeForever(socket, chunked(1000))
    },
    options: { timeLimitMillis: LONG, bodyMillis: LONG },
    expected: 200,
    check: bounded
  },
  "sends a gigabyte": {
    behaviour: ({ socket }) => {
      socket.write(`${STATUS_LINE}content-length: ${GIGABYTE}\r\n\r\n`)
      writeForever(socket, Buffer.alloc(100_000))
    },
    options: { timeLimitMillis: LONG, bodyMillis: LONG },
    expected: 200,
    check: bounded
  },
  "drips the body": {
    behaviour: ({ socket }) => {
      socket.write(STATUS_LINE + ENDLESS)
      writeForever(socket, chunked(1), 20)
    },
    options: { timeLimitMillis: LONG, bodyMillis: 250 },
    expected: 200
  },
  "drips a chunk's extension": {
    behaviour: ({ socket }) => {
      socket.write(`${STATUS_LINE}${ENDLESS}1;`)
      writeForever(socket, "x", 20)
    },
    options: { timeLimitMillis: LONG, bodyMillis: 250 },
    expected: 200
  },
  "keeps the body of a failure back": {
    behaviour: ({ socket }) => socket.write("HTTP/1.1 500 Oh\r\ncontent-length: 100\r\n\r\n"),
    options: { timeLimitMillis: LONG, bodyMillis: 250 },
    expected: 500
  },
  "closes in the middle of the body of a failure": {
    behaviour: ({ socket }) => socket.end("HTTP/1.1 503 Oh\r\ncontent-length: 100\r\n\r\nhalf"),
    options: { timeLimitMillis: LONG },
    expected: 503
  },
  "never ends the body of a failure": {
    behaviour: ({ socket }) => {
      socket.write(`HTTP/1.1 500 Oh\r\n${ENDLESS}`)
      writeForever(socket, chunked(1000))
    },
    options: { timeLimitMillis: LONG, bodyMillis: LONG },
    expected: 500,
    check: bounded
  },
  "keeps the body back": {
    behaviour: ({ socket }) => socket.write(`${STATUS_LINE}content-length: 100\r\n\r\n`),
    options: { timeLimitMillis: LONG, bodyMillis: 250 },
    expected: 200
  }
}

describe("a receiver that", () => {
  for (const [name, { behaviour, check, expected, options }] of Object.entries(CASES)) {
    it.live(name, () =>
      Effect.gen(function* () {
        const there = yield* receiver(behaviour)
        const sender = yield* makeSender(options)
        const { error, status } = yield* sender.send(messageTo(there.url))
        assert.strictEqual(status ?? error, expected)
        yield* Effect.promise(() => there.closed(0))
        check?.(there)
        assert.strictEqual(there.sockets.length, 1)
        // The next attempt is not affected.
        there.behaviour = answersWith(204)
        assert.strictEqual((yield* (yield* makeSender()).send(messageTo(there.url))).status, 204)
      })
    )
  }

  it.live("keeps bodies back occupies at most 256 connections", () =>
    Effect.gen(function* () {
      const there = yield* receiver(({ socket }) => socket.write(`${STATUS_LINE}content-length: 9\r\n\r\n`))
      const sender = yield* makeSender({ bodyMillis: LONG })
      const attempts = Array.from({ length: 300 }, () => sender.send(messageTo(there.url)))
      for (const result of yield* Effect.all(attempts, { concurrency: 50 })) {
        assert.deepStrictEqual(result, { status: 200, error: null })
      }
      for (let connection = 0; connection < 300 - 256; connection++) {
        yield* Effect.promise(() => there.closed(connection))
      }
      assert.isFalse(there.sockets.slice(-256).some(({ destroyed }) => destroyed))
    })
  )

  it.live("keeps a body back does not lose its connection to attempts whose body has arrived or broken off", () =>
    Effect.gen(function* () {
      const there = yield* receiver(({ index, socket }) => {
        if (index === 0) socket.write(`${STATUS_LINE}content-length: 9\r\n\r\n`)
        else if (index % 2 === 0) socket.write(answerOf(200, "received"))
        else socket.end(`${STATUS_LINE}content-length: 9\r\n\r\nhalf`)
      })
      const sender = yield* makeSender({ bodyMillis: LONG })
      for (let attempt = 0; attempt < 600; attempt++) yield* sendAndSettle(sender, messageTo(there.url))
      assert.isFalse(there.sockets[0]!.destroyed)
    })
  )
})

/**
 * The sender verifies the certificates of https endpoints, and describes their problems (semantics webhooks.errors).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { CLOSED } from "../../src/webhooks/AttemptResult.ts"
import { AUTHORITY, ELSEWHERE, EXPIRED, KEY, LOCALHOST } from "./Certificates.ts"
import { answerOf, answersWith, receiver } from "./RawReceiver.ts"
import { makeSender, messageTo, sendAndSettle } from "./Sending.ts"

const TRUSTING = { certificates: AUTHORITY }

const REFUSED = {
  "that nobody trusts": {
    cert: LOCALHOST,
    options: {},
    error: "The server's certificate is not from an authority that Till trusts."
  },
  "that is expired": { cert: EXPIRED, options: TRUSTING, error: "The server's certificate has expired." },
  "for another host": {
    cert: ELSEWHERE,
    options: TRUSTING,
    error: "The server's certificate is for another host name."
  }
}

describe("a receiver by https", () => {
  it.live("gets its webhooks over one kept connection", () =>
    Effect.gen(function* () {
      const there = yield* receiver(answersWith(200, 500, 204), { key: KEY, cert: LOCALHOST })
      const sender = yield* makeSender(TRUSTING)
      for (const status of [200, 500, 204]) {
        assert.deepStrictEqual(yield* sendAndSettle(sender, messageTo(there.url)), { status, error: null })
      }
      assert.strictEqual(there.sockets.length, 1)
    })
  )

  for (const [name, { cert, error, options }] of Object.entries(REFUSED)) {
    it.live(`gets nothing with a certificate ${name}, with any environment variables`, () =>
      Effect.gen(function* () {
        vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0")
        yield* Effect.addFinalizer(() => Effect.sync(() => vi.unstubAllEnvs()))
        const there = yield* receiver(answersWith(200), { key: KEY, cert })
        const sender = yield* makeSender(options)
        const result = yield* sender.send(messageTo(there.url))
        assert.deepStrictEqual(result, { status: null, error })
        assert.strictEqual(there.requests.length, 0)
      })
    )
  }

  it.live("gets nothing if it does not speak TLS", () =>
    Effect.gen(function* () {
      const there = yield* receiver(answersWith(200))
      there.server.on("connection", (socket) => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"))
      const sender = yield* makeSender(TRUSTING)
      const result = yield* sender.send(messageTo(`https://localhost:${there.port}/`))
      assert.deepStrictEqual(result, { status: null, error: "The server does not speak TLS on this port." })
    })
  )

  it.live("gets the attempt again over a new connection only if it closed the kept one", () =>
    Effect.gen(function* () {
      const there = yield* receiver(
        ({ connection, index, socket }) => {
          if (connection === 0 && index > 0) socket.end()
          else if (connection === 2) socket.end()
          else socket.write(answerOf(200))
        },
        { key: KEY, cert: LOCALHOST }
      )
      const sender = yield* makeSender(TRUSTING)
      yield* sendAndSettle(sender, messageTo(there.url))
      assert.strictEqual((yield* sender.send(messageTo(there.url))).status, 200)
      assert.strictEqual(there.requests.length, 3)
      // Bytes of a handshake do not count as an answer.
      const another = yield* makeSender(TRUSTING)
      assert.strictEqual((yield* another.send(messageTo(there.url))).error, CLOSED)
      assert.strictEqual(there.requests.length, 4)
    })
  )
})

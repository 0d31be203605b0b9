/**
 * The bytes of the sender's requests, and its results for answers (spec: Events, Delivery; semantics
 * webhooks.signature, webhooks.headers, webhooks.success).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { verifyWebhook } from "../../src/client/index.ts"
import { CLOSED, isDelivered, TIMED_OUT } from "../../src/webhooks/AttemptResult.ts"
import { parseAllowedHosts } from "../../src/domain/WebhookHosts.ts"
import { KEPT_BYTES_MAX } from "../../src/webhooks/Sender.ts"
import { answersWith, answerOf, receiver } from "./RawReceiver.ts"
import { BODY, makeSender, messageTo, SECRET, sendAndSettle } from "./Sending.ts"

const STATUSES = [200, 201, 202, 204, 226, 299, 300, 301, 302, 304, 307, 308, 400, 401, 404, 410, 429, 500, 503, 599]

/** Sentences of the sender by error codes of the system, of OpenSSL and of undici. */
const WORDS = {
  ECONNRESET: CLOSED,
  EPIPE: CLOSED,
  EAI_AGAIN: "The host was not found.",
  EHOSTUNREACH: "The host cannot be reached.",
  ENETUNREACH: "The host cannot be reached.",
  ETIMEDOUT: TIMED_OUT,
  UND_ERR_CONNECT_TIMEOUT: TIMED_OUT,
  EPROTO: "The TLS handshake failed.",
  ERR_SSL_WRONG_VERSION_NUMBER: "The server does not speak TLS on this port.",
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: "The server and Till have no version or cipher of TLS in common.",
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: "The server asks for a certificate of its client.",
  DEPTH_ZERO_SELF_SIGNED_CERT: "The server's certificate is self-signed.",
  CERT_SIGNATURE_FAILURE: "The server's certificate is not valid.",
  EWHATEVER: "The attempt failed before an answer came."
}

describe("the sender", () => {
  it.live("sends the headers of a delivery, those that HTTP needs and no others, and the body's bytes", () =>
    Effect.gen(function* () {
      const there = yield* receiver(answersWith(200))
      const sender = yield* makeSender()
      const url = there.url.replace("//", "//user:password@") + "?a=b&c=%20d#fragment"
      const before = Math.floor(Date.now() / 1000)
      assert.deepStrictEqual(yield* sender.send(messageTo(url, { attempt: 7 })), { status: 200, error: null })
      const [{ body, headers, requestLine }] = there.requests as [(typeof there.requests)[number]]
      assert.strictEqual(requestLine, "POST /hooks?a=b&c=%20d HTTP/1.1")
      assert.deepStrictEqual(body, Buffer.from(BODY, "utf8"))
      const { "x-signature": signature, ...others } = Object.fromEntries(headers)
      assert.deepStrictEqual(others, {
        host: `127.0.0.1:${there.port}`,
        connection: "keep-alive",
        "content-length": String(Buffer.byteLength(BODY)),
        "content-type": "application/json",
        "x-webhook-id": "evt_1",
        "x-webhook-attempt": "7",
        "user-agent": "Till-Webhooks/1"
      })
      verifyWebhook({ body, header: signature, secret: SECRET })
      const seconds = Number(/^t=(\d+),v1=[\da-f]{64}$/u.exec(signature!)![1])
      assert.isAtLeast(seconds, before)
      assert.isAtMost(seconds, Math.floor(Date.now() / 1000))
    })
  )

  it.live("counts only a 2xx status as delivered, and follows no redirect", () =>
    Effect.gen(function* () {
      const elsewhere = yield* receiver(answersWith(200))
      const there = yield* receiver(({ index, socket }) => {
        const length = STATUSES[index] === 204 || STATUSES[index] === 304 ? "" : "content-length: 0\r\n"
        socket.write(`HTTP/1.1 ${STATUSES[index]} Whatever\r\nlocation: ${elsewhere.url}\r\n${length}\r\n`)
      })
      const sender = yield* makeSender()
      for (const status of STATUSES) {
        const result = yield* sender.send(messageTo(there.url))
        assert.deepStrictEqual(result, { status, error: null })
        assert.strictEqual(isDelivered(result), status < 300)
      }
      assert.strictEqual(there.requests.length, STATUSES.length)
      assert.strictEqual(elsewhere.sockets.length, 0)
    })
  )

  it.live("webhooks.response_body: keeps the text of a refusal, without card numbers and secrets", () =>
    Effect.gen(function* () {
      const long = "x".repeat(KEPT_BYTES_MAX - 1)
      const texts: ReadonlyArray<readonly [sent: string | Buffer, kept: string | undefined]> = [
        [" database is down \n", "database is down"],
        ["", undefined],
        [`${long}é and more`, long],
        [`${long}yé`, `${long}y`],
        [Buffer.from([0x1f, 0x8b, 0xff, 0x00]), undefined],
        ["no\0thing", "nothing"],
        ["declined 4242 4242 4242 4242", "declined ****"],
        ["sk_live_0123456789 and whsec_abcd", "**** and ****"],
        [`{"client_secret":"pi_1_secret_abcd"}`, `{"client_secret":"pi_1****"}`]
      ]
      const sender = yield* makeSender()
      for (const status of [302, 400, 500]) {
        for (const [sent, kept] of texts) {
          const bytes = Buffer.from(sent)
          const head = `HTTP/1.1 ${status} Whatever\r\ncontent-length: ${bytes.length}\r\n\r\n`
          const there = yield* receiver(({ socket }) => socket.write(Buffer.concat([Buffer.from(head), bytes])))
          const expected = { status, error: null, ...(kept !== undefined && { body: kept }) }
          assert.deepStrictEqual(yield* sender.send(messageTo(there.url)), expected)
        }
      }
      const there = yield* receiver(answersWith(200))
      assert.deepStrictEqual(yield* sender.send(messageTo(there.url)), { status: 200, error: null })
    })
  )

  it.live("keeps no text from a private address, unless the service is only for its own machine", () =>
    Effect.gen(function* () {
      const body = Buffer.from("internal-secret=hunter2")
      const head = `HTTP/1.1 403 Forbidden\r\ncontent-length: ${body.length}\r\n`
      // Answers one by one on a kept connection, and on one that closes with its answer.
      for (const end of ["\r\n", "connection: close\r\n\r\n"]) {
        const there = yield* receiver(({ socket }) => {
          socket.write(Buffer.concat([Buffer.from(head + end), body]))
          if (end !== "\r\n") socket.end()
        })
        const sender = yield* makeSender({
          resolve: (_hostname, callback) => callback(null, [{ address: "127.0.0.1", family: 4 }])
        })
        const named = there.url.replace("127.0.0.1", "hooks.internal")
        for (const besidePublic of ["any", parseAllowedHosts("hooks.internal,127.0.0.0/8")!] as const) {
          const hosts = { httpsOnly: false, besidePublic }
          for (const url of [there.url, named, there.url, named]) {
            const result = yield* sendAndSettle(sender, messageTo(url, { hosts }))
            assert.deepStrictEqual(result, { status: 403, error: null }, url)
          }
          const own = yield* sendAndSettle(sender, messageTo(named, { hosts: { ...hosts, keepsPrivateAnswers: true } }))
          assert.deepStrictEqual(own, { status: 403, error: null, body: String(body) })
        }
      }
    })
  )

  it.live("sends the same bytes again after a 500, and waits for the status after informational ones", () =>
    Effect.gen(function* () {
      const there = yield* receiver(({ index, socket }) => {
        if (index > 0) socket.write("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")
        socket.write(answerOf(index === 0 ? 500 : 200, "received"))
      })
      const sender = yield* makeSender()
      const first = yield* sender.send(messageTo(there.url))
      const second = yield* sender.send(messageTo(there.url, { attempt: 2 }))
      assert.deepStrictEqual([first.status, second.status], [500, 200])
      const [one, two] = there.requests
      assert.deepStrictEqual(one!.body, two!.body)
      assert.deepStrictEqual(
        [one, two].map((request) => request!.headers.get("x-webhook-attempt")),
        ["1", "2"]
      )
    })
  )

  it.live("describes a failure, always in the same words", () =>
    Effect.gen(function* () {
      const sender = yield* makeSender()
      const gone = yield* Effect.scoped(Effect.map(receiver(answersWith(200)), ({ url }) => url))
      assert.strictEqual((yield* sender.send(messageTo(gone))).error, "The connection was refused.")
      assert.strictEqual((yield* sender.send(messageTo("https://nowhere.invalid/"))).error, "The host was not found.")
      assert.strictEqual((yield* sender.send(messageTo("not a URL"))).error, "The URL is not valid.")
      assert.strictEqual((yield* sender.send(messageTo("ftp://example.com/"))).error, "The URL is not valid.")
      const several = yield* makeSender({
        resolve: (_hostname, callback) =>
          callback(null, [
            { address: "127.0.0.1", family: 4 },
            { address: "127.0.0.1", family: 4 }
          ])
      })
      assert.strictEqual(
        (yield* several.send(messageTo("http://hooks.example.com:1/"))).error,
        "The connection was refused."
      )
      for (const [code, error] of Object.entries(WORDS)) {
        const failing = yield* makeSender({
          resolve: (_hostname, callback) => callback(Object.assign(new Error(), { code }), [])
        })
        assert.strictEqual((yield* failing.send(messageTo("https://hooks.example.com/"))).error, error)
      }
    })
  )
})

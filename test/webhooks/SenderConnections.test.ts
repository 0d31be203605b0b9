/** The sender keeps connections for the next attempt, and closes them in time. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import * as https from "node:https"
import * as net from "node:net"
import { CLOSED, TIMED_OUT } from "../../src/webhooks/AttemptResult.ts"
import { AUTHORITY, KEY, LOCALHOST } from "./Certificates.ts"
import { answerOf, answersWith, receiver } from "./RawReceiver.ts"
import { makeSender, messageTo, sendAndSettle } from "./Sending.ts"

describe("a connection", () => {
  it.live("is used again for the next attempt", () =>
    Effect.gen(function* () {
      const there = yield* receiver(({ index, socket }) => socket.write(answerOf(200, "x".repeat(index * 1000))))
      const sender = yield* makeSender()
      for (let attempt = 1; attempt <= 8; attempt++) yield* sendAndSettle(sender, messageTo(there.url, { attempt }))
      assert.strictEqual(there.requests.length, 8)
      assert.strictEqual(there.sockets.length, 1)
    })
  )

  for (const [how, ends] of [
    ["closes", "end"],
    ["resets", "resetAndDestroy"]
  ] as const) {
    it.live(`that the receiver ${how} just when it is used again fails no attempt`, () =>
      Effect.gen(function* () {
        const there = yield* receiver(({ connection, index, socket }) => {
          // The second request uses the kept connection.
          if (index === 1 && connection === 0) socket[ends]()
          else socket.write(answerOf(200))
        })
        const sender = yield* makeSender()
        assert.strictEqual((yield* sendAndSettle(sender, messageTo(there.url))).status, 200)
        assert.strictEqual((yield* sender.send(messageTo(there.url, { attempt: 2 }))).status, 200)
        assert.deepStrictEqual(
          there.requests.map(({ connection }) => connection),
          [0, 0, 1]
        )
        // The repeated request has the same bytes.
        const [, lost, repeated] = there.requests
        assert.deepStrictEqual([...repeated!.headers], [...lost!.headers])
        assert.deepStrictEqual(repeated!.body, lost!.body)
      })
    )

    it.live(`that the receiver ${how} each time is repeated once`, () =>
      Effect.gen(function* () {
        const there = yield* receiver(({ index, socket }) =>
          index === 0 ? socket.write(answerOf(200)) : socket[ends]()
        )
        const sender = yield* makeSender()
        yield* sendAndSettle(sender, messageTo(there.url))
        assert.strictEqual((yield* sender.send(messageTo(there.url))).error, CLOSED)
        assert.strictEqual(there.requests.length, 3)
        // A connection opened for the attempt gets no second try.
        assert.strictEqual((yield* sender.send(messageTo(there.url))).error, CLOSED)
        assert.strictEqual(there.requests.length, 4)
      })
    )

    it.live(`that the receiver ${how} after the status fails neither this attempt nor the next one`, () =>
      Effect.gen(function* () {
        const there = yield* receiver(({ index, socket }) =>
          socket.write(index === 0 ? "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf" : answerOf(201))
        )
        const sender = yield* makeSender()
        assert.strictEqual((yield* sender.send(messageTo(there.url))).status, 200)
        there.sockets[0]![ends]()
        assert.strictEqual((yield* sender.send(messageTo(there.url))).status, 201)
        yield* Effect.promise(() => there.closed(0))
        assert.strictEqual(there.sockets.length, 2)
      })
    )
  }

  it.live("is not replaced a second time if the next kept connection is closed too", () =>
    Effect.gen(function* () {
      const there = yield* receiver(({ index, socket }) => {
        if (index === 1) for (const each of there.sockets) each.write(answerOf(200))
        if (index > 1) socket.end()
      })
      const sender = yield* makeSender()
      yield* Effect.all(
        [1, 2].map(() => sendAndSettle(sender, messageTo(there.url))),
        { concurrency: 2 }
      )
      assert.strictEqual((yield* sender.send(messageTo(there.url))).error, CLOSED)
      assert.strictEqual(there.requests.length, 4)
      assert.strictEqual(there.sockets.length, 2)
    })
  )

  it.live("is not replaced after an informational answer", () =>
    Effect.gen(function* () {
      const there = yield* receiver(({ index, socket }) => {
        if (index === 0) socket.write(answerOf(200))
        else socket.end("HTTP/1.1 102 Processing\r\n\r\n")
      })
      const sender = yield* makeSender()
      yield* sendAndSettle(sender, messageTo(there.url))
      assert.strictEqual((yield* sender.send(messageTo(there.url))).error, CLOSED)
      assert.strictEqual(there.requests.length, 2)
    })
  )

  it.live("is closed when its attempt is interrupted", () =>
    Effect.gen(function* () {
      const there = yield* receiver(() => {})
      const sender = yield* makeSender()
      const sending = yield* Effect.forkChild(sender.send(messageTo(there.url)))
      yield* Effect.promise(() => there.received(1))
      yield* Fiber.interrupt(sending)
      yield* Effect.promise(() => there.closed(0))
      assert.strictEqual(there.sockets.length, 1)
      there.behaviour = answersWith(200)
      assert.strictEqual((yield* sender.send(messageTo(there.url))).status, 200)
    })
  )

  it.live("sends no attempt that was given up while it was being opened", () =>
    Effect.gen(function* () {
      const there = yield* receiver(answersWith(200))
      const asked = Promise.withResolvers<void>()
      const mayOpen = Promise.withResolvers<void>()
      const sender = yield* makeSender({
        resolve: (_hostname, callback) => {
          asked.resolve()
          void mayOpen.promise.then(() => callback(null, [{ address: "127.0.0.1", family: 4 }]))
        }
      })
      const url = `http://hooks.example.com:${there.port}/`
      const givenUp = yield* Effect.forkChild(sender.send(messageTo(url)))
      yield* Effect.promise(() => asked.promise)
      yield* Fiber.interrupt(givenUp)
      mayOpen.resolve()
      assert.strictEqual((yield* sender.send(messageTo(url, { attempt: 2 }))).status, 200)
      assert.deepStrictEqual(
        there.requests.map(({ headers }) => headers.get("x-webhook-attempt")),
        ["2"]
      )
    })
  )

  it.live("that never opens is closed with its attempt", () =>
    Effect.gen(function* () {
      const there = yield* receiver(() => {})
      const sender = yield* makeSender({ timeLimitMillis: 1000 })
      // The server never answers the TLS handshake.
      const result = yield* sender.send(messageTo(`https://127.0.0.1:${there.port}/`))
      assert.deepStrictEqual(result, { status: null, error: TIMED_OUT })
      yield* Effect.promise(() => there.closed(0))
    })
  )

  it.live("that is idle is closed in time, even if the server promises a longer keep-alive", () =>
    Effect.gen(function* () {
      const promise = "HTTP/1.1 200 OK\r\nkeep-alive: timeout=600\r\ncontent-length: 0\r\n\r\n"
      const there = yield* receiver(({ socket }) => socket.write(promise))
      const sender = yield* makeSender()
      assert.strictEqual((yield* sender.send(messageTo(there.url))).status, 200)
      yield* Effect.promise(() => there.closed(0))
    })
  )

  it.live("is closed with the sender when idle, in use, or receiving a body", () =>
    Effect.gen(function* () {
      const there = yield* receiver(({ index, socket }) => {
        if (index === 0) socket.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
        if (index === 1) socket.write(answerOf(200))
      })
      const scope = yield* Scope.make()
      const sender = yield* Scope.provide(makeSender(), scope)
      yield* sendAndSettle(sender, messageTo(there.url))
      yield* sendAndSettle(sender, messageTo(there.url))
      const attempts = yield* Effect.forkChild(
        Effect.all([sender.send(messageTo(there.url)), sender.send(messageTo(there.url))], { concurrency: 2 })
      )
      yield* Effect.promise(() => there.received(4))
      yield* Scope.close(scope, Exit.void)
      const results = yield* Fiber.join(attempts)
      for (const { status } of results) assert.isNull(status)
      assert.strictEqual(there.sockets.length, 3)
      yield* Effect.promise(() => Promise.all(there.sockets.map((_, connection) => there.closed(connection))))
    })
  )

  it.live("does not wait for another one to the same host that hangs", () =>
    Effect.gen(function* () {
      const secure = https.createServer({ key: KEY, cert: LOCALHOST }, (_request, response) => response.end())
      const first = Promise.withResolvers<net.Socket>()
      let connections = 0
      // The first connection never completes its TLS handshake.
      const server = net.createServer((socket) => {
        if (connections++ === 0) first.resolve(socket)
        else secure.emit("connection", socket)
      })
      yield* Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)))
      const sender = yield* makeSender({ certificates: AUTHORITY })
      const message = messageTo(`https://localhost:${(server.address() as net.AddressInfo).port}/`)
      const hanging = yield* Effect.forkChild(sender.send(message))
      const socket = yield* Effect.promise(() => first.promise)
      assert.deepStrictEqual(yield* sender.send(message), { status: 200, error: null })
      assert.isUndefined(hanging.pollUnsafe())
      yield* Fiber.interrupt(hanging)
      socket.destroy()
      server.close()
    })
  )

  it.live("shares the look-up of its host with simultaneous ones, and with none later", () =>
    Effect.gen(function* () {
      const there = yield* receiver(answersWith(200))
      const answers: Array<() => void> = []
      const sender = yield* makeSender({
        resolve: (_hostname, callback) => void answers.push(() => callback(null, [{ address: "127.0.0.1", family: 4 }]))
      })
      const message = messageTo(`http://hooks.example.com:${there.port}/`)
      const started = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(sender.send(message)))
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      assert.strictEqual(answers.length, 1)
      answers[0]!()
      for (const one of started) assert.deepStrictEqual(yield* Fiber.join(one), { status: 200, error: null })
      const other = yield* Effect.forkChild(sender.send(messageTo(`http://HOOKS.example.com:${there.port + 1}/`)))
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      assert.strictEqual(answers.length, 2)
      yield* Fiber.interrupt(other)
    })
  )
})

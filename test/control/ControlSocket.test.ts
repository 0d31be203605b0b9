/**
 * The control socket: it closes its connections, is accessible to its owner only, and is dead if its service was
 * killed.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Option, Scope } from "effect"
import * as fs from "node:fs"
import * as net from "node:net"
import * as Path from "node:path"
import * as ControlSocket from "../../src/control/ControlSocket.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import { administerAnywhere } from "../../src/http/forward/Calls.ts"
import * as Harness from "../engine/Harness.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"

const DATABASE = "a database"

/** Starts a service on the folder. Returns the effect that stops it. */
const serve = Effect.fnUntraced(function* (dataFolder: string, accounts: Accounts["Service"], database = DATABASE) {
  const scope = yield* Scope.make()
  const socket = ControlSocket.layer({ dataFolder, database, publicUrl: "http://localhost" }, administerAnywhere)
  yield* Layer.buildWithScope(Layer.provide(socket, Layer.succeed(Accounts, accounts)), scope)
  return Scope.close(scope, Exit.void)
})

const isAnswered = (dataFolder: string, database = DATABASE) =>
  Effect.map(
    ControlSocket.send({ dataFolder, database, publicUrl: "http://localhost" }, { _tag: "ListMerchants" }),
    Option.isSome
  )

const connected = (path: string, words: string) =>
  Effect.callback<net.Socket>((resume) => {
    const socket = net.connect(path, () => socket.write(words, () => resume(Effect.succeed(socket))))
    socket.on("error", () => {})
  })

/** A socket as a killed service leaves it: without a listener. */
const leaveSocket = (path: string) =>
  Effect.callback<void>((resume) => {
    const server = net.createServer()
    server.listen(`${path}.made`, () => {
      fs.renameSync(`${path}.made`, path)
      server.close(() => resume(Effect.void))
    })
  })

const engine = Effect.acquireRelease(
  Effect.flatMap(Harness.storageInMemory, Harness.startEngine),
  (engine) => engine.stop
)

describe("the socket for commands", () => {
  it.live.each(["", "POST / HTTP/1.1\r\n"])("closes although a client has sent only %j", (words) =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder()
      const { accounts } = yield* engine
      const stop = yield* serve(folder, accounts)
      const [path] = ControlSocket.socketsOf(folder)
      const socket = yield* connected(path!, words)
      const ended = Effect.callback<void>((resume) => void socket.once("close", () => resume(Effect.void)))
      yield* Effect.all([stop, ended], { concurrency: 2 })
      assert.deepStrictEqual(fs.readdirSync(folder), [])
    }).pipe(Effect.scoped)
  )

  it.live("is accessible to its owner only, and is the only file in its folder", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder()
      const { accounts } = yield* engine
      const stop = yield* serve(folder, accounts)
      const [path, ...others] = ControlSocket.socketsOf(folder)
      assert.isEmpty(others)
      assert.deepStrictEqual(fs.readdirSync(folder), [Path.basename(path!)])
      const stats = fs.statSync(path!)
      assert.isTrue(stats.isSocket())
      assert.strictEqual(stats.mode & 0o777, 0o600)
      assert.isTrue(yield* isAnswered(folder))
      yield* stop
      assert.isFalse(yield* isAnswered(folder))
      assert.isFalse(yield* isAnswered(Path.join(folder, "missing")))
    }).pipe(Effect.scoped)
  )

  it.live("is dead once its service was killed, and the next start on the machine removes it", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder()
      const { accounts } = yield* engine
      const stopFirst = yield* serve(folder, accounts)
      const [first] = ControlSocket.socketsOf(folder)
      yield* stopFirst
      yield* leaveSocket(first!)
      // A socket of another machine may be in use, which cannot be checked.
      const elsewhere = Path.join(folder, "control-ffffff-01234567.sock")
      yield* leaveSocket(elsewhere)
      assert.isFalse(yield* isAnswered(folder))
      const stop = yield* serve(folder, accounts)
      assert.isTrue(yield* isAnswered(folder))
      assert.notInclude(ControlSocket.socketsOf(folder), first)
      yield* stop
      assert.deepStrictEqual(ControlSocket.socketsOf(folder), [elsewhere])
    }).pipe(Effect.scoped)
  )

  it.live("serves its own database, and no other that is used with the same folder", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder()
      const { accounts } = yield* engine
      const stop = yield* serve(folder, accounts, "localhost:5432/tïll\n")
      assert.isTrue(yield* isAnswered(folder, "localhost:5432/tïll\n"))
      assert.isFalse(yield* isAnswered(folder, "localhost:5432/other"))
      yield* stop
    }).pipe(Effect.scoped)
  )

  it.live("is one of several if services share a folder: a command goes to any that is left", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder()
      const { accounts } = yield* engine
      const [one, two, three, stranger] = yield* Effect.forEach(
        [DATABASE, DATABASE, DATABASE, "another database"],
        (database) => serve(folder, accounts, database),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(ControlSocket.socketsOf(folder).length, 4)
      for (const stop of [three!, one!]) {
        yield* stop
        assert.isTrue(yield* isAnswered(folder))
      }
      yield* two!
      assert.isFalse(yield* isAnswered(folder))
      yield* stranger!
      assert.deepStrictEqual(fs.readdirSync(folder), [])
    }).pipe(Effect.scoped)
  )

  it.live("is found elsewhere if the folder's path is too long for a socket, unless another user owns it", () =>
    Effect.gen(function* () {
      const folder = Path.join(yield* temporaryFolder(), "x".repeat(120))
      fs.mkdirSync(folder)
      const { accounts } = yield* engine
      const stop = yield* serve(folder, accounts)
      assert.deepStrictEqual(fs.readdirSync(folder), [])
      const [path] = ControlSocket.socketsOf(folder)
      assert.strictEqual(fs.statSync(path!).mode & 0o777, 0o600)
      assert.isTrue(yield* isAnswered(folder))
      // Only root can give a file away.
      if (process.geteuid?.() === 0) {
        fs.chownSync(path!, 65_534, 65_534)
        assert.isFalse(yield* isAnswered(folder))
        // A client trusts a socket of the folder's owner.
        fs.chownSync(folder, 65_534, 65_534)
        assert.isTrue(yield* isAnswered(folder))
      }
      yield* stop
      assert.isFalse(fs.existsSync(path!))
    }).pipe(Effect.scoped)
  )
})

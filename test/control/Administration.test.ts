/** The door for administration: it closes whoever stands in it, and a file left behind leads nowhere. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Option, Scope } from "effect"
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"
import { Accounts } from "../../src/engine/Accounts.ts"
import * as Administration from "../../src/control/Administration.ts"
import * as Harness from "../engine/Harness.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"

const temporaryFile = Effect.map(temporaryFolder(), (folder) => path.join(folder, "administration.json"))

describe("the door for administration", () => {
  it.live.each(["", "POST / HTTP/1.1\r\n"])("closes although somebody has said no more than %j", (words) =>
    Effect.gen(function* () {
      const file = yield* temporaryFile
      const engine = yield* Harness.startEngine(yield* Harness.storageInMemory)
      const scope = yield* Scope.make()
      const door = Administration.layer(file, "a database").pipe(
        Layer.provide(Layer.succeed(Accounts, engine.accounts))
      )
      yield* Layer.buildWithScope(door, scope)
      const { port } = JSON.parse(fs.readFileSync(file, "utf8"))
      const socket = yield* Effect.callback<net.Socket>((resume) => {
        const socket = net.connect(port, "127.0.0.1", () => socket.write(words, () => resume(Effect.succeed(socket))))
        socket.on("error", () => {})
      })
      const ended = Effect.callback<void>((resume) => void socket.once("close", () => resume(Effect.void)))
      yield* Effect.all([Scope.close(scope, Exit.void), ended], { concurrency: 2 })
      assert.isFalse(fs.existsSync(file))
      yield* engine.stop
    }).pipe(Effect.scoped)
  )

  it.live("is not there if something that does not speak HTTP answers at its port", () =>
    Effect.gen(function* () {
      const file = yield* temporaryFile
      const stranger = net.createServer((socket) => void socket.on("error", () => {}).end("+OK ready\r\n"))
      yield* Effect.callback<void>((resume) => void stranger.listen(0, "127.0.0.1", () => resume(Effect.void)))
      yield* Effect.addFinalizer(() => Effect.sync(() => stranger.close()))
      const { port } = stranger.address() as net.AddressInfo
      const installation = `a database of ${fs.realpathSync(path.dirname(file))}`
      fs.writeFileSync(file, JSON.stringify({ port, token: "token", installation }))
      assert.isTrue(Option.isNone(yield* Administration.ask(file, "a database", { _tag: "ListMerchants" })))
    }).pipe(Effect.scoped)
  )

  it.live("is of its own installation, and of no other whose folder has a copy of the file, or that is beside it", () =>
    Effect.gen(function* () {
      const [file, copy] = [yield* temporaryFile, yield* temporaryFile]
      const engine = yield* Harness.startEngine(yield* Harness.storageInMemory)
      const door = Administration.layer(file, "a database")
      yield* Layer.build(Layer.provide(door, Layer.succeed(Accounts, engine.accounts)))
      fs.copyFileSync(file, copy)
      const answered = (file: string, database: string) =>
        Effect.map(Administration.ask(file, database, { _tag: "ListMerchants" }), Option.isSome)
      assert.isTrue(yield* answered(file, "a database"))
      assert.isFalse(yield* answered(copy, "a database"))
      assert.isFalse(yield* answered(file, "another"))
      yield* engine.stop
    }).pipe(Effect.scoped)
  )
})

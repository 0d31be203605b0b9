/**
 * A runner without a service: `node RunnerMain.ts <database> <drain in milliseconds>`. Every few milliseconds it checks
 * which partitions it would serve from memory, and writes a line of JSON after each change: the partitions, the time
 * since which it has seen them, and the time until which it saw the previous ones (in milliseconds of the machine's
 * monotonic clock). On SIGTERM it leaves and ends.
 */
import { Effect, Layer, Logger, Redacted } from "effect"
import type { AddressInfo } from "node:net"
import * as tls from "node:tls"
import { Cluster } from "../../src/cluster/Cluster.ts"
import * as Runner from "../../src/cluster/Runner.ts"
import { Sessions } from "../../src/cluster/Sessions.ts"
import { partitionOf, PARTITIONS, Placement } from "../../src/engine/process/Placement.ts"
import * as RunnerTls from "../../src/http/forward/RunnerTls.ts"
import * as Database from "../../src/postgres/Database.ts"
import * as Migrations from "../../src/postgres/Migrations.ts"

const [databaseUrl = "", drainMillis = "0"] = process.argv.slice(2)
const PERIOD_MILLIS = 4
const TLS = RunnerTls.make([Redacted.make(new Uint8Array(32))])

const write = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)
const now = () => Number(process.hrtime.bigint()) / 1e6

/** An account in each partition. */
const ACCOUNTS = Array.from({ length: PARTITIONS }, (_, partition) => {
  for (let i = 0; ; i++) if (partitionOf(`mer_${i}:test`) === partition) return `mer_${i}:test`
})

const listening = Effect.acquireRelease(
  Effect.promise(async () => {
    const server = tls.createServer(TLS.server)
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    return server
  }),
  (server) => Effect.sync(() => void server.close())
)

const runner = Layer.unwrap(
  Effect.gen(function* () {
    const server = yield* listening
    const { port } = server.address() as AddressInfo
    const url = `https://127.0.0.1:${port}`
    write({ url })
    return Runner.layer({
      url,
      version: "0.0.0",
      sessions: (yield* Sessions)!,
      handOverMillisMax: 4500,
      tls: TLS.client
    })
  })
)

const reporting = Effect.gen(function* () {
  const { isHere } = yield* Placement
  let last = ""
  let until = now()
  const check = () => {
    const here = ACCOUNTS.flatMap((account, partition) => (isHere(account) ? [partition] : []))
    const at = now()
    if (here.join() !== last) write({ until, at, here })
    last = here.join()
    until = at
  }
  const timer = setInterval(check, PERIOD_MILLIS)
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      clearInterval(timer)
      check()
    })
  )
})

const draining = Effect.flatMap(Placement, ({ listen }) =>
  listen({ onReleasing: () => Effect.sleep(Number(drainMillis)) })
)

const main = Effect.gen(function* () {
  const { leave, ready } = yield* Cluster
  yield* ready
  write({ isReady: true })
  yield* Effect.callback<void>((resume) => void process.once("SIGTERM", () => resume(Effect.void)))
  yield* leave
  write({ isReady: false })
})

await Effect.scoped(Effect.andThen(Effect.all([reporting, draining]), main)).pipe(
  Effect.provide(runner),
  Effect.provide(Placement.layerShared),
  Effect.provide(Migrations.layer),
  Effect.provide(Sessions.layer({ records: 1, migration: 1, requests: 1 }, [])),
  Effect.provide(Database.layer({ databaseUrl: Redacted.make(databaseUrl), dataFolder: "" })),
  Effect.provide(Logger.layer([Logger.withConsoleError(Logger.formatJson)])),
  Effect.runPromise
)

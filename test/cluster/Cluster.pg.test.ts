/**
 * Runners as processes on a real Postgres (semantics runners.partitions): one of them serves each partition, whatever
 * happens to the others.
 */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import * as Path from "node:path"
import { PARTITIONS } from "../../src/engine/process/Placement.ts"
import { freshDatabase } from "../support/Postgres.ts"
import { StallingProxy } from "../support/StallingProxy.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { pause, signalIfThere } from "../support/TillProcess.ts"

const MAIN = Path.join(import.meta.dirname, "RunnerMain.ts")
const SHIFTED_CLOCK = Path.join(import.meta.dirname, "../faults/ShiftedClock.ts")
const DRAIN_MILLIS = 30
/** For a condition that never holds; a busy machine stays below it. */
const WAIT_MILLIS_MAX = 300_000
const LONG = process.env["TILL_CLUSTER_LONG"] === "1"

/** Partitions that a runner would serve from memory, and the time for which it saw them. */
interface Period {
  readonly here: ReadonlySet<number>
  readonly from: number
  until: number
}

class Runner {
  readonly child: ChildProcess
  readonly periods: Array<Period> = []
  url = ""
  readiness: ReadonlyArray<boolean> = []
  stderr = ""
  readonly ended: Promise<number | null>

  /** `clockFile` contains the offset of the runner's wall clock, in milliseconds. */
  constructor(databaseUrl: string, clockFile: string | undefined) {
    const loaded = clockFile === undefined ? [] : ["--import", SHIFTED_CLOCK]
    this.child = spawn(process.execPath, [...loaded, MAIN, databaseUrl, String(DRAIN_MILLIS)], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...(clockFile !== undefined && { FAULTS_CLOCK: clockFile }) }
    })
    let text = ""
    this.child.stdout!.on("data", (chunk) => {
      const lines = (text + String(chunk)).split("\n")
      text = lines.pop()!
      for (const line of lines) this.#receive(JSON.parse(line))
    })
    this.child.stderr!.on("data", (chunk) => (this.stderr += String(chunk)))
    this.ended = new Promise((resolve) => this.child.once("close", (code) => resolve(code)))
  }

  #receive(line: { url?: string; isReady?: boolean; until?: number; at?: number; here?: ReadonlyArray<number> }): void {
    if (line.url !== undefined) this.url = line.url
    if (line.isReady !== undefined) this.readiness = [...this.readiness, line.isReady]
    if (line.here === undefined) return
    const last = this.periods.at(-1)
    if (last !== undefined) last.until = line.until!
    // A period lasts until the next line of its process; the last one of a killed process ends with its last line.
    this.periods.push({ here: new Set(line.here), from: line.at!, until: line.at! })
  }

  get here(): ReadonlySet<number> {
    return this.periods.at(-1)?.here ?? new Set()
  }

  async kill(): Promise<void> {
    this.child.kill("SIGKILL")
    await this.ended
    this.periods.push({ here: new Set(), from: Infinity, until: Infinity })
  }
}

const start = (url: Redacted.Redacted, clockFile?: string): Effect.Effect<Runner, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new Runner(Redacted.value(url), clockFile)),
    (runner) =>
      Effect.promise(() => {
        signalIfThere(runner.child.pid!, "SIGCONT")
        return runner.kill()
      })
  )

const until = (what: string, runners: ReadonlyArray<Runner>, condition: () => boolean | Promise<boolean>) =>
  Effect.promise(async () => {
    const end = performance.now() + WAIT_MILLIS_MAX
    while (!(await condition())) {
      if (performance.now() > end) {
        const seen = runners.map(({ here, stderr }) => `${here.size} partitions\n${stderr}`)
        throw new Error(`Waited in vain until ${what}: ${seen.join("\n")}`)
      }
      await pause(10)
    }
  })

const shared = (runners: ReadonlyArray<Runner>) => {
  const all = runners.flatMap(({ here }) => [...here])
  return all.length === PARTITIONS && new Set(all).size === PARTITIONS && runners.every(({ here }) => here.size > 0)
}

/** An internal listener of a runner without partitions. */
const answering = Effect.map(
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = http.createServer((_, response) => response.end("ok"))
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return server
    }),
    (server) => Effect.sync(() => server.close())
  ),
  (server) => server.address() as AddressInfo
)

/** Partitions that two runners would have served at the same time. */
const overlapsOf = (runners: ReadonlyArray<Runner>) =>
  runners.flatMap((a, i) =>
    runners
      .slice(i + 1)
      .flatMap((b) =>
        a.periods.flatMap((one) =>
          b.periods.flatMap((other) =>
            one.from <= other.until && other.from <= one.until ? [...one.here].filter((p) => other.here.has(p)) : []
          )
        )
      )
  )

/** Partitions by the Postgres process that holds their locks, and by their place in the table. */
const locksAndPlaces = (sql: PgClient.PgClient) =>
  Effect.all([
    sql<{ pid: number; ids: ReadonlyArray<number> }>`SELECT pid, array_agg(objid::int - 1000001 ORDER BY objid) AS ids
      FROM pg_locks l JOIN pg_database d ON d.oid = l.database
      WHERE locktype = 'advisory' AND granted AND objid BETWEEN 1000001 AND 1000064 AND d.datname = current_database()
      GROUP BY pid`,
    sql<{ url: string; ids: ReadonlyArray<number> }>`SELECT url, array_agg(id ORDER BY id) AS ids FROM partitions
      WHERE url IS NOT NULL GROUP BY url`
  ])

const sorted = (ids: Iterable<number>) => [...ids].toSorted((a, b) => a - b)

describe("runners on one database", () => {
  it.live("share its partitions, each with one owner, through a lost session, a leave and a kill", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const runners = [yield* start(url), yield* start(url), yield* start(url)]
      const [a, b, c] = runners as [Runner, Runner, Runner]
      // The database is empty, so they also make its tables.
      yield* until("three share", runners, () => shared(runners))
      yield* Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        // The lock of each partition is that of the shard to which its name is mapped.
        yield* until("the table has their partitions", runners, async () => {
          const [locks, places] = await Effect.runPromise(locksAndPlaces(sql))
          const served = (one: Runner) => sorted(one.here).join()
          return (
            runners.every((one) => locks.some(({ ids }) => ids.join() === served(one))) &&
            runners.every((one) => places.some((place) => place.url === one.url && place.ids.join() === served(one)))
          )
        })
        for (const { readiness } of runners) assert.deepStrictEqual(readiness, [true])

        const [locks] = yield* locksAndPlaces(sql)
        const session = locks.find(({ ids }) => ids.join() === sorted(a.here).join())!
        const periods = a.periods.length
        yield* sql`SELECT pg_terminate_backend(${session.pid})`
        yield* until("the one without session stops", runners, () =>
          a.periods.slice(periods).some(({ here }) => here.size === 0)
        )
        yield* until("three share again", runners, () => shared(runners))

        b.child.kill("SIGTERM")
        assert.strictEqual(yield* Effect.promise(() => b.ended), 0, b.stderr)
        assert.deepStrictEqual(b.readiness, [true, false])
        yield* until("two share", runners, () => shared([a, c]))

        // Partitions of a dead runner are taken at once, those of one that answers only after it has had time to stop.
        const [kept] = a.here
        const { port } = yield* answering
        a.child.kill("SIGSTOP")
        yield* sql`UPDATE partitions SET url = ${`http://127.0.0.1:${port}`} WHERE id = ${kept!}`
        yield* Effect.promise(() => a.kill())
        yield* until("one has all", runners, () => shared([c]))
        assert.isTrue(c.periods.some(({ here }) => here.size === PARTITIONS - 1 && !here.has(kept!)))
        assert.deepStrictEqual(overlapsOf(runners), [])
      }).pipe(Effect.provide(PgClient.layer({ url, maxConnections: 1 })))
    })
  )

  it.live("give one that joins its share, also when clocks are set during that", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder()
      const clock = Path.join(folder, "clock")
      fs.writeFileSync(clock, "0")
      const url = yield* freshDatabase
      const a = yield* start(url, clock)
      yield* until("one has all", [a], () => shared([a]))
      fs.writeFileSync(clock, "3600000")
      const b = yield* start(url)
      yield* until("the other one is there", [a, b], () => b.url !== "" && b.readiness.length > 0)
      // The first runner has seen it, and waits for more to join.
      yield* Effect.sleep("1200 millis")
      fs.writeFileSync(clock, "0")
      // A wait by the wall clock would last the hour by which it was set back.
      yield* until("two share", [a, b], () => shared([a, b]))
      assert.deepStrictEqual(overlapsOf([a, b]), [])
    })
  )

  it.live.runIf(LONG)("take over from a frozen one, which stops serving when it wakes", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const runners = [yield* start(url), yield* start(url)]
      const [a, b] = runners as [Runner, Runner]
      yield* until("two share", runners, () => shared(runners))
      a.child.kill("SIGSTOP")
      yield* until("one has all", runners, () => shared([b]))
      a.child.kill("SIGCONT")
      yield* until("the frozen one stops serving", runners, () => a.here.size === 0)
      yield* until("two share again", runners, () => shared(runners))
      assert.deepStrictEqual(overlapsOf(runners), [])
    })
  )

  it.live.runIf(LONG)(
    "take over from one that is cut off from Postgres, which serves nothing from memory during that",
    () =>
      Effect.gen(function* () {
        const url = yield* freshDatabase
        const direct = new URL(Redacted.value(url))
        const proxy = yield* Effect.acquireRelease(
          Effect.promise(() => StallingProxy.start({ host: "127.0.0.1", port: Number(direct.port) })),
          (proxy) => Effect.sync(() => proxy.close())
        )
        const through = new URL(direct)
        through.host = `127.0.0.1:${proxy.port}`
        through.searchParams.delete("host")
        const runners = [yield* start(Redacted.make(through.href)), yield* start(url)]
        const [a, b] = runners as [Runner, Runner]
        yield* until("two share", runners, () => shared(runners))
        proxy.stall()
        yield* until("one has all", runners, () => shared([b]))
        assert.strictEqual(a.here.size, 0)
        proxy.resume()
        yield* until("two share again", runners, () => shared(runners))
        assert.deepStrictEqual(overlapsOf(runners), [])
      })
  )
})

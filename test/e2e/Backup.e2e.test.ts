/**
 * `till backup` and `till restore` as operators use them (semantics backups.contents, backups.restore,
 * backups.restore.effects): beside a service under load, killed at any moment, and from the embedded Postgres to
 * another one and back.
 *
 * Replay the choices of a run with the seed that it prints: TILL_SEED=<seed> npm test -- test/e2e/Backup.
 */
import { PgConnection } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { verifyWebhook } from "../../src/client/index.ts"
import { inParallel, persist } from "../support/HttpExchange.ts"
import { freshDatabase } from "../support/Postgres.ts"
import { Random, runSeed } from "../support/Random.ts"
import { runs } from "../support/Runs.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { launchOf, pause, prepareTill, run, till, TillProcess, until } from "../support/TillProcess.ts"
import { isKept, Traffic } from "../support/fixtures/Traffic.ts"
import { TrafficAudit } from "../support/fixtures/TrafficAudit.ts"
import { answersWith, receiver } from "../webhooks/RawReceiver.ts"

type Signal = "SIGKILL" | "SIGTERM"
type Variables = Readonly<Record<string, string>>

const succeeds = async (args: ReadonlyArray<string>, variables: Variables): Promise<string> => {
  const { code, stderr, stdout } = await till(args, variables)
  assert.strictEqual(code, 0, `${args.join(" ")}: ${stderr}`)
  return stdout
}

/** Runs a command that must fail with this one line. */
const fails = async (args: ReadonlyArray<string>, variables: Variables, line: RegExp | string) => {
  const { code, stderr, stdout } = await till(args, variables)
  assert.strictEqual(code, 1, `${args.join(" ")}: ${stdout}`)
  assert.match(stderr, /^till: [^\n]+\n$/)
  if (typeof line === "string") assert.include(stderr, line)
  else assert.match(stderr, line)
}

const sound = /^\d+ records of \d+ accounts: the journal is whole and the views agree with it; .+\.\n$/

const assertSound = async (variables: Variables) => assert.match(await succeeds(["verify"], variables), sound)

/** Returns a folder for a backup and a service for its restored data, on the port of another service that has ended. */
const placeFor = (server: TillProcess) =>
  Effect.gen(function* () {
    const backup = Path.join(yield* temporaryFolder(), "backup")
    const restored = yield* Effect.acquireRelease(
      Effect.map(temporaryFolder(), (folder) => {
        const { TILL_DATA_DIR: _, ...variables } = server.variables
        return new TillProcess(launchOf(Path.join(folder, "data"), server.port, variables))
      }),
      (process) => Effect.promise(() => process.destroy())
    )
    return { backup, restored }
  })

describe("till backup, beside a service under load", () => {
  it.live(
    "has what was acknowledged before it, and what is restored of it goes on from there",
    () =>
      Effect.gen(function* () {
        const server = yield* prepareTill()
        const { backup, restored } = yield* placeFor(server)
        const earlier = yield* placeFor(server)
        yield* Effect.promise(async () => {
          await server.start()
          await server.post("/v1/webhook_endpoints", { url: "http://127.0.0.1:9/", enabled_events: ["*"] })
          const traffic = new Traffic(server.http, runSeed, 16)
          let isOver = false
          const working = traffic.run(() => isOver)
          await until("there is something to back up", () => traffic.deeds.length > 200)
          await succeeds(["backup", backup], server.variables)
          const before = traffic.deeds.filter(({ answer }) => answer !== undefined)
          const output = await succeeds(["backup", backup], server.variables)
          assert.match(
            output,
            /^Backed up [\d,]+ new records \([\d,]+ in total, from 2 accounts, \d+ kB\) to .+, up to .+Z, with/
          )
          fs.cpSync(backup, earlier.backup, { recursive: true })
          const enough = traffic.deeds.length + 100
          await until("more has happened", () => traffic.deeds.length > enough)
          isOver = true
          await working
          await until("every open request is answered", () => traffic.settle())
          const last = JSON.parse(await succeeds(["backup", backup, "--json"], server.variables))
          assert.hasAllKeys(last, ["folder", "added", "records", "accounts", "bytes", "until"])
          assert.isAbove(last.added, 0)
          await server.kill("SIGTERM")

          // The earlier backup holds everything that was acknowledged before it began.
          await succeeds(["restore", earlier.backup], earlier.restored.variables)
          await assertSound(earlier.restored.variables)
          await earlier.restored.start()
          const kept = before.filter(({ answer }) => isKept(answer!))
          assert.isAbove(kept.length, 100)
          await inParallel(kept, 16, async ({ answer, body, idempotencyKey, path }) => {
            const replay = await persist(traffic.http, "POST", path, { body, idempotencyKey })
            assert.strictEqual(replay.headers["idempotent-replayed"], "true", idempotencyKey)
            assert.strictEqual(replay.text, answer!.text)
          })
          await earlier.restored.kill("SIGTERM")

          // The last backup holds everything, and its service works.
          const { accounts, folder, records, until: end } = last
          const secret_file = null
          const restoration = JSON.parse(await succeeds(["restore", backup, "--json"], restored.variables))
          assert.deepStrictEqual(restoration, { accounts, folder, records, erased: 0, until: end, secret_file })
          const verified = JSON.parse(await succeeds(["verify", "--json"], restored.variables))
          assert.deepInclude(verified, { accounts, records, problems: [] })
          await restored.start()
          const problems = await new TrafficAudit(traffic).checkAll()
          assert.isEmpty(problems, `TILL_SEED=${runSeed}: ${problems.join("\n")}`)
          const more = traffic.deeds.length + 100
          await traffic.run(() => traffic.deeds.length > more)
          assert.isEmpty(traffic.violations)
          // After further changes, the next backup adds them.
          assert.match(await succeeds(["backup", backup], restored.variables), /^Backed up [1-9]\d* new records \(/)
        })
      }),
    600_000
  )
})

const RECORDS = 3000
const ROUNDS = runs(Number(process.env["TILL_KILL_ROUNDS"] ?? 3), 1)

describe("kill -9", () => {
  it.live(
    "during a backup or a restore leaves nothing half done: a repetition completes it",
    () =>
      Effect.gen(function* () {
        const server = yield* prepareTill()
        const { backup } = yield* placeFor(server)
        const whole = Path.join(yield* temporaryFolder(), "whole")
        const random = new Random(runSeed)
        const url = yield* freshDatabase
        const connection = yield* PgConnection.make({ url })
        const embedded = (yield* placeFor(server)).restored
        const own = (yield* placeFor(server)).restored
        const targets = [
          { process: embedded, variables: embedded.variables },
          { process: own, variables: { ...own.variables, DATABASE_URL: Redacted.value(url) } }
        ]
        yield* Effect.promise(async () => {
          await server.start()
          await inParallel([...Array.from({ length: RECORDS }).keys()], 64, (i) =>
            persist(server, "POST", "/v1/customers", { body: { name: `${i}`.repeat(50) } })
          )
          await server.kill("SIGTERM")
          const begun = performance.now()
          await succeeds(["backup", whole], server.variables)
          const taken = performance.now() - begun
          const killed = async (args: ReadonlyArray<string>, variables: Variables, millis: number, signal: Signal) => {
            const command = run(args, variables)
            await Promise.race([pause(millis), command.ended])
            command.child.kill(signal)
            return command.ended
          }
          for (let round = 0; round < ROUNDS; round++) {
            const signal = random.pick(["SIGKILL", "SIGTERM"] as const)
            const { code } = await killed(["backup", backup], server.variables, random.next() * taken, signal)
            if (fs.existsSync(Path.join(backup, "manifest.json"))) continue
            assert.notStrictEqual(code, 0, "a success without a backup")
            await fails(["restore", backup], embedded.variables, / no backup|never come to its end/)
          }
          await succeeds(["backup", backup], server.variables)
          const accountsOf = (folder: string) =>
            JSON.parse(fs.readFileSync(Path.join(folder, "manifest.json"), "utf8")).manifest.accounts
          assert.deepStrictEqual(accountsOf(backup), accountsOf(whole))

          let refused = 0
          for (const { process, variables } of targets) {
            const trial = performance.now()
            const first = run(["restore", backup], variables)
            await until("the restore has begun to write", async () => {
              if (process === own) {
                const [row] = await Effect.runPromise(
                  connection.queryValues("SELECT to_regclass('unfinished_restore') IS NOT NULL")
                )
                return row?.[0] === true
              }
              return fs.existsSync(Path.join(process.folder, "secret"))
            })
            const writing = performance.now() - trial
            first.child.kill("SIGKILL")
            await first.ended
            await fails(["serve"], variables, "A restore into this database has not come to its end: ")
            await fails(["verify"], variables, "A restore into this database has not come to its end: ")
            let isDone = false
            for (let round = 0; round < ROUNDS && !isDone; round++) {
              isDone =
                (await killed(["restore", backup], variables, writing + random.next() * 4000, "SIGKILL")).code === 0
              if (isDone) break
              const { code, stderr } = await till(["verify"], variables)
              // The kill came after the command was complete.
              if (code === 0) isDone = true
              else {
                assert.include(stderr, "A restore into this database has not come to its end: ")
                refused++
              }
            }
            if (!isDone) await succeeds(["restore", backup], variables)
            await assertSound(variables)
            assert.match(await succeeds(["verify"], variables), new RegExp(`^${RECORDS + 1} records of 2 accounts`))
            await fails(["restore", backup], variables, "There is an installation already: ")
          }
          console.log(`${ROUNDS} kills of backups; ${refused + targets.length} of restores that had begun to write`)
        })
      }),
    600_000 + ROUNDS * 130_000
  )
})

describe("till restore", () => {
  it.live(
    "moves an installation from the embedded Postgres to another one, and back, with all that belongs to it",
    () =>
      Effect.gen(function* () {
        const server = yield* prepareTill()
        const { backup } = yield* placeFor(server)
        const second = Path.join(yield* temporaryFolder(), "backup")
        const back = (yield* placeFor(server)).restored
        const url = Redacted.value(yield* freshDatabase)
        const moved = new TillProcess(launchOf(server.folder, server.port, { ...server.variables, DATABASE_URL: url }))
        yield* Effect.addFinalizer(() => Effect.promise(() => moved.destroy()))
        const hooks = yield* receiver(answersWith(500))
        yield* Effect.promise(async () => {
          await server.start()
          const endpoint = await server.post("/v1/webhook_endpoints", {
            url: hooks.url,
            enabled_events: ["customer.created"]
          })
          await server.post("/v1/test_helpers/clock/advance", { seconds: 86_400 })
          const customer = await server.post("/v1/customers", { name: "Jenny" }, { idempotencyKey: "jenny" })
          await until("the first attempt has failed", async () => hooks.requests.length > 0)
          await server.kill("SIGTERM")
          await succeeds(["backup", backup], server.variables)
          // This data folder already has the secret of the backup.
          await succeeds(["restore", backup, "--into", url], server.variables)

          for (const [service, rest] of [
            [moved, back],
            [back, undefined]
          ] as const) {
            await assertSound(service.variables)
            await service.start()
            const again = await service.request("POST", "/v1/customers", {
              body: { name: "Jenny" },
              idempotencyKey: "jenny"
            })
            assert.strictEqual(again.headers["idempotent-replayed"], "true")
            assert.strictEqual(again.text, JSON.stringify(customer))
            const mia = await service.post("/v1/customers", { name: "Mia" })
            assert.isAtLeast(mia.created, Math.floor(Date.now() / 1000) + 86_400 - 5)
            const jennys = () => hooks.requests.filter(({ body }) => body.includes(customer.id))
            const before = jennys().length
            // The pending delivery is pending again, and its next attempt is due by the clock of its account.
            await service.post("/v1/test_helpers/clock/advance", { seconds: 3600 })
            await until("its next attempt is made", async () => jennys().length > before)
            const { body, headers } = jennys().at(-1)!
            assert.deepStrictEqual(body, jennys()[0]!.body)
            verifyWebhook({ body, header: headers.get("x-signature"), secret: endpoint.secret })
            await service.kill("SIGTERM")
            if (rest === undefined) continue
            await succeeds(["backup", second], service.variables)
            await succeeds(["restore", second], rest.variables)
          }
        })
      }),
    600_000
  )

  it.live(
    "refuses to damage data, with the reason",
    () =>
      Effect.gen(function* () {
        const server = yield* prepareTill()
        const { backup, restored } = yield* placeFor(server)
        const url = Redacted.value(yield* freshDatabase)
        const other = yield* temporaryFolder()
        yield* Effect.promise(async () => {
          await fails(["backup", backup], server.variables, "There is no installation: ")
          await server.start()
          await fails(["restore", backup], restored.variables, "holds no backup.")
          await fails(["backup", server.folder], server.variables, "has something else in it (")
          await succeeds(["backup", backup], server.variables)
          await fails(["restore", backup], server.variables, "is in use by another Till")
          fs.writeFileSync(Path.join(other, "secret"), `${"ab".repeat(32)}\n`)
          const elsewhere = { ...restored.variables, TILL_DATA_DIR: other }
          await fails(["restore", backup], elsewhere, "is another installation's secret: ")
          await succeeds(["restore", backup], { ...restored.variables, DATABASE_URL: url })
          await fails(["restore", backup, "--into", url], restored.variables, "There is an installation already: ")
          const wrong = { ...elsewhere, DATABASE_URL: url }
          await fails(["backup", Path.join(other, "b")], wrong, "TILL_DATA_DIR: its file `secret` is not the one")
          await fails(
            ["restore", backup, "--into", "mysql://u:hidden@h/d"],
            restored.variables,
            /^(?!.*hidden)till: --into/
          )
          await fails(
            ["restore", backup, "--until", "2020-01-01T00:00:00Z"],
            restored.variables,
            "This backup has nothing from"
          )
          const { code, stderr } = await till(["restore", backup, "--until", "yesterday"], restored.variables)
          assert.strictEqual(code, 1)
          assert.include(stderr, "a time such as 2026-11-21T04:00:00Z, or Unix seconds")
          const file = Path.join(backup, "records", "00000001.zst")
          const bytes = fs.readFileSync(file)
          fs.writeFileSync(file, bytes.with(99, bytes[99]! ^ 1))
          await fails(["restore", backup], restored.variables, `${file} is damaged: `)
          assert.isFalse(fs.existsSync(Path.join(restored.folder, "postgres")))
        })
      }),
    600_000
  )
})

/** The process starts, refuses to start, and stops. */
import { PgConnection } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { execFileSync, spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as net from "node:net"
import * as Path from "node:path"
import { basic, inParallel, persist } from "../support/HttpExchange.ts"
import { freshDatabase } from "../support/Postgres.ts"
import {
  family,
  KEYS,
  pause,
  prepareTill,
  signalIfThere,
  startTill,
  till,
  TILL,
  type TillProcess,
  until
} from "../support/TillProcess.ts"
import { Traffic } from "../support/fixtures/Traffic.ts"
import { TrafficAudit } from "../support/fixtures/TrafficAudit.ts"

const payment = { amount: 2000, currency: "usd" }

/** Returns the keys that a start has printed, by prefix. */
const printedKeys = (stdout: string): Record<string, string> =>
  Object.fromEntries(
    [...stdout.matchAll(/^ {2}.*\s(([sp]k_(?:test|live)_)\w{32})\r?$/gm)].map(([, key, prefix]) => [prefix, key])
  )

/** Returns the file with the keys that a start has not printed. */
const keptFile = (stdout: string): string =>
  /^The keys of live mode are in (\S+), which only its owner can read\./m.exec(stdout)![1]!

/** Returns the keys in the file, by prefix. */
const keptKeys = (stdout: string): Record<string, string> =>
  Object.fromEntries(
    [...fs.readFileSync(keptFile(stdout), "utf8").matchAll(/^TILL_[SP]K_LIVE=(([sp]k_live_)\w{32})$/gm)].map(
      ([, key, prefix]) => [prefix, key]
    )
  )

/** The words before the command to try. */
const PAY = "or pay here:"

/** Returns the command that a start has printed below its last line of words. */
const printedCommand = (stdout: string): string => stdout.slice(stdout.indexOf(PAY) + PAY.length).trim()

const hasCurl = spawnSync("curl", ["--version"]).status === 0

/** Runs the printed command, or its request where there is no curl. */
const tryCommand = async (command: string): Promise<{ readonly status: string; readonly amount: number }> => {
  if (hasCurl) return JSON.parse(execFileSync("sh", ["-c", `${command} --silent --show-error`], { encoding: "utf8" }))
  const [, url, key, body] = /curl (\S+) -u (\w+): .*-d '(.*)'/s.exec(command)!
  const headers = { authorization: basic(key!), "content-type": "application/json", "idempotency-key": "first" }
  return (await fetch(url!, { method: "POST", headers, body: body! })).json() as never
}

describe("the first start", () => {
  it.live(
    "prints where it listens, its test keys and a command that works; later ones do not show the keys again",
    () =>
      Effect.gen(function* () {
        const server = yield* startTill({ withoutKeys: true, newCluster: true })
        yield* Effect.promise(async () => {
          assert.include(server.stdout, `Till listens on ${server.baseUrl}\n`)
          const printed = printedKeys(server.stdout)
          assert.sameMembers(Object.keys(printed), ["sk_test_", "pk_test_"])
          const kept = keptKeys(server.stdout)
          assert.sameMembers(Object.keys(kept), ["sk_live_", "pk_live_"])
          for (const key of Object.values(kept)) assert.notInclude(server.stdout, key)
          const file = keptFile(server.stdout)
          assert.strictEqual(Path.dirname(file), server.folder)
          assert.strictEqual(fs.statSync(file).mode & 0o777, 0o600)
          const keys: Record<string, string> = { ...printed, ...kept }
          const tried = await tryCommand(printedCommand(server.stdout))
          assert.deepInclude(tried, { status: "succeeded", amount: 2000 })
          // Node's own parser confuses these names with the first one.
          for (const name of ["\\", "\n", '"']) {
            const metadata = { order: "1", [name]: "2" }
            const customer = await server.post("/v1/customers", { metadata }, { key: keys["sk_test_"]! })
            assert.deepStrictEqual(Object.entries(customer.metadata), Object.entries(metadata))
          }
          await server.kill("SIGTERM")

          await server.start()
          assert.include(server.stdout, `Till listens on ${server.baseUrl}\n`)
          assert.notMatch(server.stdout, /[sp]k_(test|live)_/)
          const listed = await server.get("/v1/payment_intents", { key: keys["sk_test_"]! })
          assert.deepStrictEqual(listed.data, [tried])
          assert.isEmpty((await server.get("/v1/payment_intents", { key: keys["sk_live_"]! })).data)
          for (const prefix of ["pk_test_", "pk_live_"]) {
            const refused = await server.request("GET", "/v1/payment_intents", { key: keys[prefix]! })
            assert.strictEqual(refused.body.error.code, "secret_key_required")
          }
          for (const key of Object.values(keys)) assert.notInclude(server.stderr, key)
        })
      })
  )

  it.live.skipIf(spawnSync("script", ["--version"]).status !== 0)("prints all its keys to a terminal", () =>
    Effect.gen(function* () {
      const server = yield* prepareTill({ withoutKeys: true })
      const command = [process.execPath, ...TILL, "serve"].map((part) => `'${part}'`).join(" ")
      const terminal = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"], {
        env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"], ...server.variables },
        stdio: ["pipe", "pipe", "inherit"]
      })
      let shown = ""
      terminal.stdout.on("data", (chunk) => (shown += String(chunk)))
      const ended = new Promise((resolve) => terminal.once("close", resolve))
      yield* Effect.promise(async () => {
        await until("it takes requests", () => shown.includes(PAY), 60)
        // Ctrl-C.
        terminal.stdin.write("\u0003")
        await ended
      })
      assert.sameMembers(Object.keys(printedKeys(shown)), ["sk_test_", "pk_test_", "sk_live_", "pk_live_"])
      assert.notInclude(shown, "The keys of live mode are in")
      assert.isEmpty(fs.readdirSync(server.folder).filter((name) => name.startsWith("live-keys")))
    })
  )

  it.live("takes the keys that the environment sets, and shows none of them", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      yield* Effect.promise(async () => {
        for (const [key, livemode] of [
          [KEYS.secretTest, false],
          [KEYS.secretLive, true]
        ] as const) {
          assert.strictEqual((await server.post("/v1/payment_intents", payment, { key })).livemode, livemode)
        }
        for (const key of Object.values(KEYS)) assert.notInclude(server.stdout + server.stderr, key)
      })
    })
  )
})

/** Starts Till, which must end by itself with one line on standard error; returns the line. */
const refusal = async (variables: Readonly<Record<string, string>>): Promise<string> => {
  const { code, stderr, stdout } = await till(["serve"], variables)
  assert.strictEqual(code, 1, stdout + stderr)
  assert.match(stderr, /^till: .+\n$/)
  assert.match(stdout, /^Starting Till \S+ …\n(?:(?:Preparing|Starting) .* …\n)*$/u)
  return stderr
}

describe("a start with a misspelt variable", () => {
  it.live("warns of it", () =>
    Effect.gen(function* () {
      const server = yield* startTill({ variables: { TILL_RATE_LIMITS: "on" } })
      const warning = /"message":"[^"]*: TILL_RATE_LIMITS[^"]*","level":"WARN"/
      yield* Effect.promise(() => until("it warns", () => warning.test(server.stderr)))
      assert.match(server.stderr, warning)
    })
  )
})

describe("a start that cannot be", () => {
  it.live("names the variable in one line", () =>
    Effect.gen(function* () {
      const folder = (yield* prepareTill()).folder
      const file = Path.join(folder, "file")
      fs.writeFileSync(file, "")
      const base = { TILL_DATA_DIR: Path.join(folder, "data"), PORT: "0" }
      const wrong: ReadonlyArray<readonly [string, string]> = [
        ["PORT", "http"],
        ["TILL_SK_TEST", "sk_live_00000000000000000000000000000000"],
        ["TILL_PUBLIC_URL", "pay.example.com"],
        ["TILL_AUTH_HOLD_SECONDS", "0"],
        ["DATABASE_URL", "mysql://localhost/till"],
        ["DATABASE_URL", "postgres://till:secret@127.0.0.1:1/till"]
      ]
      yield* Effect.promise(() =>
        inParallel(wrong, 2, async ([variable, value]) => {
          const line = await refusal({ ...base, [variable]: value })
          assert.include(line, variable)
          assert.notInclude(line, "secret@")
        })
      )
      assert.isFalse(fs.existsSync(base.TILL_DATA_DIR), "a start that was refused has left something behind")
      assert.include(yield* Effect.promise(() => refusal({ ...base, TILL_DATA_DIR: file })), file)
    })
  )

  it.live("prints that a new key in the environment does not revoke the old one", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      const variables = { TILL_DATA_DIR: server.folder, TILL_SK_TEST: "sk_test_put_in_its_place" }
      const again = yield* prepareTill({ variables })
      yield* Effect.promise(async () => {
        assert.notInclude(server.stdout, "New from the environment")
        await server.kill("SIGTERM")
        await again.start()
        assert.include(again.stdout, "New keys from the environment: secret key, test mode.\nThe earlier keys stay")
        for (const key of [KEYS.secretTest, variables.TILL_SK_TEST]) await again.get("/v1/customers", { key })
        await again.kill("SIGTERM")
        await again.start()
        assert.notInclude(again.stdout, "New from the environment")
      })
    })
  )

  it.live("names a key in the environment that belongs to another merchant", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      yield* Effect.promise(async () => {
        await server.kill("SIGTERM")
        const { stdout } = await till(["merchants", "create", "Acme Inc."], server.variables)
        const [key] = /sk_live_\w{32}/.exec(stdout)!
        const line = await refusal({ ...server.variables, TILL_SK_LIVE: key })
        assert.strictEqual(line, "till: TILL_SK_LIVE: is a key of another merchant\n")
      })
    })
  )

  it.live("names a data folder, or a port, that is in use", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      const other = yield* prepareTill({ withoutKeys: true })
      yield* Effect.promise(async () => {
        const inUse = await refusal(server.variables)
        assert.include(
          inUse,
          `The data folder ${server.folder} is in use by another Till (process ${server.processId})`
        )
        const taken = await refusal({ ...other.variables, PORT: String(server.port) })
        assert.strictEqual(taken, `till: PORT: ${server.port} on 127.0.0.1 is in use by another process\n`)
        assert.isUndefined(other.postgresProcessId, "its Postgres still runs")
        // A start that could not print new keys has created none, so the next one creates and prints them.
        await other.start()
        assert.include(other.stdout, "These keys are shown only once")
        assert.strictEqual((await server.post("/v1/payment_intents", payment)).amount, 2000)
      })
    })
  )
})

describe("DATABASE_URL", () => {
  it.live("serves several processes that start at once on an empty database", () =>
    Effect.gen(function* () {
      const { folder } = yield* prepareTill()
      const variables = { DATABASE_URL: Redacted.value(yield* freshDatabase), TILL_DATA_DIR: folder }
      const servers = yield* Effect.forEach([1, 2, 3], () => prepareTill({ variables, withoutKeys: true }))
      yield* Effect.promise(async () => {
        await Promise.all(servers.map((server) => server.start()))
        const greeted = servers.map((server) => printedKeys(server.stdout)).filter((keys) => "sk_test_" in keys)
        assert.lengthOf(greeted, 1, "one default merchant, and its keys once")
        const key = greeted[0]!["sk_test_"]!
        // One process serves the account; the others forward to it.
        const requests = Array.from({ length: 60 }, (_, i) => servers[i % servers.length]!)
        const made = await inParallel(requests, 12, async (server) => {
          const answer = await persist(server, "POST", "/v1/payment_intents", { key, body: payment })
          assert.strictEqual(answer.status, 200, answer.text)
          return answer.body
        })
        assert.strictEqual(new Set(made.map(({ id }) => id)).size, requests.length)
        const ends = await Promise.all(servers.map((server) => server.kill("SIGTERM")))
        assert.deepStrictEqual(
          ends.map(({ code }) => code),
          [0, 0, 0]
        )
        const verified = await till(["verify"], servers[0]!.variables)
        assert.match(verified.stdout, /^6\d records of 2 accounts: /, verified.stderr)
      })
    })
  )

  it.live("is refused, with the reason, where the installation's own account was changed", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const server = yield* startTill({ variables: { DATABASE_URL: Redacted.value(url) } })
      yield* Effect.promise(() => server.kill("SIGTERM"))
      for (const column of ["record", "hash"]) {
        yield* Effect.scoped(
          Effect.flatMap(PgConnection.make({ url }), (sql) =>
            sql.query(
              `UPDATE journal SET ${column} = set_byte(${column}, 20, get_byte(${column}, 20) # 1) WHERE account = 'till'`
            )
          )
        )
        const told = yield* Effect.promise(() => refusal(server.variables))
        assert.match(told, /^till: the installation's own account, .+ Record \d+ of account till is not what /m)
        assert.notInclude(told, "    at ")
      }
    })
  )

  it.live("is not served with another data folder's secret, which could not read what was written", () =>
    Effect.gen(function* () {
      const variables = { DATABASE_URL: Redacted.value(yield* freshDatabase) }
      const server = yield* startTill({ variables })
      const other = yield* prepareTill({ variables })
      yield* Effect.promise(async () => {
        // Accepts a webhook and never answers, so that the delivery stays open.
        const deaf = net.createServer()
        await new Promise<void>((resolve) => void deaf.listen(0, "127.0.0.1", resolve))
        const connected = new Promise((resolve) => void deaf.once("connection", resolve))
        const url = `http://127.0.0.1:${(deaf.address() as net.AddressInfo).port}/`
        const { id } = await server.post("/v1/webhook_endpoints", { url, enabled_events: ["customer.created"] })
        await inParallel(Array.from({ length: 20 }), 20, () => server.post("/v1/customers"))
        await connected
        assert.lengthOf((await server.get(`/v1/webhook_endpoints/${id}/deliveries?limit=100`)).data, 20)
        await server.kill("SIGKILL")
        assert.include(
          await refusal(other.variables),
          "TILL_DATA_DIR: its file `secret` is not the one that this database was written with"
        )
        fs.copyFileSync(Path.join(server.folder, "secret"), Path.join(other.folder, "secret"))
        await other.start()
        const { data } = await other.get(`/v1/webhook_endpoints/${id}/deliveries?limit=100`)
        assert.deepStrictEqual(
          data.flatMap(({ attempts }: { attempts: ReadonlyArray<object> }) => attempts),
          [],
          "the one that was refused has attempted nothing"
        )
        deaf.close()
      })
    })
  )
})

/** Opens a connection and sends only the beginning of a request. */
const dawdle = (port: number): net.Socket =>
  net
    .connect(port, "127.0.0.1")
    .on("error", () => undefined)
    .setNoDelay()
    .on("connect", function (this: net.Socket) {
      this.write(
        `POST /v1/customers HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${basic(KEYS.secretTest)}\r\n` +
          `Idempotency-Key: dawdling\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"name":`
      )
    })

/**
 * Lets a process take ten minutes to end. A stop that waits for no connection ends long before the bound, also on a
 * busy machine; one that waits until a limit of the process does not.
 */
const PATIENT = { TILL_DRAIN_SECONDS: "600" }
const STOP_MILLIS_MAX = 120_000

describe("a stop", () => {
  it.live("answers everything that is under way, and carries nothing out that it does not answer", () =>
    Effect.gen(function* () {
      const server = yield* startTill({ variables: PATIENT })
      yield* Effect.promise(async () => {
        const traffic = new Traffic(server.http, 7)
        const audit = new TrafficAudit(traffic)
        for (const signal of ["SIGTERM", "SIGINT"] as const) {
          await stopUnderLoad(server, traffic, signal)
          const problems = await audit.checkNew()
          assert.isEmpty(problems, `after ${signal}: ${problems.join("\n")}`)
        }
        assert.isEmpty((await audit.checkAll()).join("\n"))
      })
    })
  )

  it.live("does not wait for connections that are idle, and not long for those that dawdle", () =>
    Effect.gen(function* () {
      const server = yield* startTill({ variables: PATIENT })
      yield* Effect.promise(async () => {
        await Promise.all(Array.from({ length: 20 }, () => server.get("/v1/customers")))
        const idle = performance.now()
        assert.deepStrictEqual(await server.kill("SIGTERM"), { code: 0, signal: null })
        assert.isBelow(performance.now() - idle, STOP_MILLIS_MAX)
        assert.isUndefined(server.postgresProcessId)

        await server.start()
        const socket = dawdle(server.port)
        await pause(100)
        const begun = performance.now()
        assert.deepStrictEqual(await server.kill("SIGTERM"), { code: 0, signal: null })
        assert.isBelow(performance.now() - begun, STOP_MILLIS_MAX)
        socket.destroy()
      })
    })
  )

  it.live("ends although Postgres hangs, and an unanswered request is carried out once at most", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      yield* Effect.promise(async () => {
        const made = await server.post("/v1/payment_intents", payment)
        const postgres = family(server.postgresProcessId!)
        const stopAll = (signal: NodeJS.Signals) => postgres.forEach((processId) => signalIfThere(processId, signal))
        stopAll("SIGSTOP")
        const options = { body: payment, idempotencyKey: "hanging" }
        const answer = server.request("POST", "/v1/payment_intents", options).catch(() => undefined)
        await pause(300)
        assert.strictEqual((await server.kill("SIGTERM")).code, 1)
        assert.include(server.stderr, "till: The shutdown took too long and was cut short.")
        assert.notStrictEqual((await answer)?.status, 200)
        stopAll("SIGCONT")
        await server.start()
        const repeated = await server.request("POST", "/v1/payment_intents", options)
        assert.strictEqual(repeated.status, 200)
        const listed = await server.get("/v1/payment_intents")
        assert.deepStrictEqual(
          listed.data.map(({ id }: { id: string }) => id),
          [repeated.body.id, made.id]
        )
      })
    })
  )

  it.live("after kill -9, the next start adopts the Postgres and the compiled code that were left over", () =>
    Effect.gen(function* () {
      const cache = (yield* prepareTill()).folder
      const server = yield* startTill({ variables: { NODE_COMPILE_CACHE: cache } })
      yield* Effect.promise(async () => {
        await until("what was compiled is written", () => compiledFiles(cache) > 0)
        const made = await server.post("/v1/payment_intents", payment)
        const postgres = server.postgresProcessId
        assert.isDefined(postgres)
        assert.deepStrictEqual(await server.kill("SIGKILL"), { code: null, signal: "SIGKILL" })
        assert.strictEqual(server.postgresProcessId, postgres)
        await server.start()
        assert.strictEqual(server.postgresProcessId, postgres)
        assert.deepStrictEqual(await server.get(`/v1/payment_intents/${made.id}`), made)
        assert.strictEqual((await server.kill("SIGTERM")).code, 0)
        assert.isUndefined(server.postgresProcessId)
      })
    })
  )
})

/** Number of modules in Node's compile cache. */
const compiledFiles = (cache: string): number =>
  fs.readdirSync(cache, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length

/** Stops Till while clients work, and starts it again. */
const stopUnderLoad = async (server: TillProcess, traffic: Traffic, signal: NodeJS.Signals) => {
  let hasEnded = false
  const working = traffic.run(() => hasEnded, { givingUp: true })
  await pause(600)
  const begun = performance.now()
  const end = await server.kill(signal)
  hasEnded = true
  assert.deepStrictEqual(end, { code: 0, signal: null }, server.stderr)
  assert.isBelow(performance.now() - begun, STOP_MILLIS_MAX)
  assert.isUndefined(server.postgresProcessId)
  await working
  const open = traffic.open
  await server.start()
  assert.isTrue(await traffic.settle())
  const carriedOut = open.filter(({ answer }) => answer?.headers["idempotent-replayed"] === "true")
  assert.isEmpty(
    carriedOut.map(({ path }) => path),
    "carried out, but not answered"
  )
}

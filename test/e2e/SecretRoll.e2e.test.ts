/**
 * `till secret roll` on two machines of one installation, step by step as the command asks (semantics operation.roll):
 * the runners stay one service, nothing that was stored gets lost, and in the end the old secret is not needed.
 */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { verifyWebhook } from "../../src/client/index.ts"
import { freshDatabase } from "../support/Postgres.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { KEYS, prepareTill, till, type TillProcess, until } from "../support/TillProcess.ts"
import { answersWith, receiver } from "../webhooks/RawReceiver.ts"

const TEST_MILLIS_MAX = 600_000
const DAY_MILLIS = 86_400_000
const CARD = { type: "card", card: { number: "4242424242424242", exp_month: 12, exp_year: 2040, cvc: "123" } }
const PRINT = /^[0-9a-f]{64}$/u

interface Status {
  readonly done: string | null
  readonly stage: string
  readonly read_by_all: boolean
  readonly left: Readonly<Record<string, number>>
  readonly answers_end_in_seconds: number
}

const command = async (runner: TillProcess, ...args: ReadonlyArray<string>) => {
  const { code, stderr, stdout } = await till(args, runner.variables)
  assert.strictEqual(code, 0, `${args.join(" ")}: ${stderr}`)
  return stdout
}

const secret = async (runner: TillProcess, ...args: ReadonlyArray<string>): Promise<Status> =>
  JSON.parse(await command(runner, "secret", ...args, "--json")) as Status

const fails = async (variables: TillProcess["variables"], line: string, ...args: ReadonlyArray<string>) => {
  const { code, stderr, stdout } = await till(args, variables)
  assert.strictEqual(code, 1, stdout)
  assert.match(stderr, /^till: [^\n]+\n$/u)
  assert.include(stderr, line)
}

const fileOf = ({ variables }: TillProcess): string => variables["TILL_SECRET_FILE"]!
const secretsIn = (runner: TillProcess) =>
  fs
    .readFileSync(fileOf(runner), "utf8")
    .split("\n")
    .filter((line) => PRINT.test(line))

/** Copies the secret's file to another machine. */
const copy = (from: TillProcess, to: TillProcess) => fs.copyFileSync(fileOf(from), fileOf(to))

const restart = async (runner: TillProcess) => {
  assert.deepStrictEqual(await runner.kill("SIGTERM"), { code: 0, signal: null }, runner.stderr)
  await runner.start()
}

/** Two runners on machines of their own, with one database. */
const machines = Effect.gen(function* () {
  const url = yield* freshDatabase
  const prepare = Effect.flatMap(temporaryFolder(), (folder) =>
    prepareTill({ variables: { DATABASE_URL: Redacted.value(url), TILL_SECRET_FILE: Path.join(folder, "secret") } })
  )
  const [first, second] = [yield* prepare, yield* prepare]
  yield* Effect.promise(async () => {
    await first.start()
    copy(first, second)
    await second.start()
  })
  return { url, first, second }
})

/** Objects of a merchant whose secrets and ids depend on the installation's secret. */
const furnish = async (runner: TillProcess, url: string) => {
  const rolled = await runner.post("/v1/webhook_endpoints", { url: "http://127.0.0.1:9/", enabled_events: ["*"] })
  await runner.post(`/v1/webhook_endpoints/${rolled.id}/roll_secret`, { expires_in: 3600 })
  const request = { body: { url, enabled_events: ["customer.created"] }, idempotencyKey: "the endpoint" }
  const created = await runner.request("POST", "/v1/webhook_endpoints", request)
  const { card } = await runner.post("/v1/payment_methods", CARD)
  const { id: product } = await runner.post("/v1/products", { name: "Shirt" })
  const inline = { currency: "usd", unit_amount: 100, product }
  const session = await runner.post("/v1/checkout_sessions", {
    mode: "payment",
    line_items: [{ price_data: inline, quantity: 1 }],
    success_url: "https://shop.example/thanks"
  })
  return { request, created, fingerprint: card.fingerprint as string, page: new URL(session.url).pathname }
}

type Furniture = Awaited<ReturnType<typeof furnish>>

/** Checks at a runner that everything is as it was, and that no request of the runners to one another fails. */
const check = async (runner: TillProcess, { fingerprint, page }: Furniture) => {
  for (const key of [KEYS.secretTest, KEYS.secretLive]) {
    const { id } = await runner.post("/v1/customers", { name: "Jenny" }, { key })
    assert.strictEqual((await runner.get(`/v1/customers/${id}`, { key })).name, "Jenny")
  }
  assert.strictEqual((await runner.post("/v1/payment_methods", CARD)).card.fingerprint, fingerprint)
  assert.strictEqual((await fetch(`${runner.baseUrl}${page}`)).status, 200)
}

const replays = async (runner: TillProcess, { created, request }: Furniture) => {
  const answer = await runner.request("POST", "/v1/webhook_endpoints", request)
  assert.strictEqual(answer.headers["idempotent-replayed"], "true")
  assert.deepStrictEqual([answer.status, answer.text], [created.status, created.text])
}

const stageIs = (runner: TillProcess, stage: string) =>
  until(`the roll is ${stage}`, async () => (await secret(runner, "status")).stage === stage, 120)

/** Lets two days of running time pass in the database. */
const passDays = (url: Redacted.Redacted) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const later = sql.literal(String(2 * DAY_MILLIS))
    yield* sql`UPDATE running_time SET at = at + ${later}, complement = ~(at + ${later})`
  }).pipe(Effect.provide(PgClient.layer({ url, maxConnections: 1 })), Effect.orDie)

const rollOnBoth = async (first: TillProcess, second: TillProcess, furniture: Furniture) => {
  assert.deepInclude(await secret(first, "status"), { stage: "settled", left: {} })
  const [old] = secretsIn(first)
  assert.deepInclude(await secret(first, "roll"), { done: "added", stage: "prepared" })
  assert.strictEqual(fs.statSync(fileOf(first)).mode & 0o777, 0o600)
  assert.strictEqual(secretsIn(first)[1], old)
  assert.strictEqual(secretsIn(first).length, 2)

  await fails(first.variables, "has not read the new secret", "secret", "roll")
  await restart(first)
  for (const runner of [first, second]) await check(runner, furniture)
  await fails(first.variables, "has not read the new secret", "secret", "roll")
  copy(first, second)
  await restart(second)
  assert.deepInclude(await secret(second, "status"), { stage: "prepared", read_by_all: true })
  assert.deepInclude(await secret(second, "roll"), { done: "rolled" })
}

/** The rewriting goes on in the runner that is left after a kill, and in the killed one after its restart. */
const survivesKill = async (first: TillProcess, second: TillProcess, furniture: Furniture) => {
  await first.kill("SIGKILL")
  await stageIs(second, "waiting")
  await first.start()
  for (const runner of [first, second]) {
    await check(runner, furniture)
    await replays(runner, furniture)
  }
  const { answers_end_in_seconds, done, left } = await secret(first, "roll")
  assert.deepStrictEqual([done, left], [null, {}])
  assert.isAbove(answers_end_in_seconds, DAY_MILLIS / 1000 - 600)
}

/** Restores the state from before a roll: it needs the secret of that time, which is no longer in the backup. */
const restoresEarlier = (backup: string, until: string, old: string) =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder()
    const [file, url] = [Path.join(folder, "secret"), Redacted.value(yield* freshDatabase)]
    const variables = { DATABASE_URL: url, TILL_DATA_DIR: folder, TILL_SECRET_FILE: file }
    yield* Effect.promise(async () => {
      const restore = ["restore", backup, "--until", until]
      await fails(variables, "is sealed with a secret that was rolled later", ...restore)
      const [newest, ...others] = fs.readFileSync(file, "utf8").split("\n")
      fs.writeFileSync(file, [newest, old, ...others].join("\n"), { mode: 0o600 })
      for (const args of [restore, ["verify"]]) {
        const { code, stderr } = await till(args, variables)
        assert.strictEqual(code, 0, stderr)
      }
    })
  })

describe("operation.roll: till secret roll", () => {
  it.live(
    "replaces the secret of two machines, which stay one service, and loses nothing",
    () =>
      Effect.gen(function* () {
        const { first, second, url } = yield* machines
        const there = yield* receiver(answersWith(200))
        const backup = Path.join(yield* temporaryFolder(), "backup")
        const furniture = yield* Effect.promise(() => furnish(first, there.url))
        const beforeRoll = new Date().toISOString()
        const [old] = secretsIn(first)
        yield* Effect.promise(async () => {
          await command(first, "backup", backup)
          const alone = fs.readFileSync(fileOf(first), "utf8")
          await rollOnBoth(first, second, furniture)
          await survivesKill(first, second, furniture)
          await command(first, "backup", backup)

          // A machine that was forgotten.
          const forgotten = `${fileOf(first)}-forgotten`
          fs.writeFileSync(forgotten, alone, { mode: 0o600 })
          const variables = { ...first.variables, TILL_SECRET_FILE: forgotten, PORT: "0" }
          await fails(variables, "TILL_SECRET_FILE: it is not the one that this database was written with", "serve")
        })
        yield* passDays(url)
        yield* Effect.promise(async () => {
          await stageIs(first, "complete")
          assert.include((await till(["doctor"], first.variables)).stdout, "till secret roll")
          assert.deepInclude(await secret(first, "roll"), { done: "removed", stage: "settled" })
          assert.strictEqual(secretsIn(first).length, 1)

          // One machine after the other: the new one reads what the other has sealed, and they speak to one another.
          for (const runner of [first, second]) {
            copy(first, runner === first ? second : first)
            await restart(runner)
            for (const one of [first, second]) await check(one, furniture)
          }
          const before = there.requests.length
          await second.post("/v1/customers", { name: "The last" })
          await until("the webhook has arrived", () => there.requests.length > before)
          const { body, headers } = there.requests.at(-1)!
          verifyWebhook({ body, header: headers.get("x-signature"), secret: furniture.created.body.secret })
          await command(first, "verify")
          assert.match(await command(first, "backup", backup), /^Backed up [1-9]/u)
          assert.deepInclude(await secret(first, "status"), { stage: "settled", left: {} })
        })
        yield* restoresEarlier(backup, beforeRoll, old!)
      }),
    TEST_MILLIS_MAX
  )
})

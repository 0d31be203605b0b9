/**
 * An installation that knows less than its gateway, after a restore (semantics processors.restored,
 * processors.reconcile, backups.restore.effects): real processes, a real backup, and the example gateway, whose journal
 * is the truth about the money.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as Path from "node:path"
import type { Discrepancy } from "../../src/payments/lifecycles/OperationDispatcher.ts"
import { exampleGateway } from "../processors/protocol/ExampleGateway.ts"
import type { Answer } from "../support/HttpExchange.ts"
import { parse } from "../support/PrometheusText.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { KEYS, launchOf, startTill, till, TillProcess, until } from "../support/TillProcess.ts"

const LIVE = { key: KEYS.secretLive }

/** The answer of `till processors reconcile --json`. */
interface Reconciled {
  readonly complete: boolean
  readonly discrepancies: ReadonlyArray<Discrepancy>
}

const pay = (server: TillProcess, more: object = {}, mode: object = LIVE): Promise<Answer> =>
  server.request("POST", "/v1/payment_intents", {
    ...mode,
    body: {
      amount: 2000,
      currency: "usd",
      confirm: true,
      payment_method_data: { type: "card", token: "tok_approve" },
      ...more
    }
  })

const post = async (server: TillProcess, path: string, body: object = {}) =>
  (await server.request("POST", `/v1/${path}`, { ...LIVE, body })).body

/** Runs a command; returns its standard output. */
const run = async (server: TillProcess, args: ReadonlyArray<string>, expected = 0, text?: string): Promise<string> => {
  const input = text === undefined ? undefined : { text, ends: true }
  const { code, stderr, stdout } = await till(args, server.variables, input)
  assert.strictEqual(code, expected, `${args.join(" ")}: ${stdout} ${stderr}`)
  return stdout
}

const unresolvedIn = async (server: TillProcess): Promise<number | undefined> => {
  const url = /Metrics are served at (\S+?)["\s]/u.exec(server.stderr)![1]!
  const family = parse(await (await fetch(url)).text()).get("till_operations_without_outcome")
  return family?.samples.find(({ labels }) => labels["mode"] === "live" && labels["state"] === "unresolved")?.value
}

/** The ids that the gateway was asked to give up. */
const abandonedAt = ({ changes }: { readonly changes: ReadonlyArray<{ readonly operation?: object }> }) =>
  changes.flatMap(({ operation }) =>
    operation !== undefined && !("body" in operation) && "state" in operation
      ? [(operation.state as { readonly id: string; readonly status: string }).id]
      : []
  )

describe("an installation that was restored from a backup", () => {
  it.live(
    "only asks its gateway, takes in what it has lost, names the rest, and then takes payments again",
    () =>
      Effect.gen(function* () {
        const gateway = yield* exampleGateway([`const livemode = GATEWAY_LIVEMODE === "true"`, `const livemode = true`])
        const server = yield* startTill({ variables: { TILL_METRICS_PORT: "0" } })
        const folder = yield* temporaryFolder()
        const { TILL_DATA_DIR: _, ...variables } = server.variables
        const restored = yield* Effect.acquireRelease(
          Effect.sync(() => new TillProcess(launchOf(Path.join(folder, "data"), server.port, variables))),
          (process) => Effect.promise(() => process.destroy())
        )
        yield* Effect.promise(async () => {
          const merchant = JSON.parse(await run(server, ["merchants", "list", "--json"])).merchants[0].id
          const adding = ["add", merchant, "--mode", "live", "--kind", "http", "--url", gateway.url]
          const credentials = JSON.stringify({ secret: Redacted.value(gateway.secret) })
          const added = await run(server, ["processors", ...adding, "--credentials", "-", "--json"], 0, credentials)
          const processor: string = JSON.parse(added).processors[0].id
          await gateway.restart({ TILL_WEBHOOKS: `${server.baseUrl}/processors/${processor}/webhooks` })

          const paid = (await pay(server)).body
          const held = (await pay(server, { capture_method: "manual" })).body
          const released = (await pay(server, { capture_method: "manual" })).body
          const card = await post(server, "payment_methods", { type: "card", token: "tok_approve" })
          // The gateway gets this call and never reads it: it is killed first.
          gateway.signal("SIGSTOP")
          const lost = (await pay(server, { payment_method: card.id, payment_method_data: undefined })).body
          assert.strictEqual(lost.status, "processing")
          await until("the metric counts the operation", async () => (await unresolvedIn(server)) === 1)
          // A new process only asks about the call; this one would repeat it once its connection is lost.
          await server.kill("SIGKILL")
          await server.start()
          const backup = Path.join(folder, "backup")
          await run(server, ["backup", backup])
          await gateway.restart()

          // The restored installation will know nothing of these.
          const refund = await post(server, "refunds", { payment_intent: paid.id, amount: 500 })
          await post(server, `payment_intents/${held.id}/capture`, { amount_to_capture: 1500 })
          await post(server, `payment_intents/${released.id}/cancel`)
          const later = (await pay(server)).body
          assert.deepStrictEqual([refund.status, later.status], ["succeeded", "succeeded"])
          const back = await fetch(`${gateway.url}/refunds/${paid.id}`, { method: "POST", body: "300" })
          const reference = await back.text()
          const refundsOf = async (of: TillProcess) =>
            (await of.get(`/v1/refunds?payment_intent=${paid.id}`, LIVE)).data as ReadonlyArray<{
              readonly amount: number
              readonly status: string
            }>
          await until("the gateway's own refund is one of Till's", async () => (await refundsOf(server)).length === 2)
          const ofGateway = (await server.get(`/v1/operations?payment_intent=${paid.id}&kind=refund`, LIVE)).data[0]
          assert.deepInclude(ofGateway, { reference, amount: 300, status: "final", resolved_by: "webhook" })
          await server.kill("SIGTERM")
          const before = abandonedAt(gateway)

          await run(restored, ["restore", backup])
          assert.match(await run(restored, ["verify"]), /^\d+ records of \d+ accounts: the journal is whole/)
          await restored.start()
          assert.include(restored.stderr, "The installation was restored from a backup")
          assert.include(restored.stderr, processor)
          const shown = JSON.parse(await run(restored, ["processors", "show", processor, "--json"])).processors[0]
          assert.strictEqual(shown.status, "paused")
          assert.isNumber(shown.restored_at)
          assert.match(
            (await till(["doctor"], restored.variables)).stdout,
            /restored from a backup and not yet compared/
          )
          const refused = await pay(restored)
          assert.deepStrictEqual([refused.status, refused.body.error.code], [500, "processor_unavailable"])
          const resuming = await till(["processors", "resume", processor], restored.variables)
          assert.include(resuming.stderr, `run till processors reconcile ${processor} first`)

          // The lost call is asked about, and neither sent again nor given up.
          const [operation] = JSON.parse(await run(restored, ["operations", "list", "--json"])).operations
          assert.strictEqual(operation.payment_intent, lost.id)
          await till(["operations", "check", operation.id], restored.variables)
          const asked = JSON.parse(await run(restored, ["operations", "show", operation.id, "--json"])).operations[0]
          assert.strictEqual(asked.status, "unresolved")
          assert.deepStrictEqual(abandonedAt(gateway), before)

          const reconciling = ["processors", "reconcile", processor]
          const found: Reconciled = JSON.parse(await run(restored, [...reconciling, "--json"], 1))
          assert.isTrue(found.complete)
          const results = found.discrepancies.map(({ kind, payment, result }) => [result, kind, payment])
          assert.sameDeepMembers(results, [
            ["taken_in", "refund", paid.id],
            ["taken_in", "refund", paid.id],
            ["taken_in", "capture", held.id],
            ["taken_in", "void", released.id],
            ["unknown_payment", "authorize", later.id]
          ])
          const payment = (id: string) => restored.get(`/v1/payment_intents/${id}`, LIVE)
          assert.deepInclude(await payment(held.id), { status: "succeeded", amount_received: 1500 })
          assert.strictEqual((await payment(released.id)).status, "canceled")
          assert.strictEqual((await payment(paid.id)).charges.data[0].amount_refunded, 800)
          assert.deepStrictEqual((await refundsOf(restored)).map(({ amount }) => amount).toSorted(), [300, 500])
          // The gateway has promised that the lost call never happens, so the payer can try again.
          assert.include(abandonedAt(gateway), operation.id)
          assert.strictEqual((await payment(lost.id)).status, "requires_payment_method")

          const again = await run(restored, reconciling, 1)
          assert.match(again, /^OPERATION.*\n\S+ +payment unknown +authorize +approved +2000 usd/u)
          await run(restored, ["processors", "resume", processor])
          await until("payments are taken again", async () => (await pay(restored)).status === 200)
          assert.match(await run(restored, ["verify"]), /^\d+ records of \d+ accounts: the journal is whole/)
        })
      }),
    400_000
  )
})

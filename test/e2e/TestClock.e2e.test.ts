/** The clock of a test environment, and the wipe of its data, on the real service and through its crashes. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { startTill, till, type TillProcess } from "../support/TillProcess.ts"

const DAY = 86_400

const seconds = () => Math.floor(Date.now() / 1000)

const restart = async (process: TillProcess): Promise<void> => {
  await process.kill("SIGKILL")
  await process.start()
}

const advance = async (process: TillProcess, days: number): Promise<number> =>
  (await process.post("/v1/test_helpers/clock/advance", { seconds: days * DAY })).now

const statusOf = async (process: TillProcess, path: string): Promise<string> => (await process.get(path)).status

/** An address without a listener, so that deliveries stay open. */
const ENDPOINT = { url: "http://127.0.0.1:9/hooks", enabled_events: ["*"] }

const outlastsCrashes = async (process: TillProcess): Promise<void> => {
  const hold = {
    amount: 2000,
    currency: "usd",
    confirm: true,
    payment_method: "pm_card_visa",
    capture_method: "manual"
  }
  const held = `/v1/payment_intents/${(await process.post("/v1/payment_intents", hold)).id}`
  await advance(process, 6)
  await restart(process)
  const created = (await process.post("/v1/customers")).created
  assert.isAtLeast(created, seconds() + 6 * DAY - 60)
  assert.isAtMost(created, seconds() + 6 * DAY)
  assert.strictEqual(await statusOf(process, held), "requires_capture")
  await advance(process, 2)
  assert.strictEqual(await statusOf(process, held), "canceled")
  const { data } = await process.get("/v1/events?type=payment_intent.canceled")
  assert.strictEqual(data.length, 1)
}

const LISTS = ["customers", "payment_intents", "charges", "webhook_endpoints", "events"]

const staysGone = async (process: TillProcess): Promise<void> => {
  const { id } = await process.post("/v1/webhook_endpoints", ENDPOINT)
  await process.post("/v1/customers")
  assert.strictEqual((await process.get(`/v1/webhook_endpoints/${id}/deliveries`)).data.length, 1)
  assert.strictEqual((await process.get("/v1/events?limit=1")).data[0].pending_webhooks, 1)
  const deleted = await process.request("DELETE", "/v1/test_helpers/data")
  assert.deepStrictEqual(deleted.body, { object: "test_helpers.data", deleted: true })
  await restart(process)
  for (const list of LISTS) assert.deepStrictEqual((await process.get(`/v1/${list}`)).data, [], list)
  assert.strictEqual((await process.request("GET", `/v1/webhook_endpoints/${id}/deliveries`)).status, 404)
  const customer = await process.post("/v1/customers")
  assert.isAtMost(customer.created, seconds())
  assert.deepStrictEqual((await process.get("/v1/customers")).data, [customer])
  assert.strictEqual((await process.get("/v1/events")).data[0].pending_webhooks, 0)
}

describe("a test environment", () => {
  it.live("keeps its clock and stays empty through crashes, and verifies", () =>
    Effect.flatMap(startTill(), (process) =>
      Effect.promise(async () => {
        await outlastsCrashes(process)
        await staysGone(process)
        assert.strictEqual((await process.kill("SIGTERM")).code, 0)
        const verified = await till(["verify"], process.variables)
        assert.strictEqual(verified.code, 0, verified.stderr)
      })
    )
  )
})

/** Operations on the dashboard (semantics dashboard.operations, operations.decide, dashboard.attention). */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Outcome } from "../../../src/payments/processing/RemoteProcessor.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { APPROVED, attend, begin, conclude, doubtful, run, WHY } from "../../support/fixtures/Operations.ts"
import { addProcessor } from "../../support/fixtures/Processors.ts"
import * as Configured from "../../../src/payments/processing/ConfiguredProcessors.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import * as OperationOutcomes from "../../../src/payments/lifecycles/OperationOutcomes.ts"
import * as PaymentIntents from "../../../src/payments/lifecycles/PaymentIntents.ts"
import { PROCESSOR } from "../../models/Operations.ts"
import { formTo, signedIn, type Tab } from "../People.ts"
import { textOf } from "../support.ts"

const LIST = "/dashboard/test/operations"
const UNKNOWN: Outcome = { kind: "unknown", why: "No answer." }

let server: MemoryTillWithPages
let owner: Tab
let word: Outcome = UNKNOWN
beforeAll(async () => {
  server = await start({ word: () => word })
  owner = await signedIn(server)
})
afterAll(() => server.close())

const submit = async (tab: Tab, id: string, end: string, entered: Readonly<Record<string, string>> = {}) => {
  const { action, values } = formTo(await tab.get(`${LIST}/${id}`), end)
  return await tab.post(action, { ...values, ...entered })
}
const decideOn = (id: string, entered: Readonly<Record<string, string>>) => submit(owner, id, "/decide", entered)

describe("dashboard.operations: the list", () => {
  it("shows operations by status and kind, and is linked from payments once there is one", async () => {
    assert.notInclude((await owner.get("/dashboard/test/payments")).text, "/dashboard/test/operations")
    assert.include(textOf(await owner.get(LIST)), "No operations yet.")
    const open = await begin(server)
    const decided = await doubtful(server)
    const idsOn = async (query: string): Promise<ReadonlyArray<string>> =>
      [...(await owner.get(`${LIST}${query}`)).text.matchAll(/operations\/(op_\w+)"/g)].map(([, id]) => id!)
    assert.deepStrictEqual(await idsOn(""), [decided.operation, open.operation])
    assert.deepStrictEqual(await idsOn("?status=decide"), [decided.operation])
    assert.deepStrictEqual(await idsOn("?status=open&kind=authorize"), [open.operation])
    assert.deepStrictEqual(await idsOn("?kind=refund"), [])
    assert.include(textOf(await owner.get(LIST)), "needs a decision")
    assert.include((await owner.get("/dashboard/test/payments")).text, '/operations">Operations</a>')
  })
})

describe("dashboard.operations: an operation", () => {
  it("says what happens next, and when", async () => {
    const made = await begin(server)
    const page = async () => textOf(await owner.get(`${LIST}/${made.operation}`))
    assert.include(await page(), "A request waits for the processor's answer".replace("'", "&#39;"))
    await attend(server, made)
    assert.match(
      await page(),
      /Till goes on asking\. Next at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \. If there is no answer until \d{4}/
    )
    await conclude(server, made, { kind: "pending", reference: null })
    assert.match(await page(), /The processor needs time\. Till asks whether there is an outcome\. Next at \d/)
    await conclude(server, made, APPROVED)
    assert.include(await page(), "The outcome is certain.")
    const { text } = await owner.get(`${LIST}/${made.operation}`)
    for (const end of ["/check", "/decide"]) assert.notInclude(text, `${made.operation}${end}"`)
  })

  it("shows its payment, each word about it, and who has decided", async () => {
    const made = await doubtful(server)
    const text = textOf(await owner.get(`${LIST}/${made.operation}`))
    assert.include(text, made.payment)
    assert.include(text, `contradictory the answer ${WHY}`)
    await decideOn(made.operation, { outcome: "did-not-happen", reason: "Not in the gateway's records" })
    const decided = textOf(await owner.get(`${LIST}/${made.operation}`))
    assert.include(decided, "did not happen a person")
    assert.include(decided, "Decided about the charge: it did not happen")
    assert.include(decided, "(owner) in the dashboard")
  })

  it("operations.adopted: of a refund that was made at the processor is named so, in the story and on the refund's page", async () => {
    const made = await begin(server)
    await conclude(server, made, APPROVED)
    const refund = { id: "rf_6735", isLost: false, kind: "refund", amount: 500, payment: made.payment } as const
    const outcome = { ...APPROVED, reference: "rf_6735", amount: 500 } as Outcome
    assert.isTrue(await run(server, OperationOutcomes.adopt(PROCESSOR, refund, outcome, "webhook")))
    const payment = await owner.get(`/dashboard/test/payments/${made.payment}`)
    assert.include(textOf(payment), "The refund was made at the processor")
    const [, id] = /refunds\/(ref_\w+)"/u.exec(payment.text)!
    const page = textOf(await owner.get(`/dashboard/test/refunds/${id}`))
    assert.match(page, /Operation op_\w+ Origin Made at the processor/)
  })

  it("is asked about at once, and the word counts", async () => {
    const made = await begin(server)
    await attend(server, made)
    const unanswered = await submit(owner, made.operation, "/check")
    assert.include(unanswered.text, "The processor was asked.")
    assert.include(textOf(unanswered), "no answer yet")
    word = APPROVED
    const answered = await submit(await signedIn(server, "support"), made.operation, "/check")
    word = UNKNOWN
    assert.include(textOf(answered), "confirmed asked again gw_6735")
    assert.strictEqual((await server.get(`/v1/payment_intents/${made.payment}`)).status, "succeeded")
    const { text } = await owner.get("/dashboard/test/team/audit?of=environment")
    assert.include(textOf({ text }), "had the processor asked about the operation")
  })
})

describe("operations.decide: a decision", () => {
  it.each<readonly [entered: Readonly<Record<string, string>>, complaint: string]>([
    [{ outcome: "", reason: "Seen in the records" }, "Choose what the processor's records say."],
    [{ outcome: "maybe", reason: "Seen in the records" }, "Choose what the processor's records say."],
    [
      { outcome: "happened", reason: "Seen in the records" },
      "The processor's reference must have 1 to 255 characters."
    ],
    [{ outcome: "did-not-happen", reference: "gw_1", reason: "Seen in the records" }, "Leave this empty if it has not"],
    [{ outcome: "did-not-happen", reason: "too short" }, "The reason must be a line of 10 to 500 characters."],
    [{ outcome: "did-not-happen", reason: "         x" }, "The reason must be a line of 10 to 500 characters."],
    [{ outcome: "did-not-happen", reason: "x".repeat(501) }, "The reason must be a line of 10 to 500 characters."]
  ])("is refused with %o", async (entered, complaint) => {
    const { operation } = await doubtful(server)
    const refused = await decideOn(operation, entered)
    assert.strictEqual(refused.status, 400)
    assert.include(textOf(refused).replaceAll("&#39;", "'"), complaint)
    assert.strictEqual((await server.get(`/v1/operations/${operation}`)).status, "decide")
  })

  it("that it happened settles the payment, and is told in the audit log", async () => {
    const { operation, payment } = await doubtful(server)
    const decision = { outcome: "happened", reference: "gw_99", reason: "Seen in the gateway's records" }
    const decided = await decideOn(operation, decision)
    assert.strictEqual(decided.status, 200)
    assert.include(decided.text, "Decided.")
    const shown = await server.get(`/v1/operations/${operation}`)
    assert.include(shown, { status: "final", resolved_by: "operator", reference: "gw_99" })
    assert.strictEqual((await server.get(`/v1/payment_intents/${payment}`)).status, "succeeded")
    const audit = textOf(await owner.get("/dashboard/test/team/audit?of=environment")).replaceAll("&#39;", "'")
    assert.include(
      audit.replaceAll(" :", ":"),
      `decided about the operation ${operation}: it happened, as gw_99: Seen in the gateway's records`
    )
  })

  it("is refused if the processor's word has come since the form was shown", async () => {
    const made = await doubtful(server)
    const { action, values } = formTo(await owner.get(`${LIST}/${made.operation}`), "/decide")
    await conclude(server, made, APPROVED)
    const late = await owner.post(action, { ...values, outcome: "did-not-happen", reason: "Not in the records" })
    assert.strictEqual(late.status, 400)
    assert.include(late.text, "about an operation that is to be decided")
    assert.strictEqual((await server.get(`/v1/payment_intents/${made.payment}`)).status, "succeeded")
  })

  it("is the owners' alone", async () => {
    const { operation } = await doubtful(server)
    for (const role of ["developer", "support"] as const) {
      const tab = await signedIn(server, role)
      const page = await tab.get(`${LIST}/${operation}`)
      assert.strictEqual(page.status, 200)
      assert.notInclude(page.text, "/decide")
      const entered = { outcome: "did-not-happen", reason: "Not in the records" }
      assert.strictEqual((await tab.post(`${LIST}/${operation}/decide`, entered)).status, 403)
    }
  })
})

describe("dashboard.history: the story of a payment", () => {
  const storyOf = async (payment: string) => {
    const page = await owner.get(`/dashboard/test/payments/${payment}`)
    const records = page.text.split('<ol class="timeline">')[1]!.split("<li class=").toReversed()
    const titles = records.flatMap((record) => [
      ...record.matchAll(/<div class="told">\s*<strong>([\s\S]*?)<\/strong>/g)
    ])
    return { page: textOf(page), titles: titles.map(([, title]) => title!.trim()) }
  }

  it("tells in plain words what the processor was asked, and what it said", async () => {
    const made = await begin(server, { capture_method: "manual" })
    const asked = await storyOf(made.payment)
    assert.deepStrictEqual(asked.titles, ["Payment of 20.00 USD created", "Asked the processor for the charge"])
    assert.match(asked.page, /Waiting for Asked the processor for the charge · waiting for the answer op_/)
    await attend(server, made)
    const unresolved = await storyOf(made.payment)
    assert.match(unresolved.page, /Asked the processor for the charge · no answer yet, asked again at \d{4}-/)
    // Looks without news are told together.
    for (let look = 0; look < 3; look++) await attend(server, made)
    assert.match((await storyOf(made.payment)).page, /Asked the processor about the charge again 3 times since \d{4}-/)
    await conclude(server, made, APPROVED)
    assert.deepStrictEqual((await storyOf(made.payment)).titles, [
      "Payment of 20.00 USD created",
      "Asked the processor for the charge",
      "Payment of 20.00 USD is processing",
      "The processor has not answered about the charge yet",
      "Asked the processor about the charge again",
      "Authorized 20.00 USD, not captured yet"
    ])
    assert.notInclude((await storyOf(made.payment)).page, "Waiting for")
    await run(server, PaymentIntents.cancel(made.payment, {}))
    assert.strictEqual((await storyOf(made.payment)).titles.at(-1), "Asked the processor for the release")
  })

  it("tells of a decision that is needed, and of the decision", async () => {
    const made = await doubtful(server)
    const { page, titles } = await storyOf(made.payment)
    assert.strictEqual(titles.at(-1), "Somebody has to decide about the charge")
    assert.include(page, WHY)
    await decideOn(made.operation, { outcome: "happened", reference: "gw_1", reason: "Seen in the records" })
    assert.deepStrictEqual((await storyOf(made.payment)).titles.slice(-2), [
      "Payment of 20.00 USD succeeded",
      "Decided about the charge: it happened"
    ])
    const shown = async () => textOf(await owner.get(`${LIST}/${made.operation}`))
    assert.match(await shown(), /Till asks the processor once a day to confirm it\. Next at \d{4}-/)
    await conclude(server, made, APPROVED)
    assert.strictEqual(
      (await storyOf(made.payment)).titles.at(-1),
      "The processor confirms the decision about the charge"
    )
    assert.include(await shown(), "The outcome is certain.")
  })

  it("tells of a refusal, and of what was not carried out", async () => {
    const refused = await begin(server)
    await conclude(server, refused, { kind: "refused", param: null, code: "unknown_token", message: "No such token." })
    assert.strictEqual((await storyOf(refused.payment)).titles.at(-1), "The charge: refused")
    const lost = await begin(server)
    await conclude(server, lost, { kind: "not_executed", why: "429", retryAfterMillis: null })
    assert.strictEqual((await storyOf(lost.payment)).titles.at(-1), "The charge: did not happen")
  })
})

describe("dashboard.attention: the home page", () => {
  it("names operations without an outcome with their age, and processors that take no payments", async () => {
    const shop = await start({ merchantName: "Other" })
    try {
      const tab = await signedIn(shop)
      const home = async (of: Tab = tab) => textOf(await of.get("/dashboard/test"))
      assert.notInclude(await home(), "Needs attention")
      await attend(shop, await begin(shop))
      await doubtful(shop)
      await shop.post("/v1/test_helpers/clock/advance", { seconds: 7200 })
      const text = await home()
      assert.include(
        text,
        "One operation to decide The processor has given no certain word. The oldest began 2 hours ago."
      )
      assert.include(
        text,
        "One operation without an answer Till goes on asking the processor. The oldest began 2 hours"
      )
      assert.include((await tab.get("/dashboard/test")).text, '/operations?status=decide"')
      const processor = await addProcessor(shop)
      assert.notInclude(await home(), "paused")
      await Effect.runPromise(Effect.orDie(shop.accounts.run(INSTALLATION, Configured.take(processor, "pause"))))
      assert.include(await home(), "The processor is paused Acme takes no payments until it is resumed.")
      assert.include((await tab.get("/dashboard/test")).text, `/developers/processors/${processor}"`)
      const support = await signedIn(shop, "support")
      assert.include(await home(support), "The processor is paused")
      assert.notInclude((await support.get("/dashboard/test")).text, "/developers/processors/")
    } finally {
      await shop.close()
    }
  })
})

/** Notes on a payment (semantics dashboard.notes). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { NOTES_MAX } from "../../../src/domain/PaymentNote.ts"
import * as PaymentNotes from "../../../src/payments/lifecycles/PaymentNotes.ts"
import { basic } from "../../support/HttpExchange.ts"
import { formTo, signedIn, type Tab } from "../People.ts"
import { openDashboard, textOf } from "../support.ts"

const { server, tab: owner } = await openDashboard()
const [author, colleague] = [await signedIn(server, "support"), await signedIn(server, "developer")]

const account = `${server.merchantId}:test`
const pay = async (): Promise<string> =>
  (await server.post("/v1/payment_intents", { amount: 4321, currency: "usd", payment_method: "pm_card_visa" })).id
const pageOf = (id: string) => `/dashboard/test/payments/${id}`
const add = async (tab: Tab, id: string, text: string) => {
  const { action, values } = formTo(await tab.get(pageOf(id)), "/notes")
  return await tab.post(action, { ...values, text })
}
const notes = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/<p class="note">([^<]*)</g)].map(([, it]) => it!)

describe("a note on a payment", () => {
  it("is added by everybody of the team, and shown in the payment's history with its author", async () => {
    const id = await pay()
    const before = JSON.stringify(await server.get(`/v1/payment_intents/${id}`))
    const events = (await server.get("/v1/events?limit=100")).data.length
    const added = await add(author, id, "The payer called:\n<b>wants</b> a refund.")
    assert.include(added.text, "Note added.")
    assert.deepStrictEqual(notes(added.text), ["The payer called:\n&lt;b&gt;wants&lt;/b&gt; a refund."])
    assert.match(textOf(added), /Note Delete .* by a teammate \(support\) in the dashboard/)
    await add(colleague, id, "Refunded tomorrow.")
    assert.deepStrictEqual(notes((await owner.get(pageOf(id))).text).length, 2)
    assert.match(textOf(await owner.get(pageOf(id))), /Refunded tomorrow\. .*The payer called:.*Payment of 43\.21 USD/)
    // The API has no notes.
    assert.strictEqual(JSON.stringify(await server.get(`/v1/payment_intents/${id}`)), before)
    assert.strictEqual((await server.get("/v1/events?limit=100")).data.length, events)
    const audit = textOf(await owner.get("/dashboard/test/team/audit?of=environment&action=payment_note.create"))
    assert.include(audit, id)
    assert.notInclude(audit, "Refunded tomorrow")
  })

  it("has no card numbers, and neither has the journal", async () => {
    const id = await pay()
    const added = await add(author, id, "Said 4242 4242 4242 4242, expires 12/34")
    assert.deepStrictEqual(notes(added.text), ["Said ****, expires 12/34"])
    assert.notInclude(await server.journalOfAll(), "4242 4242 4242 4242")
  })

  it("is a text of up to 2,000 characters, and one of at most 50", async () => {
    const id = await pay()
    for (const text of ["", " \n ", "x".repeat(2001)]) {
      const refused = await add(author, id, text)
      assert.strictEqual(refused.status, 400)
      assert.match(refused.text, /class="error" id="[^"]*-text-error">This must be a text of 1 to 2000 characters\.</)
    }
    assert.deepStrictEqual(notes((await add(author, id, "ü".repeat(2000))).text), ["ü".repeat(2000)])
    const more = Effect.forEach(Array.from({ length: NOTES_MAX - 1 }), () =>
      PaymentNotes.add({ id: "per_x", email: null }, id, "One more")
    )
    await Effect.runPromise(Effect.orDie(server.accounts.run(account, more)))
    const refused = await add(author, id, "Too many")
    assert.strictEqual(refused.status, 400)
    assert.include(refused.text, "This must be one of at most 50 notes of a payment.")
    assert.strictEqual((await add(author, "pi_none", "x").catch(() => ({ status: 404 }))).status, 404)
  })

  it("is deleted by its author or an owner, and leaves the page", async () => {
    const id = await pay()
    for (const text of ["First", "Second", "Third"]) await add(author, id, text)
    const page = await colleague.get(pageOf(id))
    assert.throws(() => formTo(page, "/delete"))
    const form = formTo(await author.get(pageOf(id)), "/delete")
    // A colleague's own token does not help.
    const own = await add(colleague, id, "Mine")
    const { values } = formTo(own, "/delete")
    assert.strictEqual((await colleague.post(form.action, values)).status, 403)
    const deleted = await author.post(form.action, form.values)
    assert.include(deleted.text, "Note deleted.")
    assert.deepStrictEqual(notes(deleted.text), ["Mine", "Second", "First"])
    assert.include((await author.post(form.action, form.values)).text, "Note deleted.")
    const byOwner = formTo(await owner.get(pageOf(id)), "/delete")
    assert.deepStrictEqual(notes((await owner.post(byOwner.action, byOwner.values)).text), ["Second", "First"])
    assert.notInclude((await owner.get(pageOf(id))).text, "Third")
    const audit = textOf(await owner.get("/dashboard/test/team/audit?of=environment&action=payment_note.delete"))
    assert.strictEqual(audit.match(/note_\w+/g)?.length, 2)
    // A note of another payment is none of this one's.
    const other = await pay()
    await add(author, other, "Elsewhere")
    const { action, values: sent } = formTo(await author.get(pageOf(other)), "/delete")
    assert.strictEqual((await author.post(action.replace(other, id), sent)).status, 403)
    await Effect.runPromise(
      Effect.flip(server.accounts.run(account, PaymentNotes.remove(id, /note_\w+/.exec(action)![0])))
    )
  })

  it("makes room for another one when it is deleted, and goes with the test data", async () => {
    const id = await pay()
    const full = Effect.forEach(Array.from({ length: NOTES_MAX }), () =>
      PaymentNotes.add({ id: "per_x", email: null }, id, "Old")
    )
    const made = await Effect.runPromise(Effect.orDie(server.accounts.run(account, full)))
    await Effect.runPromise(Effect.orDie(server.accounts.run(account, PaymentNotes.remove(id, made[0]!.id))))
    assert.include((await add(author, id, "New")).text, "Note added.")
    const headers = { authorization: basic(server.secretTest) }
    const wiped = await fetch(`${server.url}/v1/test_helpers/data`, { method: "DELETE", headers })
    assert.strictEqual(wiped.status, 200)
    assert.isUndefined(await Effect.runPromise(server.accounts.read(account, made[1]!.id)))
  })
})

/** The audit log in sentences, for every action of the dashboard (semantics dashboard.audit). */
import { assert, describe, it } from "@effect/vitest"
import type { AuditEntry } from "../../../src/domain/AuditEntry.ts"
import "../../../src/dashboard/Dashboard.ts"
import { actionNames } from "../../../src/dashboard/frame/Page.ts"
import type { Visit } from "../../../src/dashboard/frame/Visit.ts"
import { actionTitle, hasSentence, sentenceOf } from "../../../src/dashboard/team/AuditSentences.ts"
import { html } from "../../../src/html/Html.ts"
import { textIn } from "../support.ts"

const visit = { to: (path: string) => path } as Visit

const ENTRY: AuditEntry = {
  id: "aud_1",
  object: "audit_entry",
  action: "",
  subject: null,
  detail: null,
  person: "per_1",
  email: null,
  role: "owner",
  merchant_id: "mer_1",
  request: null,
  created: 0
}
const textOf = (entry: Partial<AuditEntry>) =>
  textIn(html`${sentenceOf(visit, { ...ENTRY, ...entry })}`.text).replaceAll(/ (?=[,:;)])|(?<=\() /g, "")

describe("the audit log", () => {
  it("dashboard.audit: has a sentence for every action, and a name of its own in the filter", () => {
    assert.deepStrictEqual(
      actionNames().filter((name) => !hasSentence(name)),
      []
    )
    const titles = actionNames().map(actionTitle)
    assert.strictEqual(new Set(titles).size, titles.length)
    for (const action of actionNames()) {
      for (const detail of [null, "x & y"]) {
        assert.match(textOf({ action, detail, subject: "pi_1" }), /^[a-z][^[\]{}]+$/, action)
      }
    }
  })

  it.each<readonly [Partial<AuditEntry>, string]>([
    [{ action: "refund.create", subject: "pi_1", detail: "1.23 USD" }, "refunded 1.23 USD of the payment pi_1"],
    [{ action: "payment_intent.cancel", subject: "pi_1" }, "canceled the payment pi_1"],
    [
      { action: "payment_intent.cancel", subject: "pi_1", detail: "fraudulent" },
      "canceled the payment pi_1 (fraudulent)"
    ],
    [{ action: "person.remove", subject: "per_2", detail: "a@b.c" }, "removed a@b.c, per_2 from the team"],
    [{ action: "product.create", subject: "prod_1", detail: "<b>" }, "created the product prod_1 (&lt;b&gt;)"],
    [{ action: "note.create", subject: "pi_1", detail: "Hello" }, "did “note create” to pi_1: Hello"]
  ])("dashboard.audit: tells %j as a sentence", (entry, sentence) => {
    assert.strictEqual(textOf(entry), sentence)
  })
})

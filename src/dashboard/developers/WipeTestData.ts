/** Deletes all data of the test environment (semantics §8.27, 9.79). */
import { Effect, Layer } from "effect"
import { html } from "../../html/Html.ts"
import { requireHere } from "../../html/Routing.ts"
import * as TestHelpers from "../../payments/TestHelpers.ts"
import { form } from "../frame/Form.ts"
import { section } from "../frame/Values.ts"
import type { Show } from "../frame/Page.ts"
import { action, Invalid, page } from "../frame/Page.ts"

const show: Show = (visit, _, problem) =>
  Effect.succeed(
    visit.livemode
      ? undefined
      : {
          title: "Wipe test data",
          section: "Developers",
          back: ["/developers", "Developers"],
          content: section("Everything in the test environment goes", [
            html`<ul>
              <li>Payments, customers, products, prices, checkout sessions, events and webhook endpoints.</li>
              <li>Idempotency keys: a request that is repeated afterwards is done again.</li>
              <li>The environment's part of the audit log; that you have wiped it stays in the team's.</li>
              <li>The test clock is put back. API keys, people, settings and live mode stay as they are.</li>
            </ul>`,
            form({
              visit,
              action: "/developers/wipe/data",
              submit: "Wipe test data",
              tone: "danger",
              problem,
              content: (fields) =>
                fields.text({
                  name: "name",
                  label: `Enter ${visit.merchant.name}, the name of the merchant`,
                  required: true
                })
            })
          ])
        }
  )

const wipe = action({
  name: "test_data.wipe",
  right: "build",
  page: "/developers/wipe",
  path: "/developers/wipe/data",
  show,
  notice: "The test data is wiped.",
  confirms: () => true,
  prepare: Effect.fnUntraced(function* (visit, _, values) {
    if (visit.livemode || (values.get("name") ?? "").trim() !== visit.merchant.name.trim()) {
      return new Invalid({ name: `This is not ${visit.merchant.name}. Nothing was done.` })
    }
    // The audit entry is written first, so the request must already be on the account's process.
    yield* requireHere(visit.account)
    return { entered: {}, subject: visit.account, auditedBefore: true, command: TestHelpers.deleteData }
  })
})

export const layer = Layer.merge(page("/developers/wipe", "build", show), wipe)

/** Deletes all data of the test environment (semantics test_helpers.data, dashboard.wipe). */
import { Effect, Layer } from "effect"
import { html } from "../../html/Html.ts"
import { requireHere } from "../../html/Routing.ts"
import * as TestHelpers from "../../payments/TestHelpers.ts"
import { form } from "../frame/Form.ts"
import { section } from "../frame/Values.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"

const show: Show = (visit, _, problem) =>
  Effect.succeed(
    visit.livemode
      ? undefined
      : {
          title: "Wipe test data",
          section: "Developers",
          back: ["/developers", "Developers"],
          content: section("This deletes everything in the test environment", [
            html`<ul>
              <li>
                Payments, customers, products, prices, checkout sessions, payment links, events and webhook endpoints.
              </li>
              <li>Idempotency keys: a repeated request will run again.</li>
              <li>The environment's audit log. The wipe itself is recorded in the team's audit log.</li>
              <li>The test clock is reset. API keys, people, settings and live mode are not affected.</li>
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
                  label: `Enter the merchant's name to confirm: ${visit.merchant.name}`,
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
  notice: "Test data wiped.",
  confirms: () => true,
  prepare: Effect.fnUntraced(function* (visit, _, values) {
    if (visit.livemode || (values.get("name") ?? "").trim() !== visit.merchant.name.trim()) {
      return new Invalid({ name: `This is not ${visit.merchant.name}. Nothing was deleted.` })
    }
    // The audit entry is written first, so the request must already be on the account's process.
    yield* requireHere(visit.account)
    return { entered: {}, subject: visit.account, auditedBefore: true, command: TestHelpers.deleteData }
  })
})

export const layer = Layer.merge(page("/developers/wipe", "build", show), wipe)

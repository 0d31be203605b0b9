/** The page for developers: the API's address, its default version, and an example request. */
import { Effect, Layer, Schema } from "effect"
import { API_VERSIONS, ApiVersion } from "../../domain/ApiVersion.ts"
import { ResourceMissing } from "../../domain/Errors.ts"
import { html } from "../../html/Html.ts"
import { INSTALLATION } from "../../payments/shared/AccountIds.ts"
import * as Merchants from "../../payments/merchants/Merchants.ts"
import { form } from "../frame/Form.ts"
import { code, facts, section, time } from "../frame/Values.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

/** A payment as a shell command. */
const example = ({ mode, publicUrl }: Visit): string =>
  `curl ${publicUrl}/v1/payment_intents -u sk_${mode}_…: \\
  -H 'Content-Type: application/json' -H 'Idempotency-Key: first' \\
  -d '{"amount": 4321, "currency": "usd", "payment_method": "pm_card_visa", "confirm": true}'`

const buttonTo = (visit: Visit, path: `/${string}`, name: string) =>
  html`<a class="button" href="${visit.to(path)}">${name}</a>`

const show: Show = (visit, _, problem) => {
  const { merchant, publicUrl } = visit
  const version = visit.may("build")
    ? form({
        visit,
        action: "/developers/version",
        submit: "Change",
        problem,
        content: (fields) =>
          fields.choice({
            name: "version",
            label: "Default version",
            value: merchant.api_version,
            options: API_VERSIONS.map((version) => [version, version]),
            hint: "Applies to requests without a version header, and to new events."
          })
      })
    : html`<p>${merchant.api_version}</p>`
  return Effect.succeed({
    title: "Developers",
    section: "Developers",
    aside: html`<div class="buttons">
      ${visit.may(visit.livemode ? "live_keys" : "build") && buttonTo(visit, "/developers/keys", "API keys")}
      ${visit.may("processors") && buttonTo(visit, "/developers/processors", "Processors")}
      ${visit.may("build") && buttonTo(visit, "/developers/mail", "Mail")}
      ${visit.may("build") && !visit.livemode && buttonTo(visit, "/developers/clock", "Test clock")}
      ${visit.may("build") && !visit.livemode && buttonTo(visit, "/developers/trigger", "Trigger an event")}
      ${visit.may("build") && !visit.livemode && buttonTo(visit, "/developers/wipe", "Wipe test data")}
      ${visit.may("build") && buttonTo(visit, "/developers/installation", "Installation")}
    </div>`,
    content: [
      section("Default API version", version),
      section(
        "API access",
        facts([
          ["Base URL", code(`${publicUrl}/v1`)],
          ["Merchant ID", code(merchant.id)],
          ["Created", time(merchant.created)],
          [
            "Documentation",
            html`<a href="${publicUrl}/docs">API reference</a>, <a href="${publicUrl}/docs/errors">errors</a>`
          ]
        ])
      ),
      section(
        "Make a payment",
        html`<pre class="copy" tabindex="0" role="region" aria-label="Commands"><code>${example(visit)}</code></pre>`
      )
    ]
  })
}

const setVersion = action({
  name: "merchant.set_version",
  right: "build",
  page: "/developers",
  path: "/developers/version",
  show,
  notice: "Default version changed.",
  prepare: ({ merchant }, _, values) => {
    const version = values.get("version")
    if (!Schema.is(ApiVersion)(version)) {
      return Effect.succeed(new Invalid({ version: `Unknown version. Available: ${API_VERSIONS.join(", ")}.` }))
    }
    return Effect.succeed({
      account: INSTALLATION,
      entered: { version },
      subject: merchant.id,
      detail: version,
      command: Effect.flatMap(Merchants.setVersion(merchant.id, version), (changed) =>
        changed === undefined
          ? Effect.fail(new ResourceMissing({ kind: "Merchant", id: merchant.id, param: "id" }))
          : Effect.succeed(changed)
      )
    })
  }
})

export const layer = Layer.merge(page("/developers", "see", show), setVersion)

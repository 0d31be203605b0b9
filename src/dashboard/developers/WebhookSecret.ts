/** The signing secret of an endpoint, which is shown once: when the endpoint is made, and when its secret is rolled. */
import { Redacted } from "effect"
import { Revealed } from "../../http/OneTimeSecrets.ts"
import type { WithSecret } from "../../payments/WebhookEndpoints.ts"
import { code, facts } from "../frame/Values.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import type { Screen } from "../frame/Shell.ts"
import type { Visit } from "../frame/Visit.ts"

/** Whoever sends the form again sees it again, as over the API (semantics W2). */
export const revealed = ({ secret, value }: WithSecret) =>
  new Revealed(value, { secret: Redacted.value(secret) }, "all")

export const secretScreen =
  (visit: Visit) =>
  (endpoint: { readonly id?: string } & Readonly<Record<string, unknown>>): Screen => ({
    title: "The signing secret",
    section: "Webhooks",
    back: [`/webhooks/${endpoint.id!}`, "To the endpoint"],
    notice: "This secret is shown now and never again. Whoever receives webhooks checks their signatures with it.",
    content: facts([
      ["Secret", code(String(endpoint["secret"]))],
      ["Endpoint", objectLink(visit, endpoint.id!)],
      ["URL", String(endpoint["url"])]
    ])
  })

/** The contract for machines at `/openapi.json`, and for people at `/docs`. Without authentication, outside of /v1. */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import * as Document from "../../api/openapi/Document.ts"
import { PaymentsConfig } from "../../payments/PaymentsConfig.ts"
import * as DocumentationPage from "./DocumentationPage.ts"
import { withoutSlash } from "../../html/Routing.ts"

/** The document does not change while the service runs, but a new version of the service may bring another one. */
const CACHING = "public, max-age=300"

export const layer: Layer.Layer<never, never, HttpRouter.HttpRouter | PaymentsConfig> = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const { publicUrl } = yield* PaymentsConfig
    // Made when it is first asked for: most starts are for payments.
    let made: { readonly json: string; readonly page: string } | undefined
    const documentation = Effect.sync(() => {
      if (made === undefined) {
        const document = Document.make(publicUrl)
        made = { json: JSON.stringify(document), page: DocumentationPage.render(document) }
      }
      return made
    })
    yield* router.add(
      "GET",
      "/openapi.json",
      Effect.map(documentation, ({ json }) =>
        HttpServerResponse.text(json, { contentType: "application/json", headers: { "cache-control": CACHING } })
      )
    )
    yield* router.add("GET", "/docs", ({ url }) =>
      Effect.map(
        documentation,
        ({ page }) =>
          withoutSlash(url) ??
          HttpServerResponse.text(page, {
            contentType: "text/html; charset=utf-8",
            headers: {
              "cache-control": CACHING,
              "content-security-policy": DocumentationPage.contentSecurityPolicy,
              "referrer-policy": "no-referrer"
            }
          })
      )
    )
  })
)

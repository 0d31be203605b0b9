/** Serves the API's contract as data at `/openapi.json` and as a page at `/docs`, without authentication. */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import * as Document from "../../api/openapi/Document.ts"
import { PaymentsConfig } from "../../payments/PaymentsConfig.ts"
import * as DocumentationPage from "./DocumentationPage.ts"
import { withoutSlash } from "../../html/Routing.ts"

/** Short, because a new version of Till may serve another document. */
const CACHING = "public, max-age=300"

export const layer: Layer.Layer<never, never, HttpRouter.HttpRouter | PaymentsConfig> = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const { publicUrl } = yield* PaymentsConfig
    // Rendered on the first request, because most processes never serve it.
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

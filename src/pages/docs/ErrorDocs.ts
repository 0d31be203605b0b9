/**
 * Serves the error documentation: `GET {docs_url}/errors/<code>` for every code that the API can answer with, and an
 * index. The pages are the same for everybody, so browsers and proxies may keep them for a few minutes.
 */
import { Effect, Layer } from "effect"
import type { HttpServerResponse } from "effect/http"
import { HttpConfig } from "../../server/HttpConfig.ts"
import { INDEX_PATH, renderCode, renderIndex, renderUnknown } from "./ErrorDocsPage.ts"
import { examples } from "./ErrorExamples.ts"
import type { Html } from "../../html/Html.ts"
import { page } from "../../html/PageResponse.ts"
import { route } from "../../html/Routing.ts"

const shown = (document: Html): HttpServerResponse.HttpServerResponse =>
  page(document, { cacheControl: "public, max-age=300" })

export const layer = Layer.unwrap(
  Effect.map(HttpConfig, ({ docsUrl }) => {
    const all = examples(docsUrl)
    return Layer.mergeAll(
      route("GET", INDEX_PATH, () => Effect.sync(() => shown(renderIndex(all)))),
      route("GET", `${INDEX_PATH}/:code`, (_, { code = "" }) =>
        Effect.sync(() => {
          const document = renderCode(all, code)
          return document === undefined ? page(renderUnknown(), { status: 404 }) : shown(document)
        })
      )
    )
  })
)

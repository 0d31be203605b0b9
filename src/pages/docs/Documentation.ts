/**
 * Serves the documentation, without authentication: `/docs` and the pages below it, each as Markdown too, the OpenAPI
 * document, a Postman collection and `/llms.txt`. Pages are public and contain no merchant's data, so browsers and
 * proxies may cache them for a few minutes.
 */
import { Effect, Layer } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Html } from "../../html/Html.ts"
import { page } from "../../html/PageResponse.ts"
import { queryOf, withoutSlash } from "../../html/Routing.ts"
import { PaymentsConfig } from "../../payments/shared/PaymentsConfig.ts"
import { HttpConfig } from "../../server/HttpConfig.ts"
import type { Site } from "./Site.ts"

/** Short, because a new version of Till may serve other pages. */
const CACHING = "public, max-age=300"

type Answer = (site: Site, request: HttpServerRequest.HttpServerRequest) => HttpServerResponse.HttpServerResponse

const text =
  (contentType: string, of: (site: Site) => string): Answer =>
  (site) =>
    HttpServerResponse.text(of(site), { contentType, headers: { "cache-control": CACHING } })

const rendered = (document: Html, status: 200 | 404): HttpServerResponse.HttpServerResponse =>
  page(document, { status, cacheControl: status === 200 ? CACHING : "no-store" })

/** The page at the request's path, or its Markdown with `.md` at the end. */
const pageAt: Answer = (site, { url }) => {
  const path = url.split("?", 1)[0]!
  if (!path.endsWith(".md")) {
    const document = site.html(path)
    return document === undefined ? rendered(site.notFound(path), 404) : rendered(document, 200)
  }
  const markdown = site.markdown(path.slice(0, -".md".length))
  if (markdown === undefined) return HttpServerResponse.text("There is no page at this address.\n", { status: 404 })
  return text("text/markdown; charset=utf-8", () => markdown)(site, {} as HttpServerRequest.HttpServerRequest)
}

const ROUTES: Readonly<Record<`/${string}`, Answer>> = {
  "/openapi.json": text("application/json", (site) => site.openApi()),
  "/llms.txt": text("text/plain; charset=utf-8", (site) => site.llms()),
  "/docs.md": pageAt,
  "/docs/postman.json": text("application/json", (site) => site.postman()),
  "/docs/search.json": text("application/json", (site) => site.searchIndex()),
  "/docs/search": (site, request) => page(site.search(queryOf(request).get("q") ?? ""), { cacheControl: "no-store" }),
  "/docs/*": pageAt
}

export const layer: Layer.Layer<never, never, HttpRouter.HttpRouter | PaymentsConfig | HttpConfig> = HttpRouter.use(
  (router) =>
    Effect.gen(function* () {
      const { publicUrl } = yield* PaymentsConfig
      const { docsUrl } = yield* HttpConfig
      // Loaded and made on the first request, because most processes never serve it.
      const site = yield* Effect.cached(
        Effect.map(
          Effect.promise(() => import("./Site.ts")),
          ({ make }) => make({ publicUrl, docsUrl })
        )
      )
      yield* Effect.forEach(Object.entries(ROUTES), ([path, answer]) =>
        router.add("GET", path as `/${string}`, (request) =>
          Effect.map(site, (made) => withoutSlash(request.url) ?? answer(made, request))
        )
      )
    })
)

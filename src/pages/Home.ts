/**
 * Serves `GET /` (semantics pages.not_found): a page for browsers, and the usual 404 for other clients. The page says
 * what Till is, whether live payments are on, where the documentation is, and how to try a checkout. It shows no
 * merchant's data.
 */
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { PaymentsConfig } from "../payments/PaymentsConfig.ts"
import { html, type Html } from "../html/Html.ts"
import { layout } from "../html/Layout.ts"
import { page } from "../html/PageResponse.ts"

interface HomePage {
  /** Till's public address without a trailing slash. */
  readonly publicUrl: string
  /** True if live cards can be charged. */
  readonly takesLiveCards: boolean
}

/** Shell commands that create a checkout session in test mode; only the key has to be filled in. */
export const tryOut = (publicUrl: string): string =>
  `export TILL_API_KEY=sk_test_…

product=$(curl -s ${publicUrl}/v1/products -u "$TILL_API_KEY:" \\
  -H 'Content-Type: application/json' \\
  -H "Idempotency-Key: product-$(date +%s)" \\
  -d '{"name": "House Espresso", "description": "Dark roast, 1 kg"}' |
  grep -o 'prod_[0-9A-Za-z]*' | head -n 1)

curl -s ${publicUrl}/v1/checkout_sessions -u "$TILL_API_KEY:" \\
  -H 'Content-Type: application/json' \\
  -H "Idempotency-Key: session-$(date +%s)" \\
  -d '{"mode": "payment",
       "success_url": "${publicUrl}/",
       "line_items": [{"quantity": 2, "price_data": {
         "currency": "usd", "unit_amount": 1200, "product": "'$product'"}}]}' |
  grep -o '"url":"[^"]*"'`

const render = ({ publicUrl, takesLiveCards }: HomePage): Html =>
  layout({
    title: "Till",
    kind: "documentation",
    depth: 0,
    content: html`<main>
      <h1>Till</h1>
      <p>This is Till, a payments service: products, checkouts, payments and refunds, over an API.</p>
      <dl>
        <dt>Address</dt>
        <dd><code>${publicUrl}</code></dd>
        <dt>Test mode</dt>
        <dd>On, for keys that begin with <code>sk_test_</code> and <code>pk_test_</code>. No real money moves.</dd>
        <dt>Live mode</dt>
        <dd>${takesLiveCards ? "On." : "Off: no card processor is configured."}</dd>
      </dl>
      <h2>Read on</h2>
      <ul>
        <li><a href="./docs">API reference</a>, also as <a href="./openapi.json">OpenAPI</a></li>
        <li><a href="./docs/errors">Errors</a>, with causes and fixes</li>
        <li><a href="./healthz">Health</a>, and <a href="./readyz">readiness</a> of the storage</li>
      </ul>
      <h2>Try a checkout</h2>
      <p>
        Use the secret test key that Till printed at its first start. Create a session and open the URL in the response.
        The page offers test cards.
      </p>
      <pre tabindex="0" role="region" aria-label="Commands"><code>${tryOut(publicUrl)}</code></pre>
    </main>`
  })

/** Browsers accept `text/html` explicitly; other clients accept anything, or JSON. */
const wantsHtml = (accept: string | undefined): boolean =>
  (accept ?? "").split(",").some((range) => /^\s*text\/html\s*(?:;(?!\s*q=0(?:\.0*)?\s*$)|$)/i.test(range))

const isHome = ({ headers, method, url }: HttpServerRequest.HttpServerRequest): boolean =>
  (method === "GET" || method === "HEAD") && /^\/(?:\?|$)/.test(url) && wantsHtml(headers["accept"])

/** A middleware, because the router has no route for `/` and answers other clients with a 404. */
export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const { liveProcessor, publicUrl } = yield* PaymentsConfig
    const home = render({ publicUrl, takesLiveCards: liveProcessor !== null })
    yield* router.addGlobalMiddleware((routed) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
        isHome(request) ? Effect.sync(() => HttpServerResponse.setHeader(page(home), "vary", "accept")) : routed
      )
    )
  })
)

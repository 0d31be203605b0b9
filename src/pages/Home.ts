/**
 * Serves `GET /` (semantics pages.home): a page for browsers, and a line of text for other clients, such as monitors.
 * The page shows what Till is, whether live payments are on, where the dashboard and the documentation are, and how to
 * try a checkout, by a click where only this machine reaches Till. It shows no merchant's data.
 */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { PaymentsConfig } from "../payments/shared/PaymentsConfig.ts"
import { html, type Html } from "../html/Html.ts"
import { layout } from "../html/Layout.ts"
import { page } from "../html/PageResponse.ts"
import { PagesConfig } from "./checkout/Embedding.ts"
import { layer as TryCheckout, tryForm } from "./TryCheckout.ts"

interface HomePage {
  /** Till's public address without a trailing slash. */
  readonly publicUrl: string
  /** True if live cards can be charged. */
  readonly takesLiveCards: boolean
  /** A button that creates a checkout; null on an installation that others reach. */
  readonly button: Html | null
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

const render = ({ button, publicUrl, takesLiveCards }: HomePage): Html =>
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
        <dd>
          ${
            takesLiveCards
              ? "On."
              : html`For shops that have connected a card processor.
                  <a href="./docs/guide/live">Read how to do that</a>.`
          }
        </dd>
      </dl>
      <ul>
        <li><a href="./dashboard">Dashboard</a>: payments, customers, products and keys</li>
        <li><a href="./docs">Documentation</a>: guides and reference, also as <a href="./openapi.json">OpenAPI</a></li>
        <li>
          <a href="#try">A checkout to try</a>, and <a href="./docs/guide/checkout">the three ways to have one</a>
        </li>
        <li><a href="./docs/errors">Errors</a>, with causes and fixes</li>
        <li><a href="./healthz">Health</a>, and <a href="./readyz">readiness</a> of the storage</li>
      </ul>
      <h2 id="try">Try a checkout</h2>
      ${
        button !== null &&
        html`<p>One click creates an order in test mode and opens its payment page, which offers test cards.</p>
          ${button}
          <p>The same from a shell:</p>`
      }
      <p>
        Use the secret test key that Till printed at its first start. Create a session and open the URL in the response.
        The page offers test cards.
      </p>
      <pre tabindex="0" role="group" aria-label="Commands"><code>${tryOut(publicUrl)}</code></pre>
    </main>`
  })

/** Browsers accept `text/html` explicitly; other clients accept anything, or JSON. */
const wantsHtml = (accept: string | undefined): boolean =>
  (accept ?? "").split(",").some((range) => /^\s*text\/html\s*(?:;(?!\s*q=0(?:\.0*)?\s*$)|$)/i.test(range))

/** The answer for monitors and programs. */
const line = (publicUrl: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(`Till answers here. Documentation: ${publicUrl}/docs\n`, {
    contentType: "text/plain; charset=utf-8",
    headers: { "cache-control": "no-store" }
  })

const layerHome = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const config = yield* PaymentsConfig
    const { isForThisMachine } = yield* PagesConfig
    const { liveProcessor, publicUrl } = config
    yield* router.add("GET", "/", ({ headers }) =>
      Effect.sync(() => {
        const answer = wantsHtml(headers["accept"])
          ? page(
              render({
                publicUrl,
                takesLiveCards: liveProcessor !== null,
                button: isForThisMachine ? tryForm(config) : null
              }),
              { formTargets: [publicUrl] }
            )
          : line(publicUrl)
        return HttpServerResponse.setHeader(answer, "vary", "accept")
      })
    )
  })
)

export const layer = Layer.merge(layerHome, TryCheckout)

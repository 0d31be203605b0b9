/** The first page of the documentation. */
import { html } from "../../html/Html.ts"
import { codeBlock, type Page, prose } from "./Frame.ts"

const INTRODUCTION =
  "Till is a payments service with a JSON API in the shape of Stripe's. Requests are authenticated by HTTP Basic, with " +
  "the API key as username and an empty password. Amounts are integers in the smallest unit of their currency, times are " +
  "Unix seconds. Every POST carries an `Idempotency-Key`; repeating it gets the first answer, and pays once."

const firstRequest = (base: string): string =>
  `curl ${base}/v1/payment_intents -u sk_test_…: \\
  -H 'Content-Type: application/json' -H 'Idempotency-Key: first' \\
  -d '{"amount": 2000, "currency": "usd", "payment_method": "pm_card_visa", "confirm": true}'`

export const overviewPage = (pages: ReadonlyArray<Page>, base: string): Page => ({
  path: "/docs",
  title: "Documentation",
  section: null,
  content: (link) =>
    html`<h1>Till documentation</h1>
      <p class="lead">${prose(INTRODUCTION)}</p>
      ${codeBlock(firstRequest(base), "A first request")}
      <p>
        The keys are those that Till printed at its first start; the <a href="${link("/dashboard")}">dashboard</a> makes
        new ones. The base address is <code>${base}</code>.
      </p>
      <h2>Guides</h2>
      <ul class="cards">
        ${pages
          .filter(({ section }) => section === "Guides")
          .map(
            ({ entries: [first], path, title }) =>
              html`<li>
                <a href="${link(path)}">${title}</a>
                <p>${firstSentence(first!.text)}</p>
              </li>`
          )}
      </ul>
      <h2>Reference</h2>
      <ul class="columns-list">
        ${pages
          .filter(({ section }) => section !== "Guides")
          .map(({ path, title }) => html`<li><a href="${link(path)}">${title}</a></li>`)}
        <li><a href="${link("/docs/errors")}">Errors</a></li>
      </ul>
      <h2>For programs</h2>
      <ul>
        <li><a href="${link("/openapi.json")}">openapi.json</a>, the contract, from which clients can be generated</li>
        <li><a href="${link("/docs/postman.json")}">postman.json</a>, a collection for Postman and its relatives</li>
        <li><a href="${link("/llms.txt")}">llms.txt</a>, the list of all pages as Markdown</li>
      </ul>`,
  markdown: () =>
    [
      "# Till documentation",
      INTRODUCTION,
      `\`\`\`sh\n${firstRequest(base)}\n\`\`\``,
      pages.map(({ path, title }) => `- [${title}](${base}${path}.md)`).join("\n")
    ].join("\n\n") + "\n",
  entries: [{ title: "Documentation", path: "/docs", text: INTRODUCTION }]
})

const firstSentence = (text: string): string => /^.*?[.:](?= |$)/.exec(text.trim())?.[0].replace(/:$/, ".") ?? ""

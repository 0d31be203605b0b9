/**
 * Serves the error documentation: `GET {docs_url}/errors/<code>` for every error code of the API, and an index. Pages
 * are public, so browsers and proxies may cache them for a few minutes. They have no scripts, and relative links,
 * because Till may be served below a path.
 */
import { Effect, Layer } from "effect"
import type { HttpServerResponse } from "effect/http"
import { HttpConfig } from "../../server/HttpConfig.ts"
import { DECLINE_MESSAGES } from "../../domain/Cards.ts"
import { parseJson } from "../../json/JsonParse.ts"
import { type ErrorExample, examples } from "./ErrorExamples.ts"
import { type Explanation, EXPLANATIONS, GROUPS } from "./ErrorExplanations.ts"
import { type Child, html, type Html } from "../../html/Html.ts"
import { layout } from "../../html/Layout.ts"
import { page } from "../../html/PageResponse.ts"
import { route } from "../../html/Routing.ts"

/** Path of the index below Till's address. */
const INDEX_PATH = "/docs/errors"

/** The index of all codes. */
const renderIndex = (examples: ReadonlyArray<ErrorExample>): Html =>
  documentation(
    "Errors",
    1,
    html`<h1>Errors</h1>
      <p>
        An error has a status of 400 or more and a JSON body: <code>error.type</code> and <code>error.code</code> are
        for programs, <code>error.message</code> is for people, <code>error.param</code> names the affected parameter,
        and <code>error.doc_url</code> links to one of these pages.
      </p>
      ${GROUPS.map(
        ({ codes, title }) =>
          html`<h2>${title}</h2>
            <dl>
              ${Object.entries(codes).map(([code, { meaning }]) => entry(code, statusesOf(examples, code), meaning))}
            </dl>`
      )}`
  )

const entry = (code: string, statuses: string, meaning: string): Html =>
  html`<dt>
      <a href="errors/${code}"><code>${code}</code></a> <small>${statuses}</small>
    </dt>
    <dd>${prose(meaning)}</dd>`

const ofCode = (examples: ReadonlyArray<ErrorExample>, code: string): ReadonlyArray<ErrorExample> =>
  examples.filter((example) => example.code === code)

const statusesOf = (examples: ReadonlyArray<ErrorExample>, code: string): string =>
  [...new Set(ofCode(examples, code).map(({ status }) => status))].join(", ")

/** Longer codes get a smaller font, to fit a phone's line. */
const LARGE_CHARACTERS_MAX = 24

/** The page of a code; undefined if the code does not exist. */
const renderCode = (examples: ReadonlyArray<ErrorExample>, code: string): Html | undefined => {
  const explanation = EXPLANATIONS.get(code)
  const [first, ...others] = ofCode(examples, code)
  if (explanation === undefined || first === undefined) return undefined
  return documentation(
    `Error: ${code}`,
    2,
    html`<nav aria-label="Breadcrumb"><a href="../../../docs">API</a> / <a href="../errors">Errors</a></nav>
      <h1><code${code.length > LARGE_CHARACTERS_MAX && html` class="long"`}>${code}</code></h1>
      <p>${prose(explanation.meaning)}</p>
      <p class="facts">HTTP status <code>${first.status}</code>, type <code>${first.type}</code></p>
      ${sections(explanation)} ${code === "card_declined" && declineCodes()} ${responses([first, ...others])}`
  )
}

const sections = ({ causes, remedies }: Explanation): ReadonlyArray<Html> => [
  html`<h2>Why it happens</h2>
    ${list(causes)}`,
  html`<h2>What to do</h2>
    ${list(remedies)}`
]

const list = (sentences: ReadonlyArray<string>): Html =>
  html`<ul>
    ${sentences.map((sentence) => html`<li>${prose(sentence)}</li>`)}
  </ul>`

const declineCodes = (): Html =>
  html`<h2>Decline codes</h2>
    <dl>
      ${Object.entries(DECLINE_MESSAGES).map(
        ([code, message]) =>
          html`<dt><code>${code}</code></dt>
            <dd>${message}</dd>`
      )}
    </dl>`

/** Response bodies as the API sends them; `pre` keeps their line breaks. */
const responses = (examples: ReadonlyArray<ErrorExample>): Child => {
  const bodies = examples.flatMap(({ body }) => (body === null ? [] : [JSON.stringify(parseJson(body), null, 2)]))
  if (bodies.length === 0) return null
  return html`<h2>${bodies.length === 1 ? "Example" : "Examples"}</h2>
    ${bodies.map((body) => html`<pre tabindex="0" role="region" aria-label="Response">${body}</pre>`)}`
}

/** The page for an unknown code. */
const renderUnknown = (): Html =>
  documentation(
    "Unknown error code",
    2,
    html`<h1>Unknown error code</h1>
      <p>There is no error with this code. <a href="../errors">See all errors</a>.</p>`
  )

/** `depth` as in `Layout`. */
const documentation = (title: string, depth: number, content: Html): Html =>
  layout({ title: `${title} – Till`, kind: "documentation", depth, content: html`<main>${content}</main>` })

/** Text with `code` in backticks. */
const prose = (text: string): ReadonlyArray<Child> =>
  text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))

const cachedPage = (document: Html): HttpServerResponse.HttpServerResponse =>
  page(document, { cacheControl: "public, max-age=300" })

export const layer = Layer.unwrap(
  Effect.map(HttpConfig, ({ docsUrl }) => {
    const all = examples(docsUrl)
    return Layer.mergeAll(
      route("GET", INDEX_PATH, () => Effect.sync(() => cachedPage(renderIndex(all)))),
      route("GET", `${INDEX_PATH}/:code`, (_, { code = "" }) =>
        Effect.sync(() => {
          const document = renderCode(all, code)
          return document === undefined ? page(renderUnknown(), { status: 404 }) : cachedPage(document)
        })
      )
    )
  })
)

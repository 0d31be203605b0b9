/** A page for every error code of the API, and an index: `{docs_url}/errors/<code>` (semantics errors.table). */
import { OUTCOMES } from "../../api/openapi/Outcomes.ts"
import { DECLINE_MESSAGES } from "../../domain/Cards.ts"
import { parseJson } from "../../json/JsonParse.ts"
import { type Child, html, type Html } from "../../html/Html.ts"
import { type ErrorExample, examples } from "./ErrorExamples.ts"
import { type Explanation, EXPLANATIONS, GROUPS } from "./ErrorExplanations.ts"
import { codeBlock, type Link, type Page, prose } from "./Frame.ts"
import type { Operation, Resource } from "./Reference.ts"
import { pathOf } from "./ReferencePages.ts"

const INDEX = "/docs/errors"

const INTRODUCTION =
  "An error has a status of 400 or more and a JSON body: `error.type` and `error.code` are for programs, " +
  "`error.message` is for people, `error.param` names the affected parameter, and `error.doc_url` links to one of these " +
  "pages."

/** Makes the index and the pages of all codes. `docsUrl` is the base of the links in errors. */
export const errorPages = (docsUrl: string, resources: ReadonlyArray<Resource>, base: string): ReadonlyArray<Page> => {
  const all = examples(docsUrl)
  return [
    indexPage(all, base),
    ...[...EXPLANATIONS].flatMap(([code, explanation]) => {
      const [first, ...others] = all.filter((example) => example.code === code)
      return first === undefined ? [] : [codePage({ code, explanation, examples: [first, ...others], resources })]
    })
  ]
}

const indexPage = (all: ReadonlyArray<ErrorExample>, base: string): Page => ({
  path: INDEX,
  title: "Errors",
  section: "Errors",
  content: (link) =>
    html`<h1>Errors</h1>
      <p class="lead">${prose(INTRODUCTION)}</p>
      <p>How programs deal with them is in the guide <a href="${link("/docs/guide/errors")}">Errors and retries</a>.</p>
      ${GROUPS.map(
        ({ codes, title }) =>
          html`<h2>${title}</h2>
            <dl>
              ${Object.entries(codes).map(
                ([code, { meaning }]) =>
                  html`<dt>
                      <a href="${link(`${INDEX}/${code}`)}"><code>${code}</code></a>
                      <small>${statusesOf(all, code)}</small>
                    </dt>
                    <dd>${prose(meaning)}</dd>`
              )}
            </dl>`
      )}`,
  markdown: () =>
    [
      "# Errors",
      INTRODUCTION,
      ...GROUPS.flatMap(({ codes, title }) => [
        `## ${title}`,
        Object.entries(codes)
          .map(
            ([code, { meaning }]) =>
              `- [\`${code}\`](${base}${INDEX}/${code}.md) (${statusesOf(all, code)}): ${meaning}`
          )
          .join("\n")
      ])
    ].join("\n\n") + "\n",
  entries: [{ title: "Errors", path: INDEX, text: INTRODUCTION }]
})

const statusesOf = (all: ReadonlyArray<ErrorExample>, code: string): string =>
  [...new Set(all.filter((example) => example.code === code).map(({ status }) => status))].join(", ")

interface Described {
  readonly code: string
  readonly explanation: Explanation
  readonly examples: readonly [ErrorExample, ...Array<ErrorExample>]
  readonly resources: ReadonlyArray<Resource>
}

const codePage = (described: Described): Page => {
  const { code, explanation } = described
  return {
    path: `${INDEX}/${code}`,
    title: code,
    section: "Errors",
    content: (link) => renderCode(described, link),
    markdown: () => codeMarkdown(described),
    entries: [
      { title: `Error ${code}`, path: `${INDEX}/${code}`, text: [explanation.meaning, ...explanation.causes].join(" ") }
    ]
  }
}

/** Longer codes get a smaller font, to fit a phone's line. */
const LARGE_CHARACTERS_MAX = 24

const renderCode = ({ code, examples: all, explanation, resources }: Described, link: Link): Html =>
  html`<p><a href="${link(INDEX)}">Errors</a></p>
    <h1 class="name"><code${code.length > LARGE_CHARACTERS_MAX && html` class="long"`}>${code}</code></h1>
    <p class="lead">${prose(explanation.meaning)}</p>
    <p class="facts">HTTP status <code>${all[0].status}</code>, type <code>${all[0].type}</code></p>
    <h2>Why it happens</h2>
    ${list(explanation.causes)}
    <h2>What to do</h2>
    ${list(explanation.remedies)} ${code === "card_declined" && declineCodes()} ${responses(all)}
    ${operationsWith(code, resources, link)}`

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

const bodiesOf = (all: ReadonlyArray<ErrorExample>): ReadonlyArray<string> =>
  all.flatMap(({ body }) => (body === null ? [] : [JSON.stringify(parseJson(body), null, 2)]))

/** Response bodies as the API sends them. */
const responses = (all: ReadonlyArray<ErrorExample>): Child => {
  const bodies = bodiesOf(all)
  if (bodies.length === 0) return null
  return html`<h2>${bodies.length === 1 ? "Example" : "Examples"}</h2>
    ${bodies.map((body) => codeBlock(body, "Response"))}`
}

/** The operations that name the code as their own. */
const operationsOf = (code: string, resources: ReadonlyArray<Resource>) =>
  resources.flatMap((resource) =>
    resource.operations
      .filter(({ id }) => OUTCOMES[id]!.errors.includes(code))
      .map((operation) => ({ operation, path: `${pathOf(resource.tag)}#${operation.anchor}` }))
  )

const operationsWith = (code: string, resources: ReadonlyArray<Resource>, link: Link): Child => {
  const operations = operationsOf(code, resources)
  if (operations.length === 0) return null
  return html`<h2>Operations with this error</h2>
    <ul>
      ${operations.map(
        ({ operation, path }: { readonly operation: Operation; readonly path: string }) =>
          html`<li><a href="${link(path)}">${operation.summary}</a></li>`
      )}
    </ul>`
}

const codeMarkdown = ({ code, examples: all, explanation }: Described): string =>
  [
    `# ${code}`,
    explanation.meaning,
    `HTTP status \`${all[0].status}\`, type \`${all[0].type}\``,
    "## Why it happens",
    explanation.causes.map((cause) => `- ${cause}`).join("\n"),
    "## What to do",
    explanation.remedies.map((remedy) => `- ${remedy}`).join("\n"),
    ...(code === "card_declined"
      ? [
          "## Decline codes",
          Object.entries(DECLINE_MESSAGES)
            .map(([decline, message]) => `- \`${decline}\`: ${message}`)
            .join("\n")
        ]
      : []),
    ...bodiesOf(all).map((body) => `\`\`\`json\n${body}\n\`\`\``)
  ].join("\n\n") + "\n"

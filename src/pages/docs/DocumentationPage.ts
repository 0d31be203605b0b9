/**
 * Renders the OpenAPI document as a page: plain HTML with one inline style sheet, no scripts and no external resources.
 * The content security policy enforces this.
 */
import { hash } from "node:crypto"
import { type Document, type Operation, type Parameter, type Response, responseOf } from "../../api/openapi/Document.ts"
import { type JsonSchema, type JsonSchemas, resolve } from "../../api/openapi/Examples.ts"
import type { Webhook } from "../../api/openapi/Webhooks.ts"
import { outcomeOf, TEST_CARDS } from "../../domain/TestCards.ts"

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8882 }
html { background: #fff; color: #14181f }
body { font: 0.9375rem/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; overflow-wrap: break-word; padding: 1.5rem }
@media (prefers-color-scheme: dark) { html { background: #0e1116; color: #e9ecf1 } }
nav ul { columns: 3 14rem; list-style: none; padding: 0 }
nav li { padding: .125rem 0 }
a { color: inherit }
section { border-top: 1px solid var(--line); margin-top: 2rem }
h3 code { font-size: 1rem }
.method { border: 1px solid var(--line); border-radius: 3px; padding: 0 .4em }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem .3rem 0; text-align: left; vertical-align: top }
td:first-child, #test_cards td:nth-child(2) { white-space: nowrap }
td:last-child { overflow-wrap: anywhere; width: 100% }
wbr { display: none }
@media (max-width: 48rem) {
  wbr { display: inline }
  body { padding: 1rem }
  table, tbody, tr, td { display: block }
  tr { border-bottom: 1px solid var(--line); padding: .3rem 0 }
  td { border: 0; font-size: .875rem; padding: 0 }
  td:first-child, #test_cards td:nth-child(2) { white-space: normal }
}
pre { background: var(--soft); overflow-x: auto; padding: .8rem }
small { opacity: .7 }
`

/** The `Content-Security-Policy` header. */
export const contentSecurityPolicy =
  `default-src 'none'; style-src 'sha256-${hash("sha256", STYLE, "base64")}'; ` +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

export const render = (document: Document): string => {
  const { info, paths, servers, tags } = document
  const webhooks = Object.values(document.webhooks).map(({ post }) => post)
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation }))
  )
  const ofTag = (tag: string) => operations.filter(({ operation }) => isOf(tag)(operation))
  const contents = tags.map(({ name }) => {
    const links = [...ofTag(name).map(({ operation }) => operation), ...webhooks.filter(isOf(name))].map(
      ({ operationId, summary }) => `<li><a href="#${text(operationId)}">${text(summary)}</a></li>`
    )
    return `<h2>${text(name.replaceAll("_", " "))}</h2><ul>${links.join("")}</ul>`
  })
  const sections = tags.flatMap(({ name }) => [
    ...ofTag(name).map(({ method, operation, path }) => renderOperation(method, path, operation, document)),
    ...webhooks.filter(isOf(name)).map((webhook) => renderWebhook(webhook, document))
  ])
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${text(info.title)} API ${text(info.version)}</title><style>${STYLE}</style></head><body><main>
<h1>${text(info.title)} API <small>${text(info.version)}</small></h1>
<p>${prose(info.description)}</p>
<p>Base address <code>${text(servers[0]?.url ?? "")}</code>. This page as OpenAPI: <a href="openapi.json">openapi.json</a>.
Error codes: <a href="docs/errors">errors</a>. Cards for test mode: <a href="#test_cards">test cards</a>.</p>
<nav>${contents.join("")}</nav>
${sections.join("\n")}
${testCards()}
</main></body></html>
`
}

/** Test cards are not in the contract, where their ids and numbers are like any others. */
const testCards = (): string => `<section id="test_cards"><h2>Test cards</h2>
<p>${prose(
  "In test mode, use one of these as `payment_method`, or its number with any future expiry date and any " +
    "security code. A decline is a 402 in response to the confirmation. A card that requires authentication leaves " +
    "the PaymentIntent in `requires_action`. A slow card leaves it in `processing` for two seconds of the test " +
    "clock; pending refunds and refunds that fail later take as long. If the processor does not respond, the request " +
    "gets a 500, nothing has changed, and you can repeat it. Any other number is declined."
)}</p>
<table>${TEST_CARDS.map((card) => {
  const [ids, numbers] = [card.ids, card.numbers].map((all) =>
    // Some ids are longer than a phone's line.
    all.map((one) => `<code>${text(one).replaceAll(/(?<=[a-z])(?=[A-Z])/g, "<wbr>")}</code>`).join("<br>")
  )
  return `<tr><td>${ids}</td><td>${numbers}</td><td>${text(outcomeOf(card))}</td></tr>`
}).join("")}</table></section>`

const isOf =
  (tag: string) =>
  ({ tags }: { readonly tags: ReadonlyArray<string> }): boolean =>
    tags.includes(tag)

/** A webhook is a request from Till to an address of the merchant. */
const renderWebhook = ({ description, operationId, ...webhook }: Webhook, { components }: Document): string => {
  const { example, schema } = webhook.requestBody.content["application/json"]
  const answers = Object.entries(webhook.responses).map(
    ([status, response]) => `<tr><td><code>${text(status)}</code></td><td>${prose(response.description)}</td></tr>`
  )
  return [
    `<section id="${text(operationId)}"><h3>${text(webhook.summary)}</h3>`,
    `<p><code><span class="method">POST</span></code> to your endpoint</p><p>${prose(description)}</p>`,
    table(webhook.parameters.map((parameter) => parameterRow(parameter, components.schemas))),
    `<h4>Body</h4>${table(memberRows(schema, components.schemas))}${json(example)}`,
    `<h4>Your answer</h4><table>${answers.join("")}</table></section>`
  ].join("\n")
}

const renderOperation = (method: string, path: string, operation: Operation, document: Document): string => {
  const { schemas } = document.components
  const { description, operationId, parameters, requestBody, responses, summary } = operation
  const body = requestBody?.content["application/json"]
  const parts = [
    `<h3>${text(summary)}</h3>`,
    `<p><code><span class="method">${method.toUpperCase()}</span> ${text(path).replaceAll("/", "/<wbr>")}</code> ` +
      `<small>In TypeScript <code>till.${text(operationId)}</code></small></p>`,
    description === undefined ? "" : `<p>${prose(description)}</p>`,
    table(parameters.map((parameter) => parameterRow(parameter, schemas)))
  ]
  if (body !== undefined) {
    parts.push(`<h4>Body</h4>`, table(memberRows(body.schema, schemas)), json(body.example))
  }
  parts.push(`<h4>Responses</h4>`)
  for (const [status, response] of Object.entries(responses)) {
    parts.push(renderResponse(status, responseOf(response, document), schemas))
  }
  return `<section id="${text(operationId)}">${parts.join("\n")}</section>`
}

const renderResponse = (status: string, { content, description }: Response, schemas: JsonSchemas): string => {
  const { example, schema } = content["application/json"]
  const members = status === "200" ? table(memberRows(schema, schemas)) : ""
  return `<details><summary><code>${status}</code> ${prose(description)}</summary>${members}${json(example)}</details>`
}

interface Row {
  readonly name: string
  readonly where: string
  readonly isRequired: boolean
  readonly type: string
  readonly description: string
}

const parameterRow = (
  { description, in: where, name, required, schema }: Omit<Parameter, "schema"> & { readonly schema: JsonSchema },
  schemas: JsonSchemas
): Row => ({
  name,
  where,
  isRequired: required,
  type: typeOf(schema, schemas),
  description: description ?? ""
})

const memberRows = (schema: JsonSchema, schemas: JsonSchemas): ReadonlyArray<Row> => {
  const { anyOf, properties = {}, required = [] } = resolve(schema, schemas)
  if (anyOf !== undefined) return anyOf.slice(0, 1).flatMap((choice) => memberRows(choice, schemas))
  return Object.entries(properties).map(([name, member]) => ({
    name,
    where: "",
    isRequired: required.includes(name),
    type: typeOf(member, schemas),
    description: member.description ?? ""
  }))
}

/** A short description of a schema: `string, at most 256 characters, or null`. */
const typeOf = (schema: JsonSchema, schemas: JsonSchemas): string => {
  if (schema.$ref !== undefined) {
    const { anyOf, type } = resolve(schema, schemas)
    return type === "object" || anyOf !== undefined ? nameOf(schema.$ref) : typeOf(resolve(schema, schemas), schemas)
  }
  const choices = schema.anyOf ?? schema.oneOf
  if (choices !== undefined) return [...new Set(choices.map((choice) => typeOf(choice, schemas)))].join(" or ")
  const merged: JsonSchema = Object.assign({}, schema, ...(schema.allOf ?? []))
  if (merged.enum !== undefined) return merged.enum.map((value) => JSON.stringify(value)).join(", ")
  if (merged.type === "array")
    return `array of ${merged.items === undefined ? "anything" : typeOf(merged.items, schemas)}`
  const limits = [
    // Bounds that every JSON number has are left out.
    merged.minimum !== undefined && merged.minimum !== Number.MIN_SAFE_INTEGER && `at least ${merged.minimum}`,
    merged.maximum !== undefined && merged.maximum !== Number.MAX_SAFE_INTEGER && `at most ${merged.maximum}`,
    merged.maxLength !== undefined && `at most ${merged.maxLength} characters`,
    merged.pattern !== undefined && `matching ${merged.pattern}`
  ]
  return [merged.type ?? "anything", ...limits.filter((limit) => limit !== false)].join(", ")
}

const nameOf = (reference: string): string => reference.slice(reference.lastIndexOf("/") + 1)

const table = (rows: ReadonlyArray<Row>): string => {
  const lines = rows.map(({ description, isRequired, name, type, where }) => {
    const note = [where, isRequired ? "required" : ""].filter((part) => part !== "").join(", ")
    return (
      `<tr><td><code>${text(name)}</code> <small>${text(note)}</small></td>` +
      `<td>${text(type)}${description === "" ? "" : `. ${prose(description)}`}</td></tr>`
    )
  })
  return lines.length === 0 ? "" : `<table>${lines.join("")}</table>`
}

const json = (value: unknown): string =>
  `<pre tabindex="0" role="group" aria-label="Example">${text(JSON.stringify(value, null, 2) ?? "")}</pre>`

/** Escapes text and renders `code` in backticks. */
const prose = (markdown: string): string => text(markdown).replaceAll(/`([^`]+)`/g, "<code>$1</code>")

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;"
}

const text = (raw: string): string => raw.replaceAll(/[&<>"']/g, (character) => ENTITIES[character]!)

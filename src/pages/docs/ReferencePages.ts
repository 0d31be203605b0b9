/** A page of the reference for each resource. */
import type { Tag } from "../../api/openapi/Tags.ts"
import { type Child, html, type Html } from "../../html/Html.ts"
import type { Field } from "./Fields.ts"
import { codeBlock, type Entry, type Link, type Page, prose } from "./Frame.ts"
import type { Operation, Resource } from "./Reference.ts"
import { resourceMarkdown } from "./ReferenceMarkdown.ts"
import type { Sample } from "./Samples.ts"

/** The path of a resource's page. */
export const pathOf = ({ name }: Pick<Tag, "name">): string => `/docs/api/${name}`

/** Makes the page of a resource. `base` is Till's address, for the Markdown. */
export const referencePage = (resource: Resource, base: string): Page => {
  const path = pathOf(resource.tag)
  return {
    path,
    title: resource.tag.title,
    section: "Reference",
    content: (link) => render(resource, link),
    markdown: () => resourceMarkdown(resource, base),
    entries: entriesOf(resource, path)
  }
}

const entriesOf = ({ fields, incoming, operations, tag }: Resource, path: string): ReadonlyArray<Entry> => [
  {
    title: tag.title,
    path,
    text: [tag.description, ...fields.map(({ name }) => name)].join(" ")
  },
  ...operations.map(({ anchor, description, method, parameters, path: route, summary }) => ({
    title: summary,
    path: `${path}#${anchor}`,
    text: [method, route, description, ...parameters.flatMap(({ fields: all }) => all.map(({ name }) => name))].join(
      " "
    )
  })),
  ...incoming.map(({ anchor, description, summary }) => ({
    title: summary,
    path: `${path}#${anchor}`,
    text: description
  }))
]

const render = ({ example, fields, incoming, operations, tag }: Resource, link: Link): Html =>
  html`<h1>${tag.title}</h1>
    <p class="lead">${prose(tag.description)}</p>
    <ul class="toc">
      ${fields.length > 0 && html`<li><a href="#object">The object</a></li>`}
      ${[...operations, ...incoming].map(({ anchor, summary }) => html`<li><a href="#${anchor}">${summary}</a></li>`)}
    </ul>
    ${
      fields.length > 0 &&
      html`<section id="object" class="split">
        <div>
          <h2><a href="#object">The object</a></h2>
          ${fieldList(fields, link, "answer")}
        </div>
        <div class="aside">${codeBlock(example!, "Example of the object")}</div>
      </section>`
    }
    ${operations.map((operation) => renderOperation(operation, link))}
    ${incoming.map(
      ({ anchor, answers, description, headers, summary }) =>
        html`<section id="${anchor}">
          <h2><a href="#${anchor}">${summary}</a></h2>
          <p class="route"><b>POST</b> <code>your endpoint</code></p>
          <p>${prose(description)}</p>
          <p>The body is an <a href="${link("/docs/api/events")}">event</a>.</p>
          <h3>Headers</h3>
          ${fieldList(headers, link, "answer")}
          <h3>Your answer</h3>
          <dl>
            ${answers.map(
              ({ description: meaning, status }) =>
                html`<dt><code>${status}</code></dt>
                  <dd>${prose(meaning)}</dd>`
            )}
          </dl>
        </section>`
    )}`

const renderOperation = (operation: Operation, link: Link): Html => {
  const { anchor, description, example, id, method, parameters, path, samples, summary } = operation
  return html`<section id="${anchor}" class="split">
    <div>
      <h2><a href="#${anchor}">${summary}</a></h2>
      <p class="route"><b>${method}</b> <code>${path}</code></p>
      <p>${prose(description)}</p>
      ${parameters.map(
        ({ fields, title }) =>
          html`<h3>${title}</h3>
            ${fieldList(fields, link, anchor === "update" ? "update" : "request")}`
      )}
      ${renderResult(operation, link)} ${renderErrors(operation, link)} ${renderEvents(operation, link)}
    </div>
    <div class="aside">
      ${sampleTabs(samples, id)}
      <details open>
        <summary>Response</summary>
        ${codeBlock(example, `Response of ${summary}`)}
      </details>
    </div>
  </section>`
}

const renderResult = ({ result: { fields, isList, resource } }: Operation, link: Link): Html => {
  const name: Child =
    resource === undefined ? "an object" : html`<a href="${link(pathOf(resource))}#object">${resource.title}</a>`
  return html`<h3>Returns</h3>
    <p>
      ${
        isList
          ? html`A <a href="${link("/docs/guide/pagination")}">page</a> of ${name}.`
          : html`${resource === undefined ? "An object with these fields." : html`An object: ${name}.`}`
      }
    </p>
    ${fields.length > 0 && fieldList(fields, link, "answer")}`
}

const errorLinks = (codes: ReadonlyArray<string>, link: Link): Html =>
  html`<ul class="codes">
    ${codes.map(
      (code) =>
        html`<li>
          <a href="${link(`/docs/errors/${code}`)}"><code>${code}</code></a>
        </li>`
    )}
  </ul>`

const renderErrors = ({ commonErrors, errors }: Operation, link: Link): Html =>
  html`<h3>Errors</h3>
    ${errors.length > 0 && errorLinks(errors, link)}
    <details>
      <summary>Errors of every such request</summary>
      ${errorLinks(commonErrors, link)}
    </details>`

const renderEvents = ({ events }: Operation, link: Link): Child =>
  events.length > 0 &&
  html`<h3>Events</h3>
    <ul class="codes">
      ${events.map(
        (type) =>
          html`<li>
            <a href="${link("/docs/guide/webhooks")}#events"><code>${type}</code></a>
          </li>`
      )}
    </ul>`

/** The use of fields. Requests mark required fields, answers those that may be absent; null only unsets in updates. */
type Use = "request" | "update" | "answer"

/** Fields with the fields nested in them. */
const fieldList = (fields: ReadonlyArray<Field>, link: Link, use: Use): Html =>
  html`<ul class="fields">
    ${fields.map(
      (field) =>
        html`<li>
          <code>${field.name}</code> <span class="type">${typeOf(field, use)}</span>
          ${use !== "answer" && field.isRequired && html`<b class="required">required</b>`}
          ${field.description !== "" && html`<p>${prose(field.description)}</p>`}
          ${field.resource !== undefined && html`<p><a href="${link(`/docs/api/${field.resource}`)}#object">Its fields</a></p>`}
          ${field.children.length > 0 && fieldList(field.children, link, use)}
        </li>`
    )}
  </ul>`

const typeOf = ({ isNullable, isRequired, type, values }: Field, use: Use): ReadonlyArray<Child> => [
  ...prose(type),
  ...(values.length > 1 ? values.map((value) => html` <code>${value}</code>`) : []),
  isNullable && use !== "request" && ", or null",
  !isRequired && use === "answer" && ", may be absent"
]

/** The samples, of which one is chosen. Without support of `:has`, all are shown. */
const sampleTabs = (samples: ReadonlyArray<Sample>, id: string): Html =>
  html`<fieldset class="samples">
    <legend class="unseen">Language of the request</legend>
    ${samples.map(
      ({ language, title }, index) =>
        html`<label
          ><input type="radio" name="${id}" value="${language}" ${index === 0 && html`checked`} /> ${title}</label
        >`
    )}
    ${samples.map(
      ({ code, language, title }) =>
        html`<div data-language="${language}">${codeBlock(code, `Request in ${title}`)}</div>`
    )}
  </fieldset>`

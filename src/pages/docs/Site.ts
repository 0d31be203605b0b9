/** All pages of the documentation, and the files that derive from them. */
import * as Document from "../../api/openapi/Document.ts"
import { html, type Html } from "../../html/Html.ts"
import { errorPages } from "./ErrorPages.ts"
import { type Entry, framed, type Page } from "./Frame.ts"
import { guidePages } from "./Guides.ts"
import { overviewPage } from "./OverviewPage.ts"
import { postmanCollection } from "./Postman.ts"
import { resourcesOf } from "./Reference.ts"
import { referencePage } from "./ReferencePages.ts"
import { found, searchPage } from "./SearchPage.ts"
import { testCardsPage } from "./TestCardsPage.ts"

export interface Site {
  /** The page at a path; undefined if there is none. */
  readonly html: (path: string) => Html | undefined
  /** The same page as Markdown. */
  readonly markdown: (path: string) => string | undefined
  readonly search: (query: string) => Html
  readonly notFound: (path: string) => Html
  readonly searchIndex: () => string
  readonly openApi: () => string
  readonly postman: () => string
  /** The list of all pages for language models, by the convention of llmstxt.org. */
  readonly llms: () => string
}

export interface SiteOptions {
  /** Till's public address. */
  readonly publicUrl: string
  /** The base of the links in errors. */
  readonly docsUrl: string
}

export const make = ({ docsUrl, publicUrl }: SiteOptions): Site => {
  const document = Document.make(publicUrl)
  const resources = resourcesOf(document)
  const guides = guidePages(publicUrl)
  const references = resources.map((resource) => referencePage(resource, publicUrl))
  const listed = [...guides, ...references, testCardsPage]
  const pages = [overviewPage(listed, publicUrl), ...listed, ...errorPages(docsUrl, resources, publicUrl)]
  const byPath = new Map(pages.map((page) => [page.path, page]))
  const entries = once(() => pages.flatMap((page) => page.entries))
  return {
    html: (path) => {
      const page = byPath.get(path)
      return page === undefined ? undefined : framed(page, listed)
    },
    markdown: (path) => byPath.get(path)?.markdown(),
    search: (query) => framed(searchPage(query, found(entries(), query)), listed, query),
    notFound: (path) => framed(notFoundPage(path), listed),
    searchIndex: once(() => JSON.stringify(entries().map(({ path, text, title }: Entry) => [title, path, text]))),
    openApi: once(() => JSON.stringify(document)),
    postman: once(() => JSON.stringify(postmanCollection(document))),
    llms: () => llms(guides, [...references, ...pages.filter(({ section }) => section === "Errors")], publicUrl)
  }
}

/** Makes a value on its first use, because most processes never serve it. */
const once = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined
  return () => (made ??= { value: make() }).value
}

const notFoundPage = (path: string) => ({
  path,
  title: "Page not found",
  section: null,
  content: (link: (target: string) => string) =>
    html`<h1>Page not found</h1>
      <p>
        There is no page at this address. See <a href="${link("/docs")}">the overview</a>, or
        <a href="${link("/docs/errors")}">all errors</a>.
      </p>`
})

const llms = (guides: ReadonlyArray<Page>, reference: ReadonlyArray<Page>, base: string): string => {
  const list = (pages: ReadonlyArray<Page>) =>
    pages.map(({ path, title }) => `- [${title}](${base}${path}.md)`).join("\n")
  return `# Till

> A payments service that people run themselves, with a JSON API in the shape of Stripe's. Requests are authenticated by
> HTTP Basic with the API key as username, bodies are JSON, and every POST has an \`Idempotency-Key\`.

The base address is ${base}. The contract is at ${base}/openapi.json.

## Guides

${list(guides)}

## Reference

${list(reference)}
- [${testCardsPage.title}](${base}${testCardsPage.path}.md)
`
}

/**
 * The frame around every page of the documentation: the search, the list of pages at the side, and links to the same
 * page as Markdown. It works without the script, which adds an instant search, copy buttons and the choice of a
 * language for all samples.
 */
import { type Child, html, type Html } from "../../html/Html.ts"
import { layout } from "../../html/Layout.ts"

/** Returns the relative address of a path below Till's base address, such as `/docs/errors`. */
export type Link = (path: string) => string

/** A place that the search finds. */
export interface Entry {
  readonly title: string
  /** The path, with the place in the page. */
  readonly path: string
  /** Further words to find it by. */
  readonly text: string
}

export type Section = "Guides" | "Reference" | "Errors"

export interface Page {
  /** Below Till's base address: `/docs/api/refunds`. */
  readonly path: string
  readonly title: string
  /** The section that lists the page; null for pages that are not listed. */
  readonly section: Section | null
  readonly content: (link: Link) => Html
  /** The same content as Markdown. */
  readonly markdown: () => string
  readonly entries: ReadonlyArray<Entry>
}

/** Number of folders between Till's base address and a page: 0 for `/docs`. */
const depthOf = (path: string): number => path.split("/").length - 2

/** Links of a page are relative, because Till may be served below a path. */
const linkFrom =
  (path: string): Link =>
  (target) =>
    `${Array.from({ length: depthOf(path) }, () => "..").join("/") || "."}${target}`

/** Renders a page in the frame. `query` is the text of the search field. */
export const framed = (page: Omit<Page, "markdown" | "entries">, pages: ReadonlyArray<Page>, query = ""): Html => {
  const link = linkFrom(page.path)
  const content = html`<a class="skip" href="#content">Skip to the content</a>
    <header>
      <a class="home" href="${link("/docs")}">Till <span>docs</span></a>
      <form role="search" action="${link("/docs/search")}">
        <input
          type="search"
          name="q"
          value="${query}"
          placeholder="Search"
          aria-label="Search the documentation"
          autocomplete="off"
          aria-keyshortcuts="/"
          data-index="${link("/docs/search.json")}"
          data-base="${link("")}"
        />
        <kbd aria-hidden="true">/</kbd>
      </form>
      <a href="${link("/dashboard")}">Dashboard</a>
    </header>
    <div class="columns">
      ${sidebar(page, pages, link)}
      <main id="content">${page.content(link)} ${foot(page, link)}</main>
    </div>`
  return layout({
    title: page.path === "/docs" ? "Till documentation" : `${page.title} – Till documentation`,
    kind: "documentation",
    script: true,
    depth: depthOf(page.path),
    content
  })
}

const SECTIONS: ReadonlyArray<Exclude<Section, "Errors">> = ["Guides", "Reference"]

/** The list of pages. On a phone it is folded. */
const sidebar = (current: { readonly path: string }, pages: ReadonlyArray<Page>, link: Link): Html => {
  const item = (path: string, title: string): Html =>
    html`<li>
      <a href="${link(path)}" ${path === current.path && html` aria-current="page"`}>${title}</a>
    </li>`
  return html`<details class="side" open>
    <summary>Contents</summary>
    <nav aria-label="Documentation">
      ${SECTIONS.map(
        (section) =>
          html`<h2>${section}</h2>
            <ul>
              ${pages.filter((page) => page.section === section).map(({ path, title }) => item(path, title))}
              ${section === "Reference" && [item("/docs/test-cards", "Test cards"), item("/docs/errors", "Errors")]}
            </ul>`
      )}
    </nav>
  </details>`
}

const foot = ({ path, section }: { readonly path: string; readonly section: Section | null }, link: Link): Child =>
  (section !== null || path === "/docs") &&
  html`<footer>
    <a href="${link(`${path}.md`)}">This page as Markdown</a>
    <a href="${link("/llms.txt")}">llms.txt</a>
    <a href="${link("/openapi.json")}">OpenAPI</a>
    <a href="${link("/docs/postman.json")}">Postman</a>
  </footer>`

/** Text with `code` in backticks. */
export const prose = (text: string): ReadonlyArray<Child> =>
  text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))

/** A block of code; it scrolls by keyboard. */
export const codeBlock = (code: string, label: string): Html =>
  html`<pre tabindex="0" role="group" aria-label="${label}"><code>${code}</code></pre>`

/**
 * The guides: Markdown files of `docs/guide`, rendered as pages. The files are the same text on GitHub, where links to
 * the reference lead to a Till on the reader's machine.
 */
import { Marked, type Tokens } from "marked"
import * as fs from "node:fs"
import { Html } from "../../html/Html.ts"
import type { Entry, Link, Page } from "./Frame.ts"

/** The folder beside a bundle, or the repository's. */
const FOLDER = ["guide/", "../../../docs/guide/"]
  .map((path) => new URL(path, import.meta.url))
  .find((folder) => fs.existsSync(folder))!

/** The guides in their order. */
export const GUIDES = [
  "start",
  "checkout",
  "webhooks",
  "idempotency",
  "pagination",
  "errors",
  "testing",
  "saved-cards",
  "merchants",
  "live",
  "gateways",
  "from-stripe"
] as const

/** The address in the guides' samples and links, which stands for this installation's. */
const LOCAL = "http://localhost:4242"

/** Makes the pages of all guides for an installation at this address. */
export const guidePages = (base: string): ReadonlyArray<Page> =>
  GUIDES.map((name) => guidePage(`/docs/guide/${name}`, fs.readFileSync(new URL(`${name}.md`, FOLDER), "utf8"), base))

const guidePage = (path: string, source: string, base: string): Page => {
  const text = source.replaceAll(LOCAL, base)
  const title = /^# (.+)$/m.exec(text)![1]!
  return {
    path,
    title,
    section: "Guides",
    content: (link) => renderMarkdown(text, base, link),
    markdown: () => text.replaceAll(/\]\((?!https?:)([\w-]+)\.md(#[^)]*)?\)/g, `](${base}/docs/guide/$1.md$2)`),
    entries: entriesOf(text, path, title)
  }
}

/** The anchor of a heading, as GitHub makes it. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(/\s/gu, "-")

/** The text of Markdown without its marks. */
const plain = (markdown: string): string =>
  markdown.replaceAll(/[`|*#[\]]|\(http[^()]*\)/g, " ").replaceAll(/\s+/g, " ")

/** An entry for the guide, and one for each of its headings, with the text below it outside of code. */
const entriesOf = (text: string, path: string, title: string): ReadonlyArray<Entry> =>
  text.split(/^(?=##? )/m).map((part) => {
    const [heading = "", ...rest] = part.split("\n")
    const name = plain(heading).trim()
    const words = plain(
      rest
        .join("\n")
        .split("```")
        .filter((_, index) => index % 2 === 0)
        .join(" ")
    )
    return heading.startsWith("## ")
      ? { title: `${title}: ${name}`, path: `${path}#${anchorOf(name)}`, text: words }
      : { title, path, text: words }
  })

/** The path of a link: another guide, or a page of this installation. Null for another site. */
const targetOf = (href: string, base: string): string | null => {
  const [, guide, anchor = ""] = /^([\w-]+)\.md(#.*)?$/.exec(href) ?? []
  if (guide !== undefined) return `/docs/guide/${guide}${anchor}`
  return href.startsWith(`${base}/`) ? href.slice(base.length) : null
}

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

const LANGUAGES: Readonly<Record<string, string>> = {
  sh: "Commands",
  console: "Terminal",
  ts: "TypeScript",
  json: "JSON",
  html: "HTML",
  python: "Python",
  php: "PHP"
}

const renderMarkdown = (text: string, base: string, link: Link): Html => {
  const marked = new Marked({
    renderer: {
      heading({ depth, text: heading, tokens }: Tokens.Heading) {
        const anchor = anchorOf(heading)
        const inner = this.parser.parseInline(tokens)
        if (depth === 1) return `<h1>${inner}</h1>`
        return `<h${depth} id="${anchor}"><a href="#${anchor}">${inner}</a></h${depth}>`
      },
      link({ href, tokens }: Tokens.Link) {
        const target = targetOf(href, base)
        const address = target === null ? (href.startsWith("#") ? href : escaped(href)) : escaped(link(target))
        return `<a href="${address}">${this.parser.parseInline(tokens)}</a>`
      },
      code({ lang = "", text: code }: Tokens.Code) {
        const label = LANGUAGES[lang] ?? "Code"
        return `<pre tabindex="0" role="group" aria-label="${label}"><code>${escaped(code)}</code></pre>`
      },
      table(token: Tokens.Table) {
        const cells = (row: ReadonlyArray<Tokens.TableCell>, tag: string) =>
          `<tr>${row.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join("")}</tr>`
        const body = token.rows.map((row) => cells(row, "td")).join("")
        return (
          `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table><thead>` +
          `${cells(token.header, "th")}</thead><tbody>${body}</tbody></table></div>`
        )
      }
    }
  })
  return new Html(marked.parse(text, { async: false }))
}

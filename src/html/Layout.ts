/** The HTML document around every page. */
import * as Accent from "./Accent.ts"
import * as Assets from "./Assets.ts"
import { type Brand, footHtml } from "./Brand.ts"
import { type Child, html, type Html } from "./Html.ts"
import { ENGLISH, type Translation } from "./Translation.ts"

export interface Layout {
  readonly title: string
  readonly kind: "checkout" | "notice" | "documentation" | "dashboard" | "dashboard door"
  /** True if the page has a form for the script to enhance. */
  readonly script?: boolean
  /** Number of folders between Till's base address and the page: 1, the default, for `/checkout/{id}`. */
  readonly depth?: number
  /** The surrounding frame; null if the page is not in a frame. */
  readonly frame?: Frame | null
  /** The merchant's brand; null on pages that belong to no merchant. */
  readonly brand?: Brand | null
  /** True if the page will change soon. The script polls for the change; without it the browser reloads the page. */
  readonly awaitsResult?: boolean
  /** The page's language; English by default. */
  readonly translation?: Translation
  readonly content: Child
}

/** Values that an embedded page reports to the surrounding page. */
export interface Frame {
  /** The only origin that may frame the page and receives its messages. */
  readonly origin: string
  readonly status: string
  /** The address to open when the session is complete; null if there is none. */
  readonly location: string | null
}

const PAYERS = { stylesheet: Assets.stylesheet, script: Assets.script }
const DOCUMENTATION = { stylesheet: Assets.docsStylesheet, script: Assets.docsScript }
const DASHBOARD = { stylesheet: Assets.dashboardStylesheet, script: Assets.dashboardScript }

/** Interval of reloads without a script, long enough to read the page in between. */
const REFRESH_SECONDS = 10

/** Renders the document. File paths are relative because Till may be served below a path. */
export const layout = ({ awaitsResult = false, brand = null, content, depth = 1, ...page }: Layout): Html => {
  const { frame = null, kind, script = awaitsResult, title, translation = ENGLISH } = page
  const files = kind.startsWith("dashboard") ? DASHBOARD : kind === "documentation" ? DOCUMENTATION : PAYERS
  return html`<!doctype html>
    <html lang="${translation.language}" dir="${translation.direction}">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <meta name="color-scheme" content="light dark" />
        <title>${title}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="${folder(depth)}${files.stylesheet.path}" />
        ${brand?.accent != null && html`<link rel="stylesheet" href="${folder(depth)}${Accent.pathOf(brand.accent)}" />`}
        ${awaitsResult && html`<noscript><meta http-equiv="refresh" content="${REFRESH_SECONDS}" /></noscript>`}
        ${frame !== null && html`<base target="_top" />`}
        ${script && html`<script src="${folder(depth)}${files.script.path}" defer></script>`}
        ${frame !== null && html`<script src="${folder(depth)}${Assets.embeddedScript.path}" defer></script>`}
      </head>
      <body class="${kind}" ${frameData(frame)} ${awaitsResult && html`data-awaits-result=""`}>
        ${content} ${brand !== null && footHtml(brand, translation)}
      </body>
    </html> `
}

const frameData = (frame: Frame | null): Child =>
  frame !== null && [
    html`data-embedder="${frame.origin}" data-status="${frame.status}"`,
    frame.location !== null && html` data-location="${frame.location}"`
  ]

const folder = (depth: number): string => Array.from({ length: depth }, () => "..").join("/") || "."

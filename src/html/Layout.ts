/** The document that every page puts its content into. */
import * as Accent from "./Accent.ts"
import * as Assets from "./Assets.ts"
import type { Brand } from "./Brand.ts"
import { footHtml } from "./Brand.ts"
import type { Child, Html } from "./Html.ts"
import { html } from "./Html.ts"

export interface Layout {
  readonly title: string
  /** Class of the body, for the style sheet. */
  readonly kind: "checkout" | "notice" | "documentation" | "dashboard" | "dashboard door"
  /** True if the page has a form, which the script makes comfortable. */
  readonly script?: boolean
  /** Folders between Till's base address and the page: 1, the default, for `/checkout/{id}`. */
  readonly depth?: number
  /** The frame that the page is shown in; null or left out if it stands for itself. */
  readonly frame?: Frame | null
  /** The merchant's brand; null or left out on pages that are no merchant's. */
  readonly brand?: Brand | null
  /** True if the page says something else soon. The script looks, and without it the browser loads the page again. */
  readonly awaitsResult?: boolean
  readonly content: Child
}

/** A page in a frame tells these to the page around it. */
export interface Frame {
  /** Origin of the page around it, the only one that may frame this one and that is told anything. */
  readonly origin: string
  /** Status of the session. */
  readonly status: string
  /** Address to go to when the session is complete; null if there is none. */
  readonly location: string | null
}

const PAYERS = { stylesheet: Assets.stylesheet, script: Assets.script }
const DASHBOARD = { stylesheet: Assets.dashboardStylesheet, script: Assets.dashboardScript }

/** Without a script, a page that awaits a result is loaded again after so long: seldom enough to be read in between. */
const REFRESH_SECONDS = 10

/**
 * A whole document. Its files are named relative to it, because Till's base address may have a path of its own. The
 * language is that of its texts; amounts are in the payer's own.
 */
export const layout = ({ awaitsResult = false, brand = null, content, depth = 1, ...page }: Layout): Html => {
  const { frame = null, kind, script = awaitsResult, title } = page
  const files = kind.startsWith("dashboard") ? DASHBOARD : PAYERS
  return html`<!doctype html>
    <html lang="en">
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
        ${content} ${brand !== null && footHtml(brand)}
      </body>
    </html> `
}

const frameData = (frame: Frame | null): Child =>
  frame !== null && [
    html`data-embedder="${frame.origin}" data-status="${frame.status}"`,
    frame.location !== null && html` data-location="${frame.location}"`
  ]

const folder = (depth: number): string => Array.from({ length: depth }, () => "..").join("/") || "."

/** What all pages have around their content. */
import * as Assets from "./Assets.ts"
import type { Child, Html } from "./Html.ts"
import { html } from "./Html.ts"

export interface Layout {
  readonly title: string
  /** Class of the body, for the style sheet. */
  readonly kind: "checkout" | "notice" | "documentation"
  /** Whether the page has a form that the script makes comfortable. */
  readonly script?: boolean
  /** How many folders the page lies below Till's base address: 1 for `/checkout/{id}`, which is what most are. */
  readonly depth?: number
  /** The frame that the page is shown in; null or left out if it stands for itself. */
  readonly frame?: Frame | null
  readonly content: Child
}

/** What a page in a frame tells the page around it. */
export interface Frame {
  /** The origin that it tells this to, which is the only one that may frame it. */
  readonly origin: string
  /** Status of the session. */
  readonly status: string
  /** Where to go when the session is complete, if anywhere. */
  readonly location: string | null
}

/**
 * A whole document. Its files are named relative to it, because Till's base address may have a path of its own. The
 * language is that of its texts; amounts are in the payer's own.
 */
export const layout = ({ content, depth = 1, frame = null, kind, script, title }: Layout): Html =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <meta name="color-scheme" content="light dark" />
        <title>${title}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="${folder(depth)}${Assets.stylesheet.path}" />
        ${frame !== null && html`<base target="_top" />`}
        ${script === true && html`<script src="${folder(depth)}${Assets.script.path}" defer></script>`}
        ${frame !== null && html`<script src="${folder(depth)}${Assets.embeddedScript.path}" defer></script>`}
      </head>
      <body class="${kind}" ${frameData(frame)}>
        ${content}
      </body>
    </html> `

const frameData = (frame: Frame | null): Child =>
  frame !== null && [
    html`data-embedder="${frame.origin}" data-status="${frame.status}"`,
    frame.location !== null && html` data-location="${frame.location}"`
  ]

const folder = (depth: number): string => Array.from({ length: depth }, () => "..").join("/") || "."

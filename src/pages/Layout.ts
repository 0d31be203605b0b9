/** The document that every page puts its content into. */
import * as Assets from "./Assets.ts"
import type { Child, Html } from "./Html.ts"
import { html } from "./Html.ts"

export interface Layout {
  readonly title: string
  /** Class of the body, for the style sheet. */
  readonly kind: "checkout" | "notice" | "documentation"
  /** True if the page has a form, which the script makes comfortable. */
  readonly script?: boolean
  /** Folders between Till's base address and the page: 1, the default, for `/checkout/{id}`. */
  readonly depth?: number
  /** The frame that the page is shown in; null or left out if it stands for itself. */
  readonly frame?: Frame | null
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

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
  readonly content: Child
}

/** A whole document. The language is that of its texts; amounts are in the payer's own. */
export const layout = ({ content, kind, script, title }: Layout): Html =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <meta name="color-scheme" content="light dark" />
        <title>${title}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="${Assets.stylesheet.path}" />
        ${script === true && html`<script src="${Assets.script.path}" defer></script>`}
      </head>
      <body class="${kind}">
        ${content}
      </body>
    </html> `

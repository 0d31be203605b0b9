/**
 * The content of a mail, and its two forms: plain text, and simple HTML without pictures, scripts or anything that a
 * reader's program would load (semantics mail.content).
 */
import { paletteOf } from "../html/Accent.ts"
import { type Child, html } from "../html/Html.ts"
import type { Translation } from "../html/Translation.ts"

export interface Letter {
  readonly translation: Translation
  /** The name of the sender, whose address is the installation's; null for the installation's name. */
  readonly sender: string | null
  /** The address for answers; null for the sender's. */
  readonly replyTo: string | null
  readonly subject: string
  readonly title: string
  /** Shown above the title: the mail is about no real money. */
  readonly warning: string | null
  readonly paragraphs: ReadonlyArray<string>
  readonly button: { readonly label: string; readonly url: string } | null
  /** Names and amounts, the sum last. */
  readonly rows: ReadonlyArray<readonly [name: string, value: string]>
  readonly facts: ReadonlyArray<readonly [name: string, value: string]>
  /** Small print, and links below it. */
  readonly notes: ReadonlyArray<string>
  readonly links: ReadonlyArray<readonly [label: string, url: string]>
  /** `#rrggbb`, the colour of the button; null for the default. */
  readonly accent: string | null
}

/** The parts that most letters leave empty. */
export const PLAIN = {
  sender: null,
  replyTo: null,
  warning: null,
  button: null,
  rows: [],
  facts: [],
  notes: [],
  links: [],
  accent: null
} as const satisfies Partial<Letter>

/** Joins the lines of a value: a text from outside cannot begin a line of its own. */
const inOneLine = (text: string): string => text.replaceAll(/\s+/gu, " ").trim()

export const textOf = (letter: Letter): string => {
  const { button, facts, links, notes, paragraphs, rows, title, warning } = letter
  const pair = ([name, value]: readonly [string, string]) =>
    value === "" ? inOneLine(name) : `${inOneLine(name)}: ${inOneLine(value)}`
  const blocks = [
    warning === null ? "" : `[${inOneLine(warning)}]`,
    inOneLine(title),
    ...paragraphs.map(inOneLine),
    button === null ? "" : `${button.label}:\n${button.url}`,
    rows.map(pair).join("\n"),
    facts.map(pair).join("\n"),
    notes.length + links.length === 0 ? "" : ["-- ", ...notes.map(inOneLine), ...links.map(pair)].join("\n")
  ]
  return `${blocks.filter((block) => block !== "").join("\n\n")}\n`
}

const DEFAULT_ACCENT = "#3a3f8f"

// Programs that read mail ignore style sheets.
const FONT =
  "font-family:system-ui,-apple-system,Segoe UI,Roboto,Helvetica,Arial,sans-serif;font-size:16px;line-height:1.5"
const SHEET = `max-width:520px;margin:0 auto;padding:28px;background:#ffffff;border-radius:12px;${FONT}`
const BUTTON = "display:inline-block;padding:12px 20px;border-radius:8px;text-decoration:none;font-weight:600"
const LINK = "color:#3a3f8f;margin-inline-end:16px"

const buttonHtml = ({ accent, button }: Letter): Child => {
  if (button === null) return null
  const { accent: ground, "on-accent": text } = paletteOf(accent ?? DEFAULT_ACCENT, "light")
  return html`<p style="margin:24px 0">
      <a href="${button.url}" style="${BUTTON};background:${ground};color:${text}">${button.label}</a>
    </p>
    <p style="font-size:13px;color:#5b6070;word-break:break-all">${button.url}</p>`
}

const tableHtml = (rows: Letter["rows"], direction: "ltr" | "rtl", lastIsSum: boolean): Child =>
  rows.length > 0 &&
  html`<table
    role="presentation"
    width="100%"
    cellpadding="0"
    cellspacing="0"
    style="border-collapse:collapse;margin:16px 0"
  >
    ${rows.map(([name, value], index) => {
      const weight = lastIsSum && index === rows.length - 1 ? "600" : "400"
      return html`<tr>
        <td style="padding:8px 0;border-top:1px solid #d9dbe3;font-weight:${weight}"><bdi>${name}</bdi></td>
        <td
          align="${direction === "rtl" ? "left" : "right"}"
          style="padding:8px 0;border-top:1px solid #d9dbe3;font-weight:${weight}"
        >
          <bdi>${value}</bdi>
        </td>
      </tr>`
    })}
  </table>`

const footHtml = ({ links, notes }: Letter): Child =>
  notes.length + links.length > 0 && [
    html`<hr style="border:0;border-top:1px solid #d9dbe3;margin:24px 0 16px" />`,
    notes.map((note) => html`<p style="margin:0 0 8px;font-size:13px;color:#5b6070">${note}</p>`),
    links.length > 0 &&
      html`<p style="margin:0;font-size:13px">
        ${links.map(([label, url]) => html`<a href="${url}" style="${LINK}">${label}</a> `)}
      </p>`
  ]

export const htmlOf = (letter: Letter): string => {
  const { facts, paragraphs, rows, sender, title, translation, warning } = letter
  const { direction, language } = translation
  return html`<!doctype html>
    <html lang="${language}" dir="${direction}">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${letter.subject}</title>
      </head>
      <body style="margin:0;padding:24px 12px;background:#f4f5f8;color:#1c1f2a">
        <div style="${SHEET}">
          ${
            warning !== null &&
            html`<p
              style="margin:0 0 16px;padding:8px 12px;border-radius:8px;background:#fff3d6;color:#5c3d00;font-size:14px"
            >
              ${warning}
            </p>`
          }
          ${sender !== null && html`<p style="margin:0 0 8px;font-size:14px;color:#5b6070"><bdi>${sender}</bdi></p>`}
          <h1 style="margin:0 0 16px;font-size:22px;line-height:1.3">${title}</h1>
          ${paragraphs.map((text) => html`<p style="margin:0 0 12px">${text}</p>`)} ${buttonHtml(letter)}
          ${tableHtml(rows, direction, true)} ${tableHtml(facts, direction, false)} ${footHtml(letter)}
        </div>
      </body>
    </html>`.text
}

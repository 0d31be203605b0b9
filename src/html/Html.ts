/**
 * HTML templates whose values are escaped.
 *
 * No value can end the text or the quoted attribute that contains it. Only the result of another template is inserted
 * as HTML. Templates do not check where a URL leads: callers check URLs before they put them into `href` or `action`
 * (`RedirectUrl`).
 */

export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** A value in a template; null, undefined and false render as nothing. */
export type Child = Html | string | number | null | undefined | false | ReadonlyArray<Child>

/**
 * Escapes text for an element or a quoted attribute, and removes NUL, which HTML cannot contain. One `replaceAll` per
 * character takes a quarter of the time of a single pass with a callback.
 */
export const escape = (raw: string): string =>
  raw
    .replaceAll("\0", "")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;")
    // Old parsers treat it as a quote.
    .replaceAll("`", "&#96;")

/** Renders a template: `` html`<p title="${title}">${text}</p>` ``. Throws for an unquoted attribute. */
export const html = (strings: TemplateStringsArray, ...children: ReadonlyArray<Child>): Html => {
  const parts = partsOf(strings)
  let text = parts[0]!
  for (const [index, child] of children.entries()) text += render(child) + parts[index + 1]!
  return new Html(text)
}

const render = (child: Child): string => {
  if (child instanceof Html) return child.text
  if (child === null || child === undefined || child === false) return ""
  return typeof child === "object" ? child.map(render).join("") : escape(String(child))
}

const known = new WeakMap<TemplateStringsArray, ReadonlyArray<string>>()

/** The template's static parts, validated once, without the indentation of the source. */
const partsOf = (strings: TemplateStringsArray): ReadonlyArray<string> => {
  const before = known.get(strings)
  if (before !== undefined) return before
  if (strings.slice(0, -1).some((part) => /=\s*$/.test(part))) {
    throw new Error(`An attribute without quotes: ${strings.join("…")}`)
  }
  const parts = strings.map((part) => part.replaceAll(/(?<!\s)\s*\n\s*/g, "\n"))
  known.set(strings, parts)
  return parts
}

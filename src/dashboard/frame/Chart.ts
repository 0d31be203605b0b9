/**
 * Charts as SVG, made on the server. Few kinds are needed, and a page's policy lets no style in that a library would
 * write, so they are made here: shapes with classes, whose colours the style sheet has.
 *
 * A chart is a picture with a name; the figures are in the table behind it, for whoever cannot see the one or wants to
 * copy the other.
 */
import type { Child, Html } from "../../html/Html.ts"
import { html } from "../../html/Html.ts"

export interface Bar {
  /** A time in UTC: under the bar, or where a pointer is on it. */
  readonly label: string
  /** From 0. */
  readonly value: number
  /** The value in words: `43.21 USD`. */
  readonly text: string
  /** How much of the value is of the second kind, such as what failed. */
  readonly part?: number
}

export interface Chart {
  /** What it shows: `Volume per day`. */
  readonly title: string
  readonly bars: ReadonlyArray<Bar>
  /** What values are called in the table. */
  readonly unit: string
  /** What the part of the second kind is called. */
  readonly partName?: string
}

const WIDTH = 600
const HEIGHT = 120
const GAP = 0.25

const rounded = (value: number): string => String(Math.round(value * 100) / 100)

const barOf = (bar: Bar, index: number, width: number, max: number): Child => {
  const height = max === 0 ? 0 : (bar.value / max) * HEIGHT
  const part = max === 0 ? 0 : ((bar.part ?? 0) / max) * HEIGHT
  const place = (y: number, tall: number, kind: string) =>
    html`<rect
      class="${kind}"
      x="${rounded(index * width + (width * GAP) / 2)}"
      y="${rounded(y)}"
      width="${rounded(width * (1 - GAP))}"
      height="${rounded(tall)}"
    />`
  return html`<g>
    <title>${bar.label}: ${bar.text}</title>
    ${place(0, HEIGHT, "room")} ${place(HEIGHT - height, height, "bar")}
    ${part > 0 && place(HEIGHT - part, part, "part")}
  </g>`
}

/** The highest bar is as high as the chart: its value is the scale. */
const scaleOf = (bars: ReadonlyArray<Bar>, max: number): Child =>
  max > 0 && html`<small aria-hidden="true">up to ${topOf(bars.find(({ value }) => value === max)!)}</small>`
const topOf = ({ part = 0, text, value }: Bar): string => (part > 0 ? String(value) : text)

export const chart = ({ bars, partName, title, unit }: Chart): Html => {
  const max = Math.max(0, ...bars.map(({ value }) => value))
  const width = WIDTH / Math.max(bars.length, 1)
  const [first, last] = [bars[0], bars.at(-1)]
  return html`<figure class="chart">
    <figcaption>
      ${title} ${partName !== undefined && html`<small class="key part">${partName}</small>`} ${scaleOf(bars, max)}
    </figcaption>
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${title}">
      ${bars.map((bar, index) => barOf(bar, index, width, max))}
    </svg>
    <div class="axis" aria-hidden="true"><span>${first?.label}</span><span>UTC</span><span>${last?.label}</span></div>
    <details>
      <summary>As a table</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">When (UTC)</th>
            <th scope="col" class="end">${unit}</th>
          </tr>
        </thead>
        <tbody>
          ${bars.map(
            ({ label, text }) =>
              html`<tr>
                <td>${label}</td>
                <td class="end">${text}</td>
              </tr>`
          )}
        </tbody>
      </table>
    </details>
  </figure>`
}

/** One of several things that are compared: a line with its name, its bar and its value. */
export interface Ranked {
  readonly name: string
  /** Where the name leads. */
  readonly href?: string
  /** From 0, one of each kind: they make the bar together. */
  readonly values: ReadonlyArray<number>
  /** The values in words: `89 taken, 11 failing`. */
  readonly text: string
}

export interface Ranking {
  readonly title: string
  /** What the values are called, if there are several. */
  readonly kinds?: ReadonlyArray<string>
  /** In the order in which they are shown. */
  readonly ranked: ReadonlyArray<Ranked>
  /** True for bars of one length, which show the shares of their kinds, however little one is beside the others. */
  readonly isShares?: boolean
  readonly table: Html
}

/** Classes of the kinds, in their order. */
const KINDS = ["bar", "part", "rest"] as const

const sumOf = (values: ReadonlyArray<number>): number => values.reduce((sum, value) => sum + value, 0)

const lineOf = ({ href, name, text, values }: Ranked, max: number): Html => {
  const widths = values.map((value) => (max === 0 ? 0 : (value / max) * WIDTH))
  const named = html`<bdi>${name}</bdi>`
  return html`<li>
    ${href === undefined ? html`<span>${named}</span>` : html`<a href="${href}">${named}</a>`}
    <svg viewBox="0 0 ${WIDTH} 1" preserveAspectRatio="none" aria-hidden="true">
      ${widths.map(
        (width, i) =>
          width > 0 &&
          html`<rect
            class="${KINDS[i]!}"
            x="${rounded(sumOf(widths.slice(0, i)))}"
            width="${rounded(width)}"
            height="1"
          />`
      )}
    </svg>
    <span>${text}</span>
  </li>`
}

/** Bars that lie one below the other. The longest is as long as there is room: its value is the scale. */
export const ranking = ({ isShares = false, kinds = [], ranked, table, title }: Ranking): Html => {
  const max = Math.max(0, ...ranked.map(({ values }) => sumOf(values)))
  return html`<figure class="chart">
    <figcaption>${title} ${kinds.map((kind, i) => html`<small class="key ${KINDS[i]!}">${kind}</small>`)}</figcaption>
    <ul class="ranking">
      ${ranked.map((one) => lineOf(one, isShares ? sumOf(one.values) : max))}
    </ul>
    <details>
      <summary>As a table</summary>
      ${table}
    </details>
  </figure>`
}

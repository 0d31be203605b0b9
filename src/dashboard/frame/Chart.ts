/**
 * Charts as SVG, drawn on the server. A chart library would write inline styles, which the page's content security
 * policy forbids; these charts are shapes with classes, coloured by the style sheet.
 *
 * Each chart is an image with a name. The table behind it has the same figures, for screen readers and for copying.
 */
import { type Child, html, type Html } from "../../html/Html.ts"

export interface Bar {
  /** A time: below the bar, or in the bar's tooltip. */
  readonly label: string
  /** Non-negative. */
  readonly value: number
  /** The value as text: `43.21 USD`. */
  readonly text: string
  /** The share of the value that belongs to the second kind, such as failed payments. */
  readonly part?: number
}

export interface Chart {
  /** The subject of the chart: `Volume per day`. */
  readonly title: string
  readonly bars: ReadonlyArray<Bar>
  /** Column header of the values in the table. */
  readonly unit: string
  /** Name of the second kind. */
  readonly partName?: string
  /** The time zone of the labels. */
  readonly zone: string
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

/** The chart's scale: the value of the highest bar, which fills the chart's height. */
const scaleOf = (bars: ReadonlyArray<Bar>, max: number): Child =>
  max > 0 && html`<small aria-hidden="true">up to ${topOf(bars.find(({ value }) => value === max)!)}</small>`
const topOf = ({ part = 0, text, value }: Bar): string => (part > 0 ? String(value) : text)

export const chart = ({ bars, partName, title, unit, zone }: Chart): Html => {
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
    <div class="axis" aria-hidden="true">
      <span>${first?.label}</span><span>${zone}</span><span>${last?.label}</span>
    </div>
    <details>
      <summary>Show as table</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">Time (${zone})</th>
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

/** One line of a comparison: its name, bar and value. */
export interface Ranked {
  readonly name: string
  /** Target of the name's link. */
  readonly href?: string
  /** Non-negative, one per kind; together they make up the bar. */
  readonly values: ReadonlyArray<number>
  /** The values as text: `89 delivered, 11 failing`. */
  readonly text: string
}

export interface Ranking {
  readonly title: string
  /** Names of the kinds, if there are several. */
  readonly kinds?: ReadonlyArray<string>
  /** In display order. */
  readonly ranked: ReadonlyArray<Ranked>
  /** True for bars of equal length, which compare the shares within each line instead of the lines with each other. */
  readonly isShares?: boolean
  readonly table: Html
}

/** CSS classes of the kinds, in order. */
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

/** Horizontal bars below one another. The longest bar takes the full width and sets the scale. */
export const ranking = ({ isShares = false, kinds = [], ranked, table, title }: Ranking): Html => {
  const max = Math.max(0, ...ranked.map(({ values }) => sumOf(values)))
  return html`<figure class="chart">
    <figcaption>${title} ${kinds.map((kind, i) => html`<small class="key ${KINDS[i]!}">${kind}</small>`)}</figcaption>
    <ul class="ranking">
      ${ranked.map((one) => lineOf(one, isShares ? sumOf(one.values) : max))}
    </ul>
    <details>
      <summary>Show as table</summary>
      ${table}
    </details>
  </figure>`
}

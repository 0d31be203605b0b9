/** A text as a QR code, dark on light in both colour schemes: many readers cannot read an inverted code. */
import { encode } from "uqr"
import { html, type Html } from "../../html/Html.ts"

/** Width of the quiet zone in modules (ISO/IEC 18004). */
const MARGIN = 4
const PIXELS = 240

/** The dark modules as an SVG path; neighbours in a row form one rectangle. */
const pathOf = (lines: ReadonlyArray<ReadonlyArray<boolean>>): string =>
  lines
    .flatMap((line, y) =>
      line.map((isDark, x) => {
        if (!isDark || line[x - 1] === true) return ""
        const end = line.indexOf(false, x)
        return `M${x} ${y}h${end - x}v1h${x - end}z`
      })
    )
    .join("")

/** Holds up to about 2,300 bytes. Error correction restores 15 % of the code. */
const picture = (text: string, label: string): Html => {
  const { data, size } = encode(text, { ecc: "M", border: MARGIN })
  return html`<svg
    xmlns="http://www.w3.org/2000/svg"
    viewBox="0 0 ${size} ${size}"
    width="${PIXELS}"
    height="${PIXELS}"
    shape-rendering="crispEdges"
    role="img"
    aria-label="${label}"
  >
    <rect width="${size}" height="${size}" fill="#fff" />
    <path d="${pathOf(data)}" fill="#000" />
  </svg>`
}

export const qrCode = ({
  label,
  name,
  text
}: {
  readonly text: string
  readonly label: string
  readonly name: string
}) => {
  const svg = picture(text, label)
  const file = `data:image/svg+xml,${encodeURIComponent(svg.text)}`
  return html`<p>${svg}</p>
    <p><a class="button" download="${name}" href="${file}">Download QR code</a></p>`
}

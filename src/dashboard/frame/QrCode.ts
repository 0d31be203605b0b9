/**
 * A text as a QR code, for whoever has it on a screen or on paper and a phone at hand. It is a picture: what it says
 * has to stand beside it. Dark on light with its margin, whatever the page's colours are, because many readers know
 * nothing else.
 */
import { encode } from "uqr"
import type { Html } from "../../html/Html.ts"
import { html } from "../../html/Html.ts"

/** Readers want so many modules of margin (ISO/IEC 18004). */
const MARGIN = 4
const PIXELS = 240

/** The dark modules of each line, neighbours as one rectangle, as a path. */
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

/** Up to about 2,300 bytes fit in. A sixth of the code may be lost to dirt. */
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

/** The code, and a link that saves it as a file of that name. */
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
    <p><a class="button" download="${name}" href="${file}">Save the QR code</a></p>`
}

/**
 * A text as a QR code, as SVG and as PNG, dark on light in both colour schemes: many readers cannot read an inverted
 * code.
 */
import { crc32, deflateSync } from "node:zlib"
import { encode } from "uqr"
import { html, type Html } from "../../html/Html.ts"

/** Width of the quiet zone in modules (ISO/IEC 18004). */
const MARGIN = 4
/** Width on the page. */
const PIXELS = 240
/** Width of a module in the PNG file: enough for print at 300 dpi, about 8 cm wide. */
const MODULE_PIXELS = 24

type Modules = ReadonlyArray<ReadonlyArray<boolean>>

/** The dark modules as an SVG path; neighbours in a row form one rectangle. */
const pathOf = (lines: Modules): string =>
  lines
    .flatMap((line, y) =>
      line.map((isDark, x) => {
        if (!isDark || line[x - 1] === true) return ""
        const end = line.indexOf(false, x)
        return `M${x} ${y}h${end - x}v1h${x - end}z`
      })
    )
    .join("")

const picture = (data: Modules, label: string): Html => {
  const size = data.length
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

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/** A chunk of a PNG file: length, name, content, and checksum of name and content. */
const chunk = (name: string, content: Buffer): Buffer => {
  const named = Buffer.concat([Buffer.from(name, "latin1"), content])
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(content.length)
  checksum.writeUInt32BE(crc32(named))
  return Buffer.concat([length, named, checksum])
}

/** The modules as a PNG image of one bit per pixel, black or white. */
export const pngOf = (data: Modules): Buffer => {
  const pixels = data.length * MODULE_PIXELS
  const header = Buffer.alloc(13)
  header.writeUInt32BE(pixels, 0)
  header.writeUInt32BE(pixels, 4)
  // One bit of grey per pixel; compression, filter and interlace are the standard's defaults.
  header.writeUInt8(1, 8)
  // A line begins with its filter, 0 for none.
  const lines = data.map((line) => {
    const bytes = Buffer.alloc(1 + pixels / 8)
    for (const [x, isDark] of line.entries()) {
      if (!isDark) bytes.fill(0xff, 1 + (x * MODULE_PIXELS) / 8, 1 + ((x + 1) * MODULE_PIXELS) / 8)
    }
    return bytes
  })
  const image = Buffer.concat(lines.flatMap((line) => Array.from({ length: MODULE_PIXELS }, () => line)))
  return Buffer.concat([
    SIGNATURE,
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(image)),
    chunk("IEND", Buffer.alloc(0))
  ])
}

/** The code on the page. */
export const qrPicture = ({ label, text }: { readonly text: string; readonly label: string }): Html =>
  picture(encode(text, { ecc: "M", border: MARGIN }).data, label)

/**
 * The code on the page, with both files to download. Holds up to about 2,300 bytes; error correction restores 15 % of
 * the code.
 */
export const qrCode = ({
  label,
  name,
  text
}: {
  readonly text: string
  readonly label: string
  /** Name of the files, without an ending. */
  readonly name: string
}): Html => {
  const { data } = encode(text, { ecc: "M", border: MARGIN })
  const svg = picture(data, label)
  const file = (type: string, content: string, ending: string, title: string) =>
    html`<a class="button" download="${name}.${ending}" href="data:${type},${content}">${title}</a>`
  return html`<p>${svg}</p>
    <p class="buttons">
      ${file("image/svg+xml", encodeURIComponent(svg.text), "svg", "Download QR code (SVG)")}
      ${file("image/png;base64", pngOf(data).toString("base64"), "png", "Download QR code (PNG)")}
    </p>`
}

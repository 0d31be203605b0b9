/** QR codes equal those of another encoder, module by module (semantics dashboard.payment_links). */
import { assert, describe, it } from "@effect/vitest"
import { crc32, inflateSync } from "node:zlib"
import { qrCode } from "../../src/dashboard/frame/QrCode.ts"

/** `https://pay.example/c/1` by python-qrcode 8.2: bytes, version 2, level M, mask 1. */
const KNOWN = `
#######.#..##.#...#######
#.....#....##.#...#.....#
#.###.#.#...#####.#.###.#
#.###.#..#.#.##.#.#.###.#
#.###.#...#..##...#.###.#
#.....#.#.....#.#.#.....#
#######.#.#.#.#.#.#######
.........#.#..#.#........
#.#...##..##..#.#..#..#.#
.#.##..####..#.##.##.#.##
#.#.#.###.#.#..#.######.#
#..........##.#..#...#...
##..#.###.#.#..##.#.....#
.##..#.##...#..#####...##
###..##..#..#.####...##.#
...#.......##.#..#.###...
##.######.#...#.#####..#.
........###..#.##...#...#
#######.#.##....#.#.#...#
#.....#...#...###...#..##
#.###.#...###.#######...#
#.###.#.....#.##....#.##.
#.###.#.#.#.###.##.###.##
#.....#...###.#.#####....
#######.##..###.##...#..#`.trim()

const MARGIN = 4

/** The modules that an image's path fills. */
const modulesIn = (svg: string): string => {
  const size = Number(/viewBox="0 0 (\d+) /.exec(svg)![1])
  const lines = Array.from({ length: size }, () => Array<string>(size).fill("."))
  const path = /<path d="([^"]+)"/.exec(svg)![1]!
  const rectangles = [...path.matchAll(/M(\d+) (\d+)h(\d+)v1h-(\d+)z/g)]
  assert.strictEqual(rectangles.map(([all]) => all).join(""), path)
  for (const [, x, y, width, back] of rectangles) {
    assert.strictEqual(width, back)
    lines[Number(y)]!.fill("#", Number(x), Number(x) + Number(width))
  }
  const inner = lines.slice(MARGIN, size - MARGIN).map((line) => line.slice(MARGIN, size - MARGIN).join(""))
  const dark = (text: string) => text.split("#").length
  assert.strictEqual(dark(inner.join("")), dark(lines.flat().join("")), "the margin is light")
  return inner.join("\n")
}

/** The chunks of a PNG file, whose checksums must be right. */
const chunksOf = (png: Buffer) => {
  const chunks: Array<{ readonly name: string; readonly content: Buffer }> = []
  for (let at = 8; at < png.length;) {
    const end = at + 8 + png.readUInt32BE(at)
    assert.strictEqual(png.readUInt32BE(end), crc32(png.subarray(at + 4, end)))
    chunks.push({ name: png.toString("latin1", at + 4, at + 8), content: png.subarray(at + 8, end) })
    at = end + 4
  }
  return chunks
}

describe("a QR code", () => {
  it("has the modules of its text, on the page and in the file", () => {
    const { text } = qrCode({ text: "https://pay.example/c/1", label: "A <b>", name: "link" })
    assert.strictEqual(modulesIn(text), KNOWN)
    assert.include(text, 'aria-label="A &lt;b&gt;"')
    const file = decodeURIComponent(/href="data:image\/svg\+xml,([^"]+)"/.exec(text)![1]!)
    assert.strictEqual(modulesIn(file), KNOWN)
    assert.match(file, /^<svg\s+xmlns="http:\/\/www\.w3\.org\/2000\/svg"/)
  })

  it("is a PNG image of the same modules", () => {
    const { text } = qrCode({ text: "https://pay.example/c/1", label: "", name: "link" })
    const png = Buffer.from(/href="data:image\/png;base64,([^"]+)"/.exec(text)![1]!, "base64")
    assert.strictEqual(png.subarray(0, 8).toString("latin1"), "\x89PNG\r\n\x1a\n")
    const chunks = chunksOf(png)
    assert.deepStrictEqual(
      chunks.map(({ name }) => name),
      ["IHDR", "IDAT", "IEND"]
    )
    const header = chunks[0]!.content
    const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)]
    // One bit of grey per pixel, with the standard's compression, filters and order of lines.
    assert.deepStrictEqual([...header.subarray(8)], [1, 0, 0, 0, 0])
    const scale = width / (KNOWN.split("\n").length + 2 * MARGIN)
    assert.strictEqual(height, width)
    assert.isTrue(Number.isInteger(scale) && scale >= 10, "large enough to print")
    const pixels = inflateSync(chunks[1]!.content)
    const bytes = 1 + Math.ceil(width / 8)
    assert.strictEqual(pixels.length, height * bytes)
    const isLight = (x: number, y: number) => ((pixels[y * bytes + 1 + (x >> 3)]! >> (7 - (x & 7))) & 1) === 1
    const shown = Array.from({ length: height }, (_, y) =>
      Array.from({ length: width }, (_, x) => (isLight(x, y) ? "." : "#")).join("")
    )
    const blank = ".".repeat(width)
    const margin = ".".repeat(MARGIN * scale)
    const enlarged = KNOWN.split("\n").flatMap((line) => {
      const wide = margin + [...line].map((module) => module.repeat(scale)).join("") + margin
      return Array.from({ length: scale }, () => wide)
    })
    const border = Array.from({ length: MARGIN * scale }, () => blank)
    assert.strictEqual(shown.join("\n"), [...border, ...enlarged, ...border].join("\n"))
    for (let y = 0; y < height; y++) assert.strictEqual(pixels[y * bytes], 0, "a line has no filter")
  })

  it("holds the longest address", () => {
    const of = (length: number) => modulesIn(qrCode({ text: "x".repeat(length), label: "", name: "" }).text)
    assert.isAbove(of(2048).length, of(24).length)
  })
})

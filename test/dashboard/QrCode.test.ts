/** QR codes equal those of another encoder, module by module (semantics dashboard.payment_links). */
import { assert, describe, it } from "@effect/vitest"
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

describe("a QR code", () => {
  it("has the modules of its text, on the page and in the file", () => {
    const { text } = qrCode({ text: "https://pay.example/c/1", label: "A <b>", name: "link.svg" })
    assert.strictEqual(modulesIn(text), KNOWN)
    assert.include(text, 'aria-label="A &lt;b&gt;"')
    const file = decodeURIComponent(/href="data:image\/svg\+xml,([^"]+)"/.exec(text)![1]!)
    assert.strictEqual(modulesIn(file), KNOWN)
    assert.match(file, /^<svg\s+xmlns="http:\/\/www\.w3\.org\/2000\/svg"/)
  })

  it("holds the longest address", () => {
    const of = (length: number) => modulesIn(qrCode({ text: "x".repeat(length), label: "", name: "" }).text)
    assert.isAbove(of(2048).length, of(24).length)
  })
})

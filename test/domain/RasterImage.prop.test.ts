/**
 * Uploaded images: those that browsers can show are kept without metadata, everything else is refused (semantics
 * pages.logo). `Settings.browser` shows in a real browser that what is kept is still the same picture.
 */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { IMAGE_BYTES_MAX, IMAGE_SIDE_MAX, type RasterImage, readImage } from "../../src/domain/RasterImage.ts"
import type { ImageProblem } from "../../src/domain/ImageParts.ts"
import { PNG_SIGNATURE, png, pngChunk, pngHeader } from "../support/fixtures/Images.ts"

const SECRET = "48.2082 N, 16.3738 E <script>alert(1)</script>"

const kept = (file: Buffer): RasterImage => {
  const image = readImage(file)
  if (typeof image === "string") throw new Error(image)
  assert.notInclude(Buffer.from(image.bytes).toString("latin1"), SECRET)
  // A second reading changes nothing.
  assert.deepStrictEqual(readImage(Buffer.from(image.bytes)), image)
  return image
}

/* PNG */

const IEND = pngChunk("IEND", Buffer.alloc(0))
const IDAT = pngChunk("IDAT", Buffer.from("pixels"))
const ihdr = (change: (header: Buffer) => void = () => undefined, width = 8, height = 6) => {
  const header = pngHeader(width, height)
  change(header)
  return pngChunk("IHDR", header)
}
const pngOf = (...chunks: ReadonlyArray<Buffer>) => Buffer.concat([PNG_SIGNATURE, ...chunks])

/* JPEG */

const segment = (marker: number, data: Uint8Array): Buffer => {
  const head = Buffer.from([0xff, marker, 0, 0])
  head.writeUInt16BE(data.length + 2, 2)
  return Buffer.concat([head, data])
}
const text = (value: string) => Buffer.from(value, "latin1")
const frame = (width = 8, height = 6, marker = 0xc0) =>
  segment(marker, Buffer.from([8, height >> 8, height & 255, width >> 8, width & 255, 3, 1, 17, 0, 2, 17, 1, 3, 17, 1]))
const SCAN = Buffer.concat([
  segment(0xda, Buffer.from([3, 1, 0, 2, 17, 3, 17, 0, 63, 0])),
  Buffer.from([1, 2, 0xff, 0x00, 3, 0xff, 0xd0, 4, 0xff, 0xff, 0x00, 5])
])
const SOI = Buffer.from([0xff, 0xd8])
const EOI = Buffer.from([0xff, 0xd9])
const jpegOf = (...segments: ReadonlyArray<Buffer>) => Buffer.concat([SOI, ...segments])
const tables = segment(0xdb, Buffer.alloc(65, 1))

/** EXIF data with an orientation, in either order of bytes, and a text behind it. */
const exif = (order: "II" | "MM", orientation: number) => {
  const tiff = Buffer.alloc(26)
  const isLittle = order === "II"
  const uint16 = (value: number, at: number) =>
    isLittle ? tiff.writeUInt16LE(value, at) : tiff.writeUInt16BE(value, at)
  const uint32 = (value: number, at: number) =>
    isLittle ? tiff.writeUInt32LE(value, at) : tiff.writeUInt32BE(value, at)
  tiff.write(order, "latin1")
  uint16(42, 2)
  uint32(8, 4)
  uint16(1, 8)
  uint16(0x0112, 10)
  uint16(3, 12)
  uint32(1, 14)
  uint16(orientation, 18)
  return segment(0xe1, Buffer.concat([text("Exif\0\0"), tiff, text(SECRET)]))
}

/* WebP */

const riff = (...chunks: ReadonlyArray<readonly [name: string, data: Buffer]>) => {
  const parts = chunks.flatMap(([name, data]) => {
    const head = Buffer.alloc(8)
    head.write(name, "latin1")
    head.writeUInt32LE(data.length, 4)
    return [head, data, Buffer.alloc(data.length % 2)]
  })
  const content = Buffer.concat([text("WEBP"), ...parts])
  const head = Buffer.from("RIFF\0\0\0\0", "latin1")
  head.writeUInt32LE(content.length, 4)
  return Buffer.concat([head, content])
}
const LOSSY = Buffer.from([0x10, 0, 0, 0x9d, 0x01, 0x2a, 8, 0, 6, 0, 1, 2, 3])
const LOSSLESS = Buffer.from([0x2f, 7, 0x40, 1, 0, 9])
const extended = (flags: number, width = 8, height = 6) =>
  Buffer.from([flags, 0, 0, 0, width - 1, 0, 0, height - 1, 0, 0])

describe("an uploaded image", () => {
  it("pages.logo: may be a PNG, and loses all but pixels and colours", () => {
    const plain = pngOf(ihdr(), IDAT, IDAT, IEND)
    const long = pngOf(
      ihdr(),
      pngChunk("tEXt", text(SECRET)),
      pngChunk("eXIf", text(SECRET)),
      pngChunk("acTL", Buffer.alloc(8)),
      IDAT,
      IDAT,
      pngChunk("iTXt", text(SECRET)),
      IEND,
      text(SECRET)
    )
    const image = kept(long)
    assert.deepInclude(image, { type: "image/png", width: 8, height: 6 })
    assert.isTrue(plain.equals(image.bytes))
    const colored = pngOf(
      ihdr((header) => header.set([8, 3], 8)),
      pngChunk("sRGB", Buffer.alloc(1)),
      pngChunk("PLTE", Buffer.alloc(6)),
      pngChunk("tRNS", Buffer.alloc(2)),
      IDAT,
      IEND
    )
    assert.isTrue(colored.equals(kept(colored).bytes))
    assert.isTrue(png({ width: 3, height: 2 }).equals(kept(png({ width: 3, height: 2 })).bytes))
  })

  it("pages.logo: may be a JPEG, and loses all but pixels, colours and orientation", () => {
    const adobe = segment(0xee, Buffer.from([...text("Adobe"), 0, 100, 0, 0, 0, 0, 1]))
    const long = jpegOf(
      segment(0xe0, text("JFIF\0\u0001\u0002\0\0\u0001\0\u0001\0\0")),
      exif("II", 6),
      segment(0xe2, text(`ICC_PROFILE\0${SECRET}`)),
      segment(0xfe, text(SECRET)),
      adobe,
      tables,
      frame(),
      segment(0xc4, Buffer.alloc(20)),
      SCAN,
      SCAN,
      EOI,
      text(SECRET)
    )
    const image = kept(long)
    assert.deepInclude(image, { type: "image/jpeg", width: 8, height: 6 })
    const [before, after] = [
      jpegOf(),
      Buffer.concat([adobe, tables, frame(), segment(0xc4, Buffer.alloc(20)), SCAN, SCAN, EOI])
    ]
    const bytes = Buffer.from(image.bytes)
    assert.isTrue(bytes.subarray(0, 2).equals(before))
    assert.isTrue(bytes.subarray(-after.length).equals(after))
    assert.strictEqual(bytes.length, 2 + 36 + after.length)
  })

  it.each([
    ["II", 3],
    ["MM", 6],
    ["MM", 8]
  ] as const)("pages.logo: keeps the orientation of a JPEG: %s, %i", (order, orientation) => {
    const bytes = Buffer.from(kept(jpegOf(exif(order, orientation), frame(), SCAN, EOI)).bytes)
    const kind = Buffer.from([1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0])
    assert.isAbove(bytes.indexOf(kind), 0)
  })

  it("pages.logo: may be a JPEG with an EXIF part that cannot be read", () => {
    const plain = jpegOf(frame(), SCAN, EOI)
    for (const broken of [
      exif("II", 9),
      exif("MM", 0),
      exif("II", 1).subarray(0, 20),
      exif("MM", 1).fill(255, 14, 18)
    ]) {
      if (broken.length > 4) broken.writeUInt16BE(broken.length - 2, 2)
      assert.isTrue(plain.equals(kept(jpegOf(broken, frame(), SCAN, EOI)).bytes))
    }
  })

  it("pages.logo: may be a WebP, and loses all but pixels and transparency", () => {
    for (const chunk of [
      ["VP8 ", LOSSY],
      ["VP8L", LOSSLESS]
    ] as const) {
      const plain = riff(chunk)
      const image = kept(Buffer.concat([plain, text(SECRET)]))
      assert.deepInclude(image, { type: "image/webp", width: 8, height: 6 })
      assert.isTrue(plain.equals(image.bytes))
    }
    const long = riff(
      ["VP8X", extended(0x3c)],
      ["ICCP", text(SECRET)],
      ["ALPH", Buffer.from([0, 1, 2])],
      ["VP8 ", LOSSY],
      ["EXIF", text(SECRET)],
      ["XMP ", text(SECRET)]
    )
    const short = riff(["VP8X", extended(0x10)], ["ALPH", Buffer.from([0, 1, 2])], ["VP8 ", LOSSY])
    assert.isTrue(short.equals(kept(long).bytes))
  })

  it.each<readonly [name: string, problem: ImageProblem, file: Buffer]>([
    ["nothing", "kind", Buffer.alloc(0)],
    ["an SVG", "kind", text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")],
    ["a GIF", "kind", text("GIF89a\u0001\0\u0001\0")],
    ["HTML", "kind", text("<!doctype html><script>alert(1)</script>")],
    ["a BMP", "kind", text("BM\0\0\0\0")],
    ["the first bytes of a PNG", "broken", PNG_SIGNATURE],
    ["a PNG without pixels", "broken", pngOf(ihdr(), IEND)],
    ["a PNG without an end", "broken", pngOf(ihdr(), IDAT)],
    ["a PNG without a header", "broken", pngOf(IDAT, IEND)],
    ["a PNG with two headers", "broken", pngOf(ihdr(), ihdr(), IDAT, IEND)],
    ["a PNG with parted pixels", "broken", pngOf(ihdr(), IDAT, pngChunk("tEXt", text("x")), IDAT, IEND)],
    ["a PNG with an unknown critical chunk", "broken", pngOf(ihdr(), pngChunk("SCRP", text("x")), IDAT, IEND)],
    ["a PNG with a wrong checksum", "broken", pngOf(ihdr(), Buffer.from(IDAT).fill(0, IDAT.length - 4), IEND)],
    ["a PNG with a palette that is too long", "broken", pngOf(ihdr(), pngChunk("PLTE", Buffer.alloc(771)), IDAT, IEND)],
    [
      "a PNG that lacks its palette",
      "broken",
      pngOf(
        ihdr((header) => header.set([8, 3], 8)),
        IDAT,
        IEND
      )
    ],
    [
      "a PNG of another depth",
      "broken",
      pngOf(
        ihdr((header) => header.set([4, 2], 8)),
        IDAT,
        IEND
      )
    ],
    [
      "a PNG of another compression",
      "broken",
      pngOf(
        ihdr((header) => header.set([1], 10)),
        IDAT,
        IEND
      )
    ],
    ["a PNG without width", "broken", pngOf(ihdr(undefined, 0), IDAT, IEND)],
    ["a PNG with too many pixels", "pixels", pngOf(ihdr(undefined, IMAGE_SIDE_MAX + 1), IDAT, IEND)],
    ["the first bytes of a JPEG", "broken", jpegOf(Buffer.from([0xff]))],
    ["a JPEG without a frame", "broken", jpegOf(SCAN, EOI)],
    ["a JPEG with two frames", "broken", jpegOf(frame(), frame(), SCAN, EOI)],
    ["a JPEG without a scan", "broken", jpegOf(frame(), EOI)],
    ["a JPEG without an end", "broken", jpegOf(frame(), SCAN)],
    ["a JPEG with a segment that is cut off", "broken", jpegOf(frame(), SCAN, Buffer.from([0xff, 0xe1, 0xff]))],
    ["a JPEG without height", "broken", jpegOf(frame(8, 0), SCAN, EOI)],
    ["a lossless JPEG", "broken", jpegOf(frame(8, 6, 0xc3), SCAN, EOI)],
    ["a JPEG with too many pixels", "pixels", jpegOf(frame(8, IMAGE_SIDE_MAX + 1), SCAN, EOI)],
    ["an animated WebP", "animated", riff(["VP8X", extended(0x02)], ["ANIM", Buffer.alloc(6)])],
    ["a WebP without pixels", "broken", riff(["VP8X", extended(0)])],
    ["an empty WebP", "broken", riff()],
    ["a WebP with two pictures", "broken", riff(["VP8 ", LOSSY], ["VP8 ", LOSSY])],
    ["a WebP whose canvas has another size", "broken", riff(["VP8X", extended(0, 9)], ["VP8 ", LOSSY])],
    ["a WebP that is cut off", "broken", riff(["VP8 ", LOSSY]).subarray(0, -3)],
    ["a WebP that begins with metadata", "broken", riff(["EXIF", text("x")], ["VP8 ", LOSSY])],
    ["a long file", "bytes", Buffer.concat([png({ width: 2, height: 2 }), Buffer.alloc(IMAGE_BYTES_MAX)])]
  ])("pages.logo: is refused: %s", (_, problem, file) => {
    assert.strictEqual(readImage(file), problem)
  })

  const bytes = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))).check(
    Schema.isMaxLength(64)
  )
  const change = Schema.Struct({
    file: Schema.Literals(["png", "jpeg", "lossy", "lossless", "extended"]),
    at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 160 })),
    length: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 16 })),
    bytes
  })
  const FILES = {
    png: pngOf(ihdr(), pngChunk("tEXt", text(SECRET)), IDAT, IEND),
    jpeg: jpegOf(exif("II", 6), tables, frame(), SCAN, EOI),
    lossy: riff(["VP8 ", LOSSY]),
    lossless: riff(["VP8L", LOSSLESS]),
    extended: riff(["VP8X", extended(0x14)], ["ALPH", Buffer.from([1])], ["VP8 ", LOSSY], ["EXIF", text(SECRET)])
  }

  it.prop(
    "pages.logo: is kept or refused, whatever its bytes, and what is kept is kept again",
    { change },
    ({ change: { at, bytes, file, length } }) => {
      const whole = FILES[file]
      const image = readImage(Buffer.concat([whole.subarray(0, at), Buffer.from(bytes), whole.subarray(at + length)]))
      if (typeof image !== "string") assert.deepStrictEqual(readImage(Buffer.from(image.bytes)), image)
    },
    { arbitrary: { runs: 2000 } }
  )
})

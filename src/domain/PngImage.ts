/** The parts of a PNG file (PNG, third edition): the header, the palette, transparency, colour space and pixels. */
import { crc32 } from "node:zlib"
import type { ImageParts, ImageProblem } from "./ImageParts.ts"

const SIGNATURE_BYTES = 8
const HEADER_BYTES = 13

/** Bit depths by colour type: grey, RGB, palette, grey with alpha, RGB with alpha. */
const DEPTHS: Readonly<Record<number, ReadonlyArray<number>>> = {
  0: [1, 2, 4, 8, 16],
  2: [8, 16],
  3: [1, 2, 4, 8],
  4: [8, 16],
  6: [8, 16]
}

/** Chunks beside the header that pixels and their colours need, with their largest sizes in bytes. */
const KEPT: Readonly<Record<string, number>> = {
  PLTE: 768,
  tRNS: 256,
  sRGB: 1,
  gAMA: 4,
  cHRM: 32,
  IDAT: Number.MAX_SAFE_INTEGER,
  IEND: 0
}

/** True for a chunk without which the image cannot be decoded: its name begins with a capital letter. */
const isCritical = (name: string): boolean => /^[A-Z]/.test(name)

interface Chunk {
  readonly name: string
  readonly data: Buffer
  /** Length, name, data and checksum, as in the file. */
  readonly whole: Buffer
}

/** Returns the chunk at this position; undefined if it is cut off or its checksum is wrong. */
const chunkAt = (file: Buffer, at: number): Chunk | undefined => {
  if (at + 12 > file.length) return undefined
  const end = at + 12 + file.readUInt32BE(at)
  if (end > file.length || crc32(file.subarray(at + 4, end - 4)) !== file.readUInt32BE(end - 4)) return undefined
  return {
    name: file.toString("latin1", at + 4, at + 8),
    data: file.subarray(at + 8, end - 4),
    whole: file.subarray(at, end)
  }
}

const isHeader = ({ data, name }: Chunk): boolean =>
  name === "IHDR" &&
  data.length === HEADER_BYTES &&
  DEPTHS[data[9]!]?.includes(data[8]!) === true &&
  data[10] === 0 &&
  data[11] === 0 &&
  data[12]! <= 1

export const pngOf = (file: Buffer): ImageParts | ImageProblem => {
  const header = chunkAt(file, SIGNATURE_BYTES)
  if (header === undefined || !isHeader(header)) return "broken"
  const kept = [file.subarray(0, SIGNATURE_BYTES), header.whole]
  const seen = new Set<string>()
  let before = header.name
  for (let at = SIGNATURE_BYTES + header.whole.length; before !== "IEND";) {
    const chunk = chunkAt(file, at)
    if (chunk === undefined) return "broken"
    const { data, name, whole } = chunk
    at += whole.length
    const bytesMax = KEPT[name]
    if (bytesMax === undefined ? isCritical(name) : data.length > bytesMax) return "broken"
    // Only the pixels may be split over several chunks, which follow one another.
    if (bytesMax !== undefined && seen.has(name) && (name !== "IDAT" || before !== "IDAT")) return "broken"
    if (bytesMax !== undefined) kept.push(whole)
    seen.add(name)
    before = name
  }
  if (!seen.has("IDAT") || (header.data[9] === 3 && !seen.has("PLTE"))) return "broken"
  return { width: header.data.readUInt32BE(0), height: header.data.readUInt32BE(4), bytes: Buffer.concat(kept) }
}

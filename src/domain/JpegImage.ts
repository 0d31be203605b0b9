/**
 * The parts of a JPEG file (ITU T.81): tables, frame and scans, Adobe's colour transform, and the orientation, without
 * which a photo of a phone would lie on its side. Nothing else of EXIF is kept.
 */
import type { ImageParts, ImageProblem } from "./ImageParts.ts"

const MARKER = { SOI: 0xd8, EOI: 0xd9, SOS: 0xda, EXIF: 0xe1, ADOBE: 0xee } as const

/** Baseline, extended and progressive frames, which browsers decode. */
const FRAMES: ReadonlySet<number> = new Set([0xc0, 0xc1, 0xc2])
/** Huffman tables, quantization tables, restart interval. */
const TABLES: ReadonlySet<number> = new Set([0xc4, 0xdb, 0xdd])

/** True for segments that pages do without: those of applications (EXIF, ICC, XMP, previews) and comments. */
const isDropped = (marker: number): boolean => (marker >= 0xe0 && marker <= 0xef) || marker === 0xfe

/** Length of the data of Adobe's segment, whose last byte is the colour transform. */
const ADOBE_BYTES = 12

/** An EXIF segment with the orientation alone: a TIFF header and a directory with one entry of the type SHORT. */
const orientationSegment = (orientation: number): Buffer => {
  const entry = "011200030000000100000000"
  const segment = Buffer.from(`ffe100224578696600004d4d002a000000080001${entry}00000000`, "hex")
  segment[29] = orientation
  return segment
}

/** Returns the orientation in an EXIF segment's data, 1 to 8; 1 if it has none. */
const orientationIn = (data: Buffer): number => {
  if (data.toString("latin1", 0, 6) !== "Exif\0\0" || data.length < 14) return 1
  const tiff = data.subarray(6)
  const order = tiff.toString("latin1", 0, 2)
  const uint16 = (at: number) => (order === "II" ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at))
  const directory = order === "II" ? tiff.readUInt32LE(4) : tiff.readUInt32BE(4)
  if (directory + 2 > tiff.length) return 1
  const entries = uint16(directory)
  for (let entry = 0, at = directory + 2; entry < entries && at + 12 <= tiff.length; entry++, at += 12) {
    const value = uint16(at) === 0x0112 && uint16(at + 2) === 3 ? uint16(at + 8) : 0
    if (value >= 1 && value <= 8) return value
  }
  return 1
}

/** Returns the end of the coded pixels that begin here: the next marker that is neither an escape nor a restart. */
const endOfScan = (file: Buffer, from: number): number => {
  for (let at = file.indexOf(0xff, from); at !== -1; at = file.indexOf(0xff, at + 1)) {
    const next = file[at + 1]
    if (next === undefined) return -1
    if (next !== 0x00 && next !== 0xff && (next < 0xd0 || next > 0xd7)) return at
  }
  return -1
}

const isFrame = (data: Buffer): boolean =>
  data.length > 5 && data[0] === 8 && [1, 3, 4].includes(data[5]!) && data.length === 6 + 3 * data[5]!

export const jpegOf = (file: Buffer): ImageParts | ImageProblem => {
  const kept: Array<Buffer> = []
  let frame: Buffer | undefined
  let orientation = 1
  let scans = 0
  for (let at = 2; ;) {
    // Any number of fill bytes may precede a marker.
    while (file[at] === 0xff && file[at + 1] === 0xff) at++
    const marker = file[at] === 0xff ? file[at + 1] : undefined
    if (marker === undefined) return "broken"
    if (marker === MARKER.EOI) break
    const end = at + 4 <= file.length ? at + 2 + file.readUInt16BE(at + 2) : file.length + 1
    if (end > file.length || end < at + 4) return "broken"
    const data = file.subarray(at + 4, end)
    const segment = file.subarray(at, end)
    at = end
    if (marker === MARKER.EXIF && orientation === 1) orientation = orientationIn(data)
    if (marker === MARKER.ADOBE && data.length === ADOBE_BYTES && data.toString("latin1", 0, 5) === "Adobe") {
      kept.push(segment)
    } else if (FRAMES.has(marker)) {
      if (frame !== undefined || !isFrame(data)) return "broken"
      frame = data
      kept.push(segment)
    } else if (TABLES.has(marker)) kept.push(segment)
    else if (marker === MARKER.SOS) {
      at = endOfScan(file, end)
      if (frame === undefined || at === -1) return "broken"
      scans++
      kept.push(segment, file.subarray(end, at))
    } else if (!isDropped(marker)) return "broken"
  }
  if (frame === undefined || scans === 0) return "broken"
  const begin = Buffer.from([0xff, MARKER.SOI])
  const turned = orientation === 1 ? [] : [orientationSegment(orientation)]
  return {
    height: frame.readUInt16BE(1),
    width: frame.readUInt16BE(3),
    bytes: Buffer.concat([begin, ...turned, ...kept, Buffer.from([0xff, MARKER.EOI])])
  }
}

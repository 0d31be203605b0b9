/** The parts of a WebP file (RFC 9649): the pixels, and transparency beside them. Animations are refused. */
import type { ImageParts, ImageProblem } from "./ImageParts.ts"

const FLAG_ALPHA = 0x10
const FLAG_ANIMATION = 0x02

interface Chunk {
  readonly name: string
  readonly data: Buffer
}

/** Returns the chunks of the file's RIFF container; undefined if one is cut off. */
const chunksIn = (file: Buffer): ReadonlyArray<Chunk> | undefined => {
  const end = 8 + file.readUInt32LE(4)
  if (end > file.length) return undefined
  const chunks: Array<Chunk> = []
  for (let at = 12; at < end;) {
    if (at + 8 > end) return undefined
    const length = file.readUInt32LE(at + 4)
    if (at + 8 + length > end) return undefined
    chunks.push({ name: file.toString("latin1", at, at + 4), data: file.subarray(at + 8, at + 8 + length) })
    at += 8 + length + (length % 2)
  }
  return chunks
}

const riffOf = (chunks: ReadonlyArray<Chunk>): Buffer => {
  const parts = chunks.flatMap(({ data, name }) => {
    const head = Buffer.alloc(8)
    head.write(name, "latin1")
    head.writeUInt32LE(data.length, 4)
    return [head, data, Buffer.alloc(data.length % 2)]
  })
  const content = Buffer.concat(parts)
  const head = Buffer.from("RIFF\0\0\0\0WEBP", "latin1")
  head.writeUInt32LE(content.length + 4, 4)
  return Buffer.concat([head, content])
}

type Sides = Pick<ImageParts, "width" | "height">

/** Width and height of the pixels: lossy (VP8, a key frame) or lossless (VP8L). */
const sidesOf = ({ data, name }: Chunk): Sides | undefined => {
  if (name === "VP8L") {
    if (data.length < 5 || data[0] !== 0x2f) return undefined
    const bits = data.readUInt32LE(1)
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
  }
  if (data.length < 10 || (data[0]! & 1) !== 0 || data.readUIntBE(3, 3) !== 0x9d_01_2a) return undefined
  return { width: data.readUInt16LE(6) & 0x3fff, height: data.readUInt16LE(8) & 0x3fff }
}

export const webpOf = (file: Buffer): ImageParts | ImageProblem => {
  const chunks = chunksIn(file)
  const [first] = chunks ?? []
  if (chunks === undefined || first === undefined) return "broken"
  const isExtended = first.name === "VP8X"
  if (isExtended && first.data.length !== 10) return "broken"
  if (isExtended && (first.data[0]! & FLAG_ANIMATION) !== 0) return "animated"
  const pixels = chunks.filter(({ name }) => name === "VP8 " || name === "VP8L")
  const [image] = pixels
  const sides = image && sidesOf(image)
  if (image === undefined || sides === undefined || pixels.length > 1) return "broken"
  const alpha = chunks.filter(({ name }) => name === "ALPH")
  if (!isExtended) return first === image ? { ...sides, bytes: riffOf([image]) } : "broken"
  const canvas = { width: first.data.readUIntLE(4, 3) + 1, height: first.data.readUIntLE(7, 3) + 1 }
  if (canvas.width !== sides.width || canvas.height !== sides.height || alpha.length > 1) return "broken"
  const header = Buffer.from(first.data)
  header.writeUInt32LE(header[0]! & FLAG_ALPHA, 0)
  return { ...sides, bytes: riffOf([{ name: "VP8X", data: header }, ...alpha, image]) }
}

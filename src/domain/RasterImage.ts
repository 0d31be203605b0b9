/**
 * Reads an uploaded image strictly, and returns it without what no page needs. The file is taken apart and written
 * anew from the parts that decode to its pixels: metadata such as EXIF (place, camera), comments, previews, animations
 * and bytes behind the end are dropped. Pixels are not decoded; their number is limited, so that no small file takes a
 * payer's memory. Nothing but PNG, JPEG and WebP is accepted, whatever the file's name: an SVG could contain a script.
 */
import { Schema } from "effect"
import type { ImageParts, ImageProblem } from "./ImageParts.ts"
import { jpegOf } from "./JpegImage.ts"
import { pngOf } from "./PngImage.ts"
import { webpOf } from "./WebpImage.ts"

export const IMAGE_TYPES = ["image/png", "image/jpeg", "image/webp"] as const
export const ImageType = Schema.Literals(IMAGE_TYPES)
export type ImageType = typeof ImageType.Type

/** Largest size of an image in bytes: 256 KiB. */
export const IMAGE_BYTES_MAX = 262_144
/** Largest width and height in pixels. Decoded, such an image takes 16 MiB. */
export const IMAGE_SIDE_MAX = 2048

export interface RasterImage extends ImageParts {
  readonly type: ImageType
}

const PNG_SIGNATURE = Buffer.from("\u0089PNG\r\n\u001a\n", "latin1")

const readParts = (file: Buffer): readonly [ImageType, ImageParts | ImageProblem] | undefined => {
  if (file.subarray(0, 8).equals(PNG_SIGNATURE)) return ["image/png", pngOf(file)]
  if (file.length >= 3 && file.readUIntBE(0, 3) === 0xff_d8_ff) return ["image/jpeg", jpegOf(file)]
  const isWebp = file.toString("latin1", 0, 4) === "RIFF" && file.toString("latin1", 8, 12) === "WEBP"
  return isWebp ? ["image/webp", webpOf(file)] : undefined
}

/** Reads an image file, or returns the reason to refuse it. */
export const readImage = (file: Buffer): RasterImage | ImageProblem => {
  if (file.length > IMAGE_BYTES_MAX) return "bytes"
  const read = readParts(file)
  if (read === undefined) return "kind"
  const [type, parts] = read
  if (typeof parts === "string") return parts
  if (parts.width < 1 || parts.height < 1) return "broken"
  return parts.width > IMAGE_SIDE_MAX || parts.height > IMAGE_SIDE_MAX ? "pixels" : { type, ...parts }
}

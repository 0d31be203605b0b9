/** The result of reading an image file (`RasterImage.ts`). */

/** The parts of a file that a page needs. */
export interface ImageParts {
  readonly width: number
  readonly height: number
  readonly bytes: Uint8Array
}

/** Reasons to refuse a file: it is too long, of another kind, broken, animated, or has too many pixels. */
export type ImageProblem = "bytes" | "kind" | "broken" | "animated" | "pixels"

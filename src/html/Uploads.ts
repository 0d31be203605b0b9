/**
 * Reads forms with a file, which browsers send as `multipart/form-data`. The body has the size limit of an API request,
 * its fields those of other forms.
 */
import { Effect } from "effect"
import { type HttpServerRequest, MultipartParser } from "effect/http"
import type { Unavailable } from "../engine/Accounts.ts"
import { readBodyOf } from "../http/forward/ForwardPage.ts"
import type { RequestTooLarge } from "../server/HttpErrors.ts"
import { BODY_BYTES_MAX, type RequestBodies } from "../server/RequestBody.ts"
import { cleanValue, type FormValues } from "./Forms.ts"

export interface Upload {
  readonly values: FormValues
  /** The content of the chosen file; null if none was chosen. */
  readonly file: Buffer | null
}

/** A form for a file has few fields. */
const PARTS_MAX = 16

/** Reads a form with at most one file; undefined for another content type, and for a body that does not parse. */
export const readUpload = (
  request: HttpServerRequest.HttpServerRequest
): Effect.Effect<Upload | undefined, RequestTooLarge | Unavailable, RequestBodies> =>
  Effect.map(readBodyOf(request, BODY_BYTES_MAX), (body) => uploadIn(request.headers["content-type"] ?? "", body))

/** The parts of a body. The name and the type that the browser gives the file count for nothing. */
export const uploadIn = (contentType: string, body: Buffer): Upload | undefined => {
  if (contentType.split(";", 1)[0]!.trim().toLowerCase() !== "multipart/form-data") return undefined
  const values = new Map<string, string>()
  const chunks: Array<Uint8Array> = []
  let files = 0
  let isWhole = false
  let isBroken = false
  const parser = MultipartParser.make({
    headers: { "content-type": contentType },
    maxParts: PARTS_MAX,
    maxFieldSize: BODY_BYTES_MAX,
    // A part without headers has no information, whatever the parser's type declares.
    onField: (info: MultipartParser.PartInfo | undefined, value) => {
      if (info === undefined) isBroken = true
      else if (!values.has(info.name)) values.set(info.name, cleanValue(Buffer.from(value).toString("utf8")))
    },
    onFile: ({ name }) => {
      files++
      // An error about the file belongs to its field.
      if (!values.has(name)) values.set(name, "")
      return (chunk) => {
        if (chunk !== null && files === 1) chunks.push(chunk)
      }
    },
    onError: () => {
      isBroken = true
    },
    onDone: () => {
      isWhole = true
    }
  })
  parser.write(body)
  parser.end()
  // Every form has a token: the parser passes over parts without headers.
  if (isBroken || !isWhole || files > 1 || values.size === 0) return undefined
  const file = Buffer.concat(chunks)
  return { values, file: file.length === 0 ? null : file }
}

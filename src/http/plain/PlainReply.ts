/**
 * Reads a response that is as plain as `PlainResponse` writes them: a final one by HTTP/1.1, its head in printable
 * ASCII with no header twice, its body of a length that is said. Whatever is not plain, right or wrong, is left to
 * another reader.
 */
import { INCOMPLETE, NOT_PLAIN } from "./PlainRequest.ts"

export interface PlainReply {
  readonly status: number
  /** By names in lower case, in the order in which they came. */
  readonly headers: Readonly<Record<string, string>>
  /** Part of the bytes that were read. */
  readonly body: Buffer
  /** Where what comes behind it begins among the bytes. */
  readonly end: number
}

const HEAD_BYTES_MAX = 65_536
const HEAD_END = Buffer.from("\r\n\r\n")
const STATUS_LINE = /^HTTP\/1\.1 ([2-5]\d\d) [ -~]*$/
const HEADER = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+): ?((?:[!-~](?:[ -~]*[!-~])?)?)$/
const LENGTH = /^(?:0|[1-9]\d{0,8})$/

/** Reads the response that the bytes begin with. */
export const parseReply = (bytes: Buffer): PlainReply | typeof NOT_PLAIN | typeof INCOMPLETE => {
  const headEnd = bytes.indexOf(HEAD_END)
  if (headEnd === -1 ? bytes.length >= HEAD_BYTES_MAX : headEnd >= HEAD_BYTES_MAX) return NOT_PLAIN
  if (headEnd === -1) return INCOMPLETE
  const [first, ...lines] = bytes.toString("latin1", 0, headEnd).split("\r\n")
  const status = Number(STATUS_LINE.exec(first!)?.[1])
  if (Number.isNaN(status)) return NOT_PLAIN
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const [, name = "", value] = HEADER.exec(line) ?? []
    const lowerCase = name.toLowerCase()
    // A name that every object has is as good as repeated.
    if (value === undefined || headers[lowerCase] !== undefined) return NOT_PLAIN
    headers[lowerCase] = value
  }
  const isEmpty = status === 204 || status === 304
  const length = headers["content-length"] ?? (isEmpty ? "0" : "")
  if (!LENGTH.test(length) || (isEmpty && length !== "0") || headers["transfer-encoding"] !== undefined)
    return NOT_PLAIN
  const body = headEnd + HEAD_END.length
  const end = body + Number(length)
  return end > bytes.length ? INCOMPLETE : { status, headers, body: bytes.subarray(body, end), end }
}

/** Encodes a response in the bytes that Node's server would write. */
import { STATUS_CODES, validateHeaderValue } from "node:http"

let second = 0
let date = ""

/** Returns the time for the `Date` header, formatted once a second. */
const dateNow = (): string => {
  const now = Math.floor(Date.now() / 1000)
  if (now !== second) {
    second = now
    date = new Date(now * 1000).toUTCString()
  }
  return date
}

/** Up to this length, a Latin-1 string is sent faster than bytes; a longer one would be copied once more. */
const STRING_LENGTH_MAX = 4096

/**
 * Returns a short response as a Latin-1 string, and one that is long or needs UTF-8 as bytes. Without
 * `keepAliveMillis`, the response announces the end of the connection. Throws for an invalid header value, as Node
 * does.
 */
export const responseBytes = (
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string,
  keepAliveMillis: number | undefined
): string | Buffer => {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`
  for (const name in headers) {
    const value = headers[name]!
    validateHeaderValue(name, value)
    head += `${name}: ${value}\r\n`
  }
  const length = Buffer.byteLength(body)
  if (status !== 204) head += `content-length: ${length}\r\n`
  head += `x-content-type-options: nosniff\r\nDate: ${dateNow()}\r\n`
  head +=
    keepAliveMillis === undefined
      ? "Connection: close\r\n\r\n"
      : `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMillis / 1000)}\r\n\r\n`
  // Every character of the body is one byte.
  if (length === body.length && length <= STRING_LENGTH_MAX) return head + body
  const bytes = Buffer.allocUnsafe(head.length + length)
  bytes.write(head, "latin1")
  bytes.write(body, head.length)
  return bytes
}

/**
 * Reads HTTP/1.1 responses from a socket's bytes, however they are cut into chunks: status and end of each one.
 *
 * Only what the servers of this bench send: a Content-Length, no chunked bodies, one response per request. Anything
 * else is an error, never skipped.
 */

const END_OF_HEAD = "\r\n\r\n"
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)\r\n/i
/** A head longer than this is not one. */
const HEAD_LENGTH_MAX = 16_384

export class ResponseReader {
  /** Status of the response that is being read or was read last. */
  status = 0
  /** That response, head and body, as far as it has come: a character per byte. */
  text = ""
  #bodyLeft = 0
  #inBody = false

  /** Takes the next `length` bytes; true if the response ends with them. Throws if they are not a response. */
  push(bytes: Buffer, length: number): boolean {
    this.text += bytes.toString("latin1", 0, length)
    if (this.#inBody) return this.#body(length)
    const end = this.text.indexOf(END_OF_HEAD)
    if (end === -1) {
      if (this.text.length > HEAD_LENGTH_MAX) throw new Error("The head of a response does not end.")
      return false
    }
    this.status = statusOf(this.text)
    this.#bodyLeft = contentLengthOf(this.text.slice(0, end + 2))
    this.#inBody = true
    return this.#body(this.text.length - end - END_OF_HEAD.length)
  }

  /** Forgets the response, to read the next one. */
  reset(): void {
    this.text = ""
  }

  #body(length: number): boolean {
    this.#bodyLeft -= length
    if (this.#bodyLeft < 0) throw new Error("A response is longer than its Content-Length.")
    if (this.#bodyLeft > 0) return false
    this.#inBody = false
    return true
  }
}

const statusOf = (head: string): number => {
  if (!head.startsWith("HTTP/1.1 ")) throw new Error(`Not an HTTP/1.1 response: ${head.slice(0, 40)}`)
  return Number(head.slice(9, 12))
}

const contentLengthOf = (head: string): number => {
  const match = CONTENT_LENGTH.exec(head)
  if (match === null) throw new Error(`A response without Content-Length: ${head}`)
  return Number(match[1])
}

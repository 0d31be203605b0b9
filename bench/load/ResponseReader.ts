/**
 * Reads HTTP/1.1 responses from a socket's bytes, however they are cut into chunks: status and end of each one.
 *
 * It reads only the responses of this bench's servers: a Content-Length, or chunks without trailers, one response per
 * request. Anything else is an error, never skipped.
 */

const END_OF_HEAD = "\r\n\r\n"
const END_OF_LINE = "\r\n"
const CHUNKED = /\r\ntransfer-encoding: *chunked\r\n/i
const CHUNK_SIZE = /^[0-9a-f]{1,8}$/i
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)\r\n/i
/** The greatest length of a head. */
const HEAD_LENGTH_MAX = 16_384

export class ResponseReader {
  /** Status of the current or last response. */
  status = 0
  /** Text of the current or last response so far, head, body and chunk sizes: one character per byte. */
  text = ""
  #bodyLeft = 0
  /** Position of the next chunk; -1 in a body that is not chunked. */
  #chunkAt = -1
  #inBody = false

  /** Takes the next `length` bytes; true if the response ends with them. Throws if they are not a response. */
  push(bytes: Buffer, length: number): boolean {
    this.text += bytes.toString("latin1", 0, length)
    if (this.#inBody) return this.#chunkAt === -1 ? this.#body(length) : this.#chunks()
    const end = this.text.indexOf(END_OF_HEAD)
    if (end === -1) {
      if (this.text.length > HEAD_LENGTH_MAX) throw new Error("The head of a response does not end.")
      return false
    }
    this.status = statusOf(this.text)
    this.#inBody = true
    const head = this.text.slice(0, end + 2)
    if (CHUNKED.test(head)) {
      this.#chunkAt = end + END_OF_HEAD.length
      return this.#chunks()
    }
    this.#chunkAt = -1
    this.#bodyLeft = contentLengthOf(head)
    return this.#body(this.text.length - end - END_OF_HEAD.length)
  }

  /** Discards the response before the next one. */
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

  #chunks(): boolean {
    while (this.#chunkAt < this.text.length) {
      const end = this.text.indexOf(END_OF_LINE, this.#chunkAt)
      if (end === -1) return false
      const size = this.text.slice(this.#chunkAt, end)
      if (!CHUNK_SIZE.test(size)) throw new Error(`Not the size of a chunk: ${size.slice(0, 40)}`)
      const bytes = Number.parseInt(size, 16)
      const next = end + END_OF_LINE.length + bytes + END_OF_LINE.length
      if (next > this.text.length) return false
      if (!this.text.startsWith(END_OF_LINE, next - END_OF_LINE.length)) {
        throw new Error(bytes === 0 ? "A response has trailers." : "A chunk is longer than its size.")
      }
      this.#chunkAt = next
      if (bytes > 0) continue
      if (next < this.text.length) throw new Error("A response is longer than its chunks.")
      this.#inBody = false
      return true
    }
    return false
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

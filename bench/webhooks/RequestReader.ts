/**
 * Reads HTTP/1.1 requests from a socket's bytes, however they are cut into chunks.
 *
 * Only what Till sends to webhooks: a POST with a Content-Length, the next one after the answer. Anything else is an
 * error, never skipped: a sink that guesses measures nothing.
 */

const END_OF_HEAD = "\r\n\r\n"
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)\r\n/i
/** A head longer than this is not one. */
const HEAD_LENGTH_MAX = 16_384

export class RequestReader {
  /** The request that is being read or was read last: head and body, a character per byte. */
  text = ""
  /** Length of the whole request; not known before its head has come. */
  #length: number | undefined

  /** True if nothing of the next request has come yet. */
  get empty(): boolean {
    return this.text === ""
  }

  /** Takes the next `length` bytes; true if the request ends with them. Throws if they are not a request. */
  push(bytes: Buffer, length: number): boolean {
    this.text += bytes.toString("latin1", 0, length)
    this.#length ??= lengthOf(this.text)
    if (this.#length === undefined) return false
    if (this.text.length > this.#length) throw new Error("A request is longer than its Content-Length.")
    return this.text.length === this.#length
  }

  /** Forgets the request, to read the next one. */
  reset(): void {
    this.text = ""
    this.#length = undefined
  }
}

const lengthOf = (text: string): number | undefined => {
  const end = text.indexOf(END_OF_HEAD)
  if (end === -1) {
    if (text.length > HEAD_LENGTH_MAX) throw new Error("The head of a request does not end.")
    return undefined
  }
  if (!text.startsWith("POST /")) throw new Error(`Not a webhook: ${text.slice(0, 40)}`)
  const match = CONTENT_LENGTH.exec(text.slice(0, end + 2))
  if (match === null) throw new Error(`A request without Content-Length: ${text.slice(0, end)}`)
  return end + END_OF_HEAD.length + Number(match[1])
}

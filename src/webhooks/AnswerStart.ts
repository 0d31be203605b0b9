/**
 * Reads the status of an answer from its first bytes, before undici's parser receives them (semantics
 * webhooks.success). That parser is strict: it refuses an answer for bytes after its status line, and for `100
 * Continue` before it.
 *
 * - The status counts as soon as its three digits have arrived, whatever follows.
 * - Interim answers (1xx except 101) are removed.
 * - At most 128 KiB of an answer are read. The parser counts neither a reason phrase nor the removed bytes.
 * - The parser receives everything else unchanged. It alone decides where the answer ends and whether the connection
 *   can be used again, and a connection on which it finds an error is closed.
 */

/** The status of an answer, or the first bytes of one that is not HTTP. `TooLong` may also follow a status. */
export type Start =
  | { readonly _tag: "Status"; readonly status: number }
  | { readonly _tag: "NotHttp"; readonly bytes: Buffer }
  | { readonly _tag: "TooLong" }

const NOTHING = Buffer.alloc(0)
const NAME = "HTTP/"
const STATUS = /^HTTP\/\d(?:\.\d)?[ \t]+(\d{3})(?:[ \t\r\n]|$)/u
/** Bytes within which a well-formed status line has its status. */
const STATUS_BYTES_MAX = 32
/** Limit for a whole answer, with interim answers, status line and headers. */
const ANSWER_BYTES_MAX = 131_072
const SWITCHING_PROTOCOLS = 101
const CR = 0x0d
const LF = 0x0a

export class AnswerStart {
  #report: ((start: Start) => void) | null = null
  /** Bytes that are too few to decide. */
  #held: Buffer = NOTHING
  #bytes = 0
  #isDecided = true
  #isInInterim = false
  #isLineEmpty = false

  /** Starts with a new request: the next bytes begin its answer. */
  begin(report: (start: Start) => void): void {
    this.#report = report
    this.#held = NOTHING
    this.#bytes = 0
    this.#isDecided = false
    this.#isInInterim = false
  }

  /** Takes bytes that have arrived, and returns the bytes for the parser. */
  take(chunk: Buffer): Buffer {
    let bytes = chunk
    this.#bytes += chunk.length
    while (!this.#isDecided && bytes.length > 0) {
      if (this.#isInInterim) {
        bytes = this.#afterInterim(bytes)
        continue
      }
      bytes = withoutEmptyLines(this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]))
      this.#held = this.#decide(bytes, false) ? NOTHING : bytes
      if (this.#held.length > 0) return NOTHING
    }
    if (this.#bytes <= ANSWER_BYTES_MAX) return bytes
    this.#report?.({ _tag: "TooLong" })
    return NOTHING
  }

  end(): void {
    if (!this.#isDecided && this.#held.length > 0) this.#decide(this.#held, true)
  }

  /** Settles the start if the bytes are enough to decide; returns whether they are. */
  #decide(bytes: Buffer, isAll: boolean): boolean {
    const line = bytes.toString("latin1", 0, STATUS_BYTES_MAX)
    const status = STATUS.exec(line)
    // Without a byte after it, a status might continue.
    if (status !== null && (isAll || /\s$/u.test(status[0]))) {
      this.#takeStatus(Number(status[1]))
      return true
    }
    const mayBe = line.startsWith(NAME) || NAME.startsWith(line)
    if (mayBe && line.length < STATUS_BYTES_MAX && !line.includes("\n")) return false
    this.#settle({ _tag: "NotHttp", bytes })
    return true
  }

  #takeStatus(status: number): void {
    if (status >= 200 || status < 100 || status === SWITCHING_PROTOCOLS) return this.#settle({ _tag: "Status", status })
    this.#isInInterim = true
    this.#isLineEmpty = false
  }

  /** Returns the bytes after the empty line that ends an interim answer; none before that line has arrived. */
  #afterInterim(bytes: Buffer): Buffer {
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]
      if (byte === LF && this.#isLineEmpty) {
        this.#isInInterim = false
        return bytes.subarray(at + 1)
      }
      if (byte !== CR) this.#isLineEmpty = byte === LF
    }
    return NOTHING
  }

  #settle(start: Start): void {
    this.#isDecided = true
    this.#report?.(start)
  }
}

/** Removes empty lines before a status line, as the parser does. */
const withoutEmptyLines = (bytes: Buffer): Buffer => {
  const first = bytes.findIndex((byte) => byte !== CR && byte !== LF)
  return first === -1 ? NOTHING : bytes.subarray(first)
}

/**
 * Reads the status of an answer from the first bytes of it, before undici's parser has them (semantics W9). That parser
 * is strict: it refuses an answer for what stands behind its status line, and `100 Continue` in front of it.
 *
 * - The status counts as soon as its three digits have arrived, whatever follows.
 * - Interim answers (1xx, but for 101) are left out.
 * - Of an answer 128 KiB are read in all. The parser counts neither a reason phrase nor what is left out.
 * - The parser gets everything else unchanged: it alone decides where the answer ends and whether the connection can be
 *   used again, and a connection on which it finds a mistake is closed.
 */

/** The status of an answer, or the first bytes of what is no HTTP answer; `TooLong` may also come behind a status. */
export type Start =
  | { readonly _tag: "Status"; readonly status: number }
  | { readonly _tag: "NotHttp"; readonly bytes: Buffer }
  | { readonly _tag: "TooLong" }

const NOTHING = Buffer.alloc(0)
const NAME = "HTTP/"
const STATUS = /^HTTP\/\d(?:\.\d)?[ \t]+(\d{3})(?:[ \t\r\n]|$)/u
/** A status line that begins as it should says its status within so many bytes. */
const STATUS_BYTES_MAX = 32
/** All of an answer, with interim answers, status line and headers. */
const ANSWER_BYTES_MAX = 131_072
const SWITCHING_PROTOCOLS = 101
const CR = 0x0d
const LF = 0x0a

export class AnswerStart {
  #report: ((start: Start) => void) | null = null
  /** Bytes that do not say yet what they begin. */
  #held: Buffer = NOTHING
  #bytes = 0
  #isDecided = true
  #isInInterim = false
  #isLineEmpty = false

  /** A request goes out: the next bytes begin its answer. */
  begin(report: (start: Start) => void): void {
    this.#report = report
    this.#held = NOTHING
    this.#bytes = 0
    this.#isDecided = false
    this.#isInInterim = false
  }

  /** Takes bytes that have come, and returns those that are for the parser. */
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

  /** No more bytes come. */
  end(): void {
    if (!this.#isDecided && this.#held.length > 0) this.#decide(this.#held, true)
  }

  /** Says whether the bytes are enough to tell what they begin. */
  #decide(bytes: Buffer, isAll: boolean): boolean {
    const line = bytes.toString("latin1", 0, STATUS_BYTES_MAX)
    const status = STATUS.exec(line)
    // Without a byte behind it, a status might go on.
    if (status !== null && (isAll || /\s$/u.test(status[0]))) {
      this.#found(Number(status[1]))
      return true
    }
    const mayBe = line.startsWith(NAME) || NAME.startsWith(line)
    if (mayBe && line.length < STATUS_BYTES_MAX && !line.includes("\n")) return false
    this.#settle({ _tag: "NotHttp", bytes })
    return true
  }

  #found(status: number): void {
    if (status >= 200 || status < 100 || status === SWITCHING_PROTOCOLS) return this.#settle({ _tag: "Status", status })
    this.#isInInterim = true
    this.#isLineEmpty = false
  }

  /** The bytes behind the empty line that ends an interim answer, if it has come. */
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

/** Empty lines in front of a status line are skipped, as the parser does. */
const withoutEmptyLines = (bytes: Buffer): Buffer => {
  const first = bytes.findIndex((byte) => byte !== CR && byte !== LF)
  return first === -1 ? NOTHING : bytes.subarray(first)
}

/**
 * Texts in HTTP headers (semantics requests.headers). A header carries bytes; Node returns each byte as one character,
 * and `fetch` accepts only such characters. The bytes are read as UTF-8, or, if they are not UTF-8, as Latin-1, which
 * older clients send for Western European letters.
 */

/** Returns the text of a header that Node has read byte by byte. */
export const textOfHeader = (value: string): string => {
  if (!NOT_ASCII.test(value)) return value
  try {
    return utf8.decode(Uint8Array.from(value, (byte) => byte.charCodeAt(0)))
  } catch {
    return value
  }
}

/** Returns the header that carries a text, with one character for each of its bytes in UTF-8. */
export const headerOfText = (text: string): string =>
  NOT_ASCII.test(text) ? Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("") : text

const NOT_ASCII = /[^ -~]/

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

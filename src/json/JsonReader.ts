/**
 * A plain JSON parser, equal to RFC 8259 and `JSON.parse`, which also finds the position of a syntax error.
 *
 * It reads each character once. Open objects and arrays are in an array, not on the call stack, so nesting has no
 * limit. Only single strings and numbers are converted by V8. It is several times slower than `JSON.parse`, and used
 * only for texts that `JSON.parse` rejects or misreads.
 */

export class JsonSyntaxError extends SyntaxError {
  override readonly name = "JsonSyntaxError"
  /** Index of the first invalid character; the text's length if it ends too early. */
  readonly index: number

  constructor(index: number) {
    super(`The text is not JSON at index ${index}`)
    this.index = index
  }
}

type Container = Record<string, unknown> | Array<unknown>

/** An object or array whose end has not been read yet. */
interface Open {
  readonly container: Container
  /** The name of the member being read, in an object. */
  name: string
}

const BACKSLASH = 0x5c
const QUOTE = 0x22
const ZERO = 0x30
const NINE = 0x39

/** Space, line feed, carriage return or tab. */
export const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
const isDigit = (code: number): boolean => code >= ZERO && code <= NINE
const isHexDigit = (code: number): boolean => isDigit(code) || ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x66)
const isContainer = (value: unknown): value is Container => typeof value === "object" && value !== null
const endOf = (container: Container): string => (Array.isArray(container) ? "]" : "}")

const put = ({ container, name }: Open, value: unknown): void => {
  if (Array.isArray(container)) container.push(value)
  else if (name !== "__proto__") container[name] = value
  else Object.defineProperty(container, name, { value, configurable: true, enumerable: true, writable: true })
}

export class JsonReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  /** Returns the value of the whole text. Throws a `JsonSyntaxError` if it is not JSON. */
  read(): unknown {
    const open: Array<Open> = []
    for (;;) {
      let value = this.#readBeginning()
      if (isContainer(value) && !this.#take(endOf(value))) {
        open.push({ container: value, name: Array.isArray(value) ? "" : this.#readName() })
        continue
      }
      for (;;) {
        const inner = open.at(-1)
        if (inner === undefined) return this.#readEnd(value)
        put(inner, value)
        if (this.#take(",")) {
          if (!Array.isArray(inner.container)) inner.name = this.#readName()
          break
        }
        this.#expect(endOf(inner.container))
        value = inner.container
        open.pop()
      }
    }
  }

  #readBeginning(): unknown {
    if (this.#take("{")) return {}
    if (this.#take("[")) return []
    const code = this.#text.charCodeAt(this.#at)
    if (code === QUOTE) return this.#readString()
    if (code === 0x74) return this.#readLiteral("true", true)
    if (code === 0x66) return this.#readLiteral("false", false)
    if (code === 0x6e) return this.#readLiteral("null", null)
    return this.#readNumber()
  }

  /** Returns the value if only white space follows it. */
  #readEnd(value: unknown): unknown {
    this.#skipSpace()
    return this.#at === this.#text.length ? value : this.#fail()
  }

  #readName(): string {
    this.#skipSpace()
    const name = this.#readString()
    this.#expect(":")
    return name
  }

  #readString(): string {
    const start = this.#at
    if (this.#text.charCodeAt(start) !== QUOTE) this.#fail()
    for (;;) {
      const code = this.#text.charCodeAt(++this.#at)
      if (code === QUOTE) break
      if (code === BACKSLASH) this.#readEscape()
      // The code is NaN after the end of the text.
      else if (!(code >= 0x20)) this.#fail()
    }
    this.#at++
    return JSON.parse(this.#text.slice(start, this.#at))
  }

  #readEscape(): void {
    const escaped = this.#text.charAt(++this.#at)
    if (escaped === "u") {
      for (let i = 0; i < 4; i++) if (!isHexDigit(this.#text.charCodeAt(++this.#at))) this.#fail()
    } else if (escaped === "" || !'"\\/bfnrt'.includes(escaped)) this.#fail()
  }

  #readLiteral<A>(literal: string, value: A): A {
    for (const character of literal) {
      if (this.#text.charAt(this.#at) !== character) this.#fail()
      this.#at++
    }
    return value
  }

  #readNumber(): number {
    const start = this.#at
    if (this.#text.charAt(this.#at) === "-") this.#at++
    if (this.#text.charCodeAt(this.#at) === ZERO) this.#at++
    else this.#readDigits()
    if (this.#text.charAt(this.#at) === ".") {
      this.#at++
      this.#readDigits()
    }
    if (this.#text.charAt(this.#at) === "e" || this.#text.charAt(this.#at) === "E") {
      this.#at++
      if (this.#text.charAt(this.#at) === "+" || this.#text.charAt(this.#at) === "-") this.#at++
      this.#readDigits()
    }
    return Number(this.#text.slice(start, this.#at))
  }

  #readDigits(): void {
    if (!isDigit(this.#text.charCodeAt(this.#at))) this.#fail()
    while (isDigit(this.#text.charCodeAt(this.#at))) this.#at++
  }

  #expect(character: string): void {
    if (!this.#take(character)) this.#fail()
  }

  #take(character: string): boolean {
    this.#skipSpace()
    const comes = this.#text.charAt(this.#at) === character
    if (comes) this.#at++
    return comes
  }

  #skipSpace(): void {
    while (isSpace(this.#text.charCodeAt(this.#at))) this.#at++
  }

  #fail(): never {
    throw new JsonSyntaxError(this.#at)
  }
}

/**
 * A plain parser of JSON: reads a text as RFC 8259 and `JSON.parse` do, and finds where a text is not JSON.
 *
 * It reads each character once. Open objects and arrays lie in an array and not on the stack, so any depth of nesting
 * is read. Only single strings and numbers are left to V8. It is several times slower than `JSON.parse`, and for texts
 * that `JSON.parse` does not read, or not right.
 */

/** The text is not JSON. */
export class JsonSyntaxError extends SyntaxError {
  override readonly name = "JsonSyntaxError"
  /** Index of the first character that does not fit; the text's length if the text ends too early. */
  readonly index: number

  constructor(index: number) {
    super(`The text is not JSON at index ${index}`)
    this.index = index
  }
}

type Container = Record<string, unknown> | Array<unknown>

/** An object or array whose end has not been read. */
interface Open {
  readonly container: Container
  /** Of an object: the name of the member that is being read. */
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

  /** Gives the value of the whole text. Throws a `JsonSyntaxError` if it is not JSON. */
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

  /** Reads a string, a number or a literal; of an object or array the bracket that opens it. */
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

  /** Only white space may follow the value. */
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
      // The code is NaN behind the end of the text.
      else if (!(code >= 0x20)) this.#fail()
    }
    this.#at++
    return JSON.parse(this.#text.slice(start, this.#at))
  }

  /** Goes from a backslash to the last character of its escape. */
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

  /** One digit or more. */
  #readDigits(): void {
    if (!isDigit(this.#text.charCodeAt(this.#at))) this.#fail()
    while (isDigit(this.#text.charCodeAt(this.#at))) this.#at++
  }

  #expect(character: string): void {
    if (!this.#take(character)) this.#fail()
  }

  /** Goes past white space, and past the character if it comes next. */
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

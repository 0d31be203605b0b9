/**
 * Repairs `JSON.parse` where it reads names of members wrongly.
 *
 * V8 since Node 24 takes a name that ends with an escape, such as `"\n"`, for a name that ends with a backslash, if an
 * object with that one was parsed before (https://issues.chromium.org/issues/521080746): whoever names a key of their
 * metadata `\` would change what others have sent. Texts with such names, which are rare, are read with a mark behind
 * each of them, so that none ends with an escape, and the marks are taken away from what was read.
 */

/** Perhaps a name that ends with an escape; finds some texts that have none. */
const SUSPECT = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})"\s*:/u
/** Strings, and what follows each if it is a name. */
const STRINGS = /"((?:[^"\\]|\\.)*)"(\s*:)?/gsu
const ESCAPE_LAST = /(?:^|[^\\])(?:\\\\)*\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})$/u

/** A character that the text does not have. */
const markFor = (text: string): string => {
  let code = 0xe000
  while (text.includes(String.fromCharCode(code))) code++
  return String.fromCharCode(code)
}

type Reviver = (this: unknown, name: string, value: unknown, context?: unknown) => unknown

/** Parses as `parse` does, but for its mistake. */
export const repaired = (parse: (text: string, reviver?: Reviver) => unknown) => {
  const carefully = (text: string, reviver: Reviver | undefined): unknown => {
    const mark = markFor(text)
    const marked = text.replaceAll(STRINGS, (string, content: string, colon: string | undefined) =>
      colon !== undefined && ESCAPE_LAST.test(content) ? `"${content}${mark}"${colon}` : string
    )
    if (marked === text) return parse(text, reviver)
    const plain = (name: string) => (name.endsWith(mark) ? name.slice(0, -1) : name)
    return parse(marked, function (name, value, context) {
      const isMarked =
        typeof value === "object" && value !== null && Object.keys(value).some((key) => key.endsWith(mark))
      const members = isMarked ? Object.entries(value).map(([key, member]) => [plain(key), member] as const) : []
      const read = isMarked ? Object.fromEntries(members) : value
      return reviver === undefined ? read : reviver.call(this, plain(name), read, context)
    })
  }
  return (given: unknown, reviver?: Reviver): unknown => {
    const text = String(given)
    return text.includes("\\") && SUSPECT.test(text) ? carefully(text, reviver) : parse(text, reviver)
  }
}

/**
 * Says whether `parse` makes the mistake. Which names are taken for others depends on those before them, so this leaves
 * nothing behind for whoever does not parse objects that begin with this one.
 */
export const isMistaken = (parse: (text: string) => unknown): boolean => {
  parse(String.raw`{"till: is JSON.parse mistaken?":0,"\\":0}`)
  return !Object.keys(parse(String.raw`{"till: is JSON.parse mistaken?":0,"\n":0}`) as object).includes("\n")
}

/** `JSON.parse`, repaired where it has to be. */
export const parseJson: typeof JSON.parse = isMistaken(JSON.parse)
  ? (repaired(JSON.parse) as typeof JSON.parse)
  : JSON.parse

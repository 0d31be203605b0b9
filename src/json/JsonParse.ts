/**
 * Parses JSON like `JSON.parse`, without V8's bug with escaped names.
 *
 * V8 since Node 24 can read a name with an escape as another name (https://issues.chromium.org/issues/521080746). V8
 * takes as many characters of the name's source as the name has, and looks them up among the names of earlier objects:
 * `"a\nb"` has three characters, its source begins with `a\n`, and it is read as "a", backslash, "n" if an earlier
 * object had that name. So one merchant's metadata key could change the content of other merchants' requests.
 *
 * Every text is parsed by `JSON.parse` first, which rejects invalid JSON. A text with an escape in a name, which is
 * rare, is then parsed again by `JsonReader`. Both take time proportional to the text's length.
 *
 * All of Till uses this function, except where all names are Till's own: bundled files, `jsonb` columns, whose names
 * are those of labels and attempts, and the scripts of pages.
 */
import { isSpace, JsonReader, JsonSyntaxError } from "./JsonReader.ts"

const BACKSLASH = 0x5c
const COLON = 0x3a
const QUOTE = 0x22

/** Parses a text. Throws a `SyntaxError` if it is not JSON. */
export const parseJson = (text: string): unknown => {
  const value: unknown = JSON.parse(text)
  return text.includes("\\") && hasEscapeInName(text) ? new JsonReader(text).read() : value
}

/** Returns the index of the first invalid character, which may be the end of the text; undefined for valid JSON. */
export const syntaxErrorIn = (text: string): number | undefined => {
  try {
    new JsonReader(text).read()
    return undefined
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error.index
    throw error
  }
}

/** Returns whether a name in a JSON text contains an escape. Backslashes occur in strings only, as escapes. */
const hasEscapeInName = (text: string): boolean => {
  for (let at = text.indexOf("\\"); at !== -1; at = text.indexOf("\\", at)) {
    for (let code = BACKSLASH; code !== QUOTE; code = text.charCodeAt(at)) at += code === BACKSLASH ? 2 : 1
    do at++
    while (isSpace(text.charCodeAt(at)))
    if (text.charCodeAt(at) === COLON) return true
  }
  return false
}

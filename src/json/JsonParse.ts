/**
 * Parses JSON as `JSON.parse` does, without V8's mistake about names.
 *
 * V8 since Node 24 may read a name that is written with an escape as another name
 * (https://issues.chromium.org/issues/521080746). Of the name's source it takes as many characters as the name has, and
 * looks for them among the names of earlier objects: `"a\nb"` has three characters, its source begins with `a\n`, and
 * it is read as "a", backslash, "n" if an earlier object had that name. A merchant with such a key in their metadata
 * would change what other merchants' requests say.
 *
 * Every text goes to `JSON.parse` first, so nothing else works on text that is not JSON. A text with an escape in a
 * name, which is rare, is then read once more by `JsonReader`. The time for both is proportional to the text's length.
 *
 * All of Till parses by this function, except where all names are Till's own: files that come with it, `jsonb` columns,
 * whose names are those of labels and attempts, and the scripts of pages.
 */
import { isSpace, JsonReader, JsonSyntaxError } from "./JsonReader.ts"

const BACKSLASH = 0x5c
const COLON = 0x3a
const QUOTE = 0x22

/** Throws a `SyntaxError` if the text is not JSON. */
export const parseJson = (text: string): unknown => {
  const value: unknown = JSON.parse(text)
  return text.includes("\\") && hasEscapeInName(text) ? new JsonReader(text).read() : value
}

/** The index of the first character because of which a text is not JSON; the text's length if it ends too early. */
export const syntaxErrorIn = (text: string): number | undefined => {
  try {
    new JsonReader(text).read()
    return undefined
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error.index
    throw error
  }
}

/** Expects JSON: there, a backslash stands in a string, as the first character of an escape. */
const hasEscapeInName = (text: string): boolean => {
  for (let at = text.indexOf("\\"); at !== -1; at = text.indexOf("\\", at)) {
    for (let code = BACKSLASH; code !== QUOTE; code = text.charCodeAt(at)) at += code === BACKSLASH ? 2 : 1
    do at++
    while (isSpace(text.charCodeAt(at)))
    if (text.charCodeAt(at) === COLON) return true
  }
  return false
}

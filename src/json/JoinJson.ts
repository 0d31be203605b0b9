/**
 * Puts JSON texts side by side, with commas in between. V8 keeps a concatenation as a tree of its parts until it is
 * read, so long texts inside of a longer one are copied once. `Array.join` would copy them once more.
 */
export const joinJson = (texts: ReadonlyArray<string>): string => {
  let joined = ""
  for (const text of texts) joined = joined === "" ? text : `${joined},${text}`
  return joined
}

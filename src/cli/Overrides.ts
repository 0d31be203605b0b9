import { parseJson } from "../json/JsonParse.ts"
/**
 * `path=value`: fields of a request's body, as typed on the command line.
 *
 * A path names fields as the API's errors do: `amount`, `metadata[order]`, `line_items[0][quantity]`. A value is parsed
 * as JSON (`5000`, `true`, `null`, `"7"`); a value that is no JSON is a string. Values of metadata are always strings.
 */
export interface Override {
  readonly path: ReadonlyArray<string>
  readonly value: unknown
}

const FORM = /^(\w+)((?:\[\w+\])*)=(.*)$/su

/** Parses `path=value`; undefined if it has another form. */
export const overrideOf = (text: string): Override | undefined => {
  const match = FORM.exec(text)
  if (match === null) return undefined
  const [, first, rest, value] = match as unknown as readonly [string, string, string, string]
  const path = [first, ...[...rest.matchAll(/\[(\w+)\]/gu)].map(([, name]) => name!)]
  return { path, value: path.includes("metadata") && path.at(-1) !== "metadata" ? value : valueOf(value) }
}

const valueOf = (text: string): unknown => {
  try {
    return parseJson(text)
  } catch {
    return text
  }
}

/** Returns the body with the fields set; later ones win. The API validates the result, as it validates any body. */
export const applyOverrides = <A extends object>(body: A, overrides: ReadonlyArray<Override>): A =>
  overrides.reduce((current: unknown, { path, value }) => replaceAt(current, path, value), body) as A

const replaceAt = (current: unknown, [name, ...rest]: ReadonlyArray<string>, value: unknown): unknown => {
  if (name === undefined) return value
  if (isIndex(name) && (Array.isArray(current) || current === undefined)) {
    const items: ReadonlyArray<unknown> = current ?? []
    // An index beyond the end appends: an array has no gaps.
    const index = Math.min(Number(name), items.length)
    return [...items.slice(0, index), replaceAt(items[index], rest, value), ...items.slice(index + 1)]
  }
  const fields = typeof current === "object" && current !== null && !Array.isArray(current) ? current : {}
  const inner = Object.hasOwn(fields, name) ? (fields as Readonly<Record<string, unknown>>)[name] : undefined
  return { ...fields, [name]: replaceAt(inner, rest, value) }
}

const isIndex = (name: string): boolean => /^\d{1,9}$/u.test(name)

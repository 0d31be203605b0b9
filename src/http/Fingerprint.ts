/**
 * A request's fingerprint (semantics I4) is equal for every spelling of the same request, and different for any other.
 *
 * It is written to the journal, so card numbers and security codes enter it only as their HMAC: a plain SHA-256 of a
 * request with a 16-digit number in it could be searched for that number.
 */
import { createHmac, hash } from "node:crypto"

/** Takes the SHA-256 of method, path and the body with its keys in order. `key` is the installation's secret. */
export const fingerprint = (method: string, path: string, body: unknown, key: Uint8Array): string =>
  hash("sha256", `${method} ${path}\n${canonical(body, key, false)}`, "base64url")

const canonical = (value: unknown, key: Uint8Array, inCard: boolean): string => {
  if (typeof value === "string") return JSON.stringify(value)
  // Beyond the range of a double, JSON's numbers become Infinity, which JSON cannot write.
  if (typeof value !== "object" || value === null) return String(value)
  if (Array.isArray(value)) return `[${value.map((member) => canonical(member, key, inCard)).join(",")}]`
  const members = value as Readonly<Record<string, unknown>>
  let text = "{"
  for (const name of inOrder(Object.keys(members))) {
    const member = members[name]
    const isSecret = inCard && (name === "number" || name === "cvc") && typeof member !== "object"
    text += `${JSON.stringify(name)}:${isSecret ? sealed(canonical(member, key, false), key) : canonical(member, key, name === "card")},`
  }
  return text + "}"
}

/** Sorts only where it must: most bodies are written by a program, with a key or two. */
const inOrder = (names: Array<string>): Array<string> => {
  for (let i = 1; i < names.length; i++) if (names[i - 1]! > names[i]!) return names.toSorted()
  return names
}

const sealed = (secret: string, key: Uint8Array): string =>
  `<${createHmac("sha256", key).update(secret).digest("base64url")}>`

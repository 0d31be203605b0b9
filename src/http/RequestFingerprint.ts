/**
 * A request's fingerprint (semantics idempotency.fingerprint) is equal for every spelling of the same request, and
 * different for any other.
 *
 * It is written to the journal, so a card number enters it only as its HMAC: a plain SHA-256 of a request with a
 * 16-digit number in it could be searched for that number. Nothing that derives from a security code may outlive the
 * request, not even a keyed hash, so the fingerprint says only whether there is one.
 */
import { createHmac, hash } from "node:crypto"

/** Takes the SHA-256 of method, path and the body with its keys in order. `key` is the installation's secret. */
export const fingerprint = (method: string, path: string, body: unknown, key: Uint8Array): string =>
  hash("sha256", `${method} ${path}\n${canonical(body, key, false)}`, "base64url")

const canonical = (value: unknown, key: Uint8Array, inCard: boolean): string => {
  if (typeof value === "string") return JSON.stringify(value)
  // A number beyond the range of a double is parsed as Infinity, which JSON cannot write.
  if (typeof value !== "object" || value === null) return String(value)
  if (Array.isArray(value)) return `[${value.map((member) => canonical(member, key, inCard)).join(",")}]`
  const members = value as Readonly<Record<string, unknown>>
  let text = "{"
  for (const name of inOrder(Object.keys(members))) {
    const member = members[name]
    text += `${JSON.stringify(name)}:${inCard ? ofCard(name, member, key) : canonical(member, key, name === "card")},`
  }
  return text + "}"
}

/** Writes a member of a card, which may be any JSON. */
const ofCard = (name: string, member: unknown, key: Uint8Array): string => {
  if (name === "cvc") return member === null ? "null" : "<>"
  const text = canonical(member, key, name === "card")
  return name === "number" ? sealed(text, key) : text
}

/** Sorts names that are not sorted yet: most bodies have one or two keys. */
const inOrder = (names: Array<string>): Array<string> => {
  for (let i = 1; i < names.length; i++) if (names[i - 1]! > names[i]!) return names.toSorted()
  return names
}

const sealed = (secret: string, key: Uint8Array): string =>
  `<${createHmac("sha256", key).update(secret).digest("base64url")}>`

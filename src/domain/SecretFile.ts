/**
 * The text of the installation's secret file, and the keys that derive from it (semantics operation.secret).
 *
 * The first line is the newest secret, 32 bytes in hex. While a roll is unfinished, the second line is the secret
 * before it. The lines after them are keys that derive from secrets which the file may no longer contain, each with its
 * purpose:
 *
 * - Some keys must stay the same for ever, because ids, card fingerprints, password hashes and the proofs of erasures
 *   depend on them, and none can be computed anew. They derive from the installation's first secret.
 * - Each secret signs anchors until the next one replaces it, and its anchors are verified afterwards, too.
 *
 * A derived key does not reveal its secret.
 */
import { createHmac, randomBytes } from "node:crypto"
import { Redacted } from "effect"

export type Key = Redacted.Redacted<Uint8Array>

const SECRET_BYTES = 32

/** Purposes of the keys that stay the same for ever. */
const LASTING = ["account numbers", "card fingerprints", "password salts", "erasures"] as const
export type LastingPurpose = (typeof LASTING)[number]
/** The purpose of the keys that are kept for verification. */
const VERIFIED = "anchors"
/** Purposes of the keys that change with each roll. */
export type Purpose = "sealed secrets" | "form tokens" | "connections between runners" | "backup manifests"

export interface SecretFile {
  /** Newest first: one secret, or two while a roll is unfinished. */
  readonly secrets: ReadonlyArray<Key>
  /** Keys that the file contains, by purpose, newest first. */
  readonly kept: ReadonlyMap<string, ReadonlyArray<Key>>
}

const keyFrom = (bytes: Uint8Array): Key => Redacted.make(new Uint8Array(bytes), { label: "installation secret" })

const derive = (secret: Key, purpose: string): Key =>
  keyFrom(createHmac("sha256", Redacted.value(secret)).update(purpose).digest())

const hexOf = (key: Key): string => Buffer.from(Redacted.value(key)).toString("hex")

const isSame = (one: Key, other: Key): boolean => hexOf(one) === hexOf(other)

const LINE = /^(?:([a-z-]{1,40}) )?([0-9a-f]{64})$/iu

/** Names of keys in the file have hyphens instead of blanks. */
const nameOf = (purpose: string): string => purpose.replaceAll(" ", "-")
const purposeOf = (name: string): string => name.replaceAll("-", " ")

/** Parses the text of a secret file; undefined for a damaged one. */
export const parse = (text: string): SecretFile | undefined => {
  const secrets: Array<Key> = []
  const kept = new Map<string, Array<Key>>()
  for (const line of text.trim().split("\n")) {
    const [, name, digits] = LINE.exec(line.trim()) ?? []
    if (digits === undefined) return undefined
    const key = keyFrom(Buffer.from(digits, "hex"))
    if (name === undefined) secrets.push(key)
    else kept.set(purposeOf(name), [...(kept.get(purposeOf(name)) ?? []), key])
  }
  const isRolled = kept.size > 0
  const isWhole = !isRolled || LASTING.every((purpose) => kept.get(purpose)?.length === 1)
  return isWhole && (secrets.length === 1 || (secrets.length === 2 && isRolled)) ? { secrets, kept } : undefined
}

/** Returns the text of a secret file. */
export const textOf = ({ kept, secrets }: SecretFile): string => {
  const lines = [...kept].flatMap(([purpose, keys]) => keys.map((key) => `${nameOf(purpose)} ${hexOf(key)}`))
  return `${[...secrets.map(hexOf), ...lines].join("\n")}\n`
}

/** Makes the file of a new installation. */
export const make = (): SecretFile => ({ secrets: [keyFrom(randomBytes(SECRET_BYTES))], kept: new Map() })

/** Returns the keys of a purpose, one for each secret, newest first. */
export const keysOf = ({ secrets }: SecretFile, purpose: Purpose): ReadonlyArray<Key> =>
  secrets.map((secret) => derive(secret, purpose))

/** Returns a key that stays the same for ever. */
export const lastingKeyOf = ({ kept, secrets }: SecretFile, purpose: LastingPurpose): Key =>
  kept.get(purpose)?.[0] ?? derive(secrets.at(-1)!, purpose)

/** Returns the keys that have ever signed anchors, newest first. The first ones are those of the file's secrets. */
export const anchorKeysOf = ({ kept, secrets }: SecretFile): ReadonlyArray<Key> => {
  const own = secrets.map((secret) => derive(secret, VERIFIED))
  return [...own, ...(kept.get(VERIFIED) ?? []).filter((key) => !own.some((known) => isSame(known, key)))]
}

/** Returns a short name of the keys that stay the same for ever, which reveals none of them. */
export const lastingPrintOf = (file: SecretFile): string => {
  const mac = createHmac("sha256", "lasting keys of an installation")
  for (const purpose of LASTING) mac.update(Redacted.value(lastingKeyOf(file, purpose)))
  return mac.digest("hex")
}

/** Adds a new secret in front, for a roll. The file must have one secret. */
export const withNewSecret = (file: SecretFile): SecretFile => ({
  secrets: [keyFrom(randomBytes(SECRET_BYTES)), ...file.secrets],
  kept: new Map<string, ReadonlyArray<Key>>([
    ...LASTING.map((purpose): [string, ReadonlyArray<Key>] => [purpose, [lastingKeyOf(file, purpose)]]),
    [VERIFIED, anchorKeysOf(file)]
  ])
})

/** Removes the older secret, after a roll. */
export const withoutOldSecret = ({ kept, secrets }: SecretFile): SecretFile => ({ kept, secrets: secrets.slice(0, 1) })

/** True if a file has all secrets of another one, and the same lasting keys: it can take the other's place. */
export const covers = (file: SecretFile, other: SecretFile): boolean =>
  other.secrets.every((wanted) => file.secrets.some((secret) => isSame(secret, wanted))) &&
  lastingPrintOf(file) === lastingPrintOf(other)

/**
 * Metadata that merchants attach to objects (semantics metadata.*).
 *
 * The merchant chooses the keys, so any key can occur, `__proto__` included: objects are built from entries only, which
 * makes every key an own property.
 */
import { Effect, Schema } from "effect"
import { ParameterInvalid } from "./ParameterErrors.ts"
import { hasLengthAtMost } from "./Length.ts"
import { text } from "./Text.ts"

export const METADATA_KEYS_MAX = 50
export const METADATA_KEY_LENGTH_MAX = 40
export const METADATA_VALUE_LENGTH_MAX = 500

const METADATA_RULE =
  `an object with at most ${METADATA_KEYS_MAX} keys, each of 1 to ${METADATA_KEY_LENGTH_MAX} characters ` +
  "and without square brackets"

/** Metadata as it is stored and returned. */
export const Metadata = Schema.Record(Schema.String, Schema.String).annotate({ identifier: "Metadata" })
export type Metadata = typeof Metadata.Type

/** Metadata in a request: null or "" removes a key (semantics metadata.limits, metadata.update, metadata.create). */
export const MetadataParameter = Schema.Record(Schema.String, Schema.NullOr(text(METADATA_VALUE_LENGTH_MAX))).check(
  Schema.makeFilter(
    (metadata: Readonly<Record<string, string | null>>) =>
      Object.keys(metadata).every(isKey) && Object.values(metadata).filter(Boolean).length <= METADATA_KEYS_MAX,
    {
      rule: METADATA_RULE,
      toJsonSchema: () => ({
        description: "An empty list counts as an empty object, because PHP encodes an empty map as one.",
        propertyNames: { minLength: 1, maxLength: METADATA_KEY_LENGTH_MAX, pattern: "^[^\\[\\]]*$" }
      })
    }
  )
)
export type MetadataParameter = typeof MetadataParameter.Type

/** Merges an update (semantics metadata.update). Returns the same object if nothing changes. */
export const mergeMetadata = (current: Metadata, update: MetadataParameter | null | ""): Metadata => {
  if (update === null || update === "") return Object.keys(current).length === 0 ? current : {}
  const merged = new Map(Object.entries(current))
  for (const [key, value] of Object.entries(update)) {
    if (value === null || value === "") merged.delete(key)
    else merged.set(key, value)
  }
  const changed = merged.size !== Object.keys(current).length || changedKeys(current, merged).length > 0
  return changed ? Object.fromEntries(merged) : current
}

/** Returns the old values of the changed keys; null for an absent one (semantics events.previous_attributes). */
export const previousMetadata = (previous: Metadata, current: Metadata): Readonly<Record<string, string | null>> => {
  const before = new Map(Object.entries(previous))
  const after = new Map(Object.entries(current))
  const keys = [...new Set([...before.keys(), ...after.keys()])].filter((key) => before.get(key) !== after.get(key))
  return Object.fromEntries(keys.map((key) => [key, before.get(key) ?? null]))
}

/**
 * Merges an update that may be absent. Fails with `ParameterInvalid` if the result has too many keys (semantics
 * metadata.update); the schema of a request limits one request only.
 */
export const updateMetadata = (
  current: Metadata,
  update: MetadataParameter | null | "" | undefined
): Effect.Effect<Metadata, ParameterInvalid> => {
  if (update === undefined) return Effect.succeed(current)
  const metadata = mergeMetadata(current, update)
  return Object.keys(metadata).length <= METADATA_KEYS_MAX
    ? Effect.succeed(metadata)
    : Effect.fail(new ParameterInvalid({ param: "metadata", rule: METADATA_RULE }))
}

const changedKeys = (current: Metadata, merged: ReadonlyMap<string, string>): ReadonlyArray<string> =>
  [...merged.keys()].filter((key) => !Object.hasOwn(current, key) || current[key] !== merged.get(key))

const isKey = (key: string): boolean =>
  key !== "" && hasLengthAtMost(key, METADATA_KEY_LENGTH_MAX) && !/[[\]]/u.test(key)

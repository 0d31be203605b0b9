/**
 * Checksums of rows of the views. A reader detects by them that a row, or the document it points to, was changed.
 *
 * A CRC-32 detects every change of up to four adjacent bytes, and nearly every other one. It is no protection against
 * deliberate changes, which can include a new checksum: `till verify` finds those by the hashes of the records.
 */
import { crc32 } from "node:zlib"
import type { AccountId, Labels, Millis } from "./Document.ts"
import type { Span } from "./Record.ts"

export type Checksum = number

/** Separates fields. No field contains it. */
const BETWEEN = "\u0000"

interface DocumentFields {
  readonly account: AccountId
  readonly id: string
  readonly kind: string
  readonly version: number
  readonly documentSpan: Span | null
  readonly hiddenSpan: Span | null
  readonly labels: Labels
  readonly format: number
}

/** Returns the checksum of a document's row and its texts. */
export const ofDocument = (row: DocumentFields, document: string | null, hidden: string | null): Checksum => {
  const { account, documentSpan, format, hiddenSpan, id, kind, labels, version } = row
  const [at, length] = documentSpan === null ? [null, null] : [documentSpan.at, documentSpan.length]
  const [hiddenAt, hiddenLength] = hiddenSpan === null ? [null, null] : [hiddenSpan.at, hiddenSpan.length]
  const places = `${at} ${length} ${hiddenAt} ${hiddenLength}`
  const fields = `${account}${BETWEEN}${id}${BETWEEN}${kind}${BETWEEN}${version} ${format} ${places}${labelsText(labels)}`
  return crc32(hidden ?? "", crc32(document ?? "", crc32(fields))) | 0
}

const ofFields = (...fields: ReadonlyArray<string | number>): Checksum => crc32(fields.join(BETWEEN)) | 0

/** Returns the checksum of a timer's row, without `wakeAt`, which changes with the account's clock. */
export const ofTimer = (row: {
  readonly account: AccountId
  readonly id: string
  readonly name: string
  readonly version: number
  readonly dueAt: Millis
}): Checksum => ofFields(row.account, row.id, row.name, row.version, row.dueAt)

export const ofSubscription = (row: {
  readonly account: AccountId
  readonly destination: string
  readonly types: ReadonlyArray<string>
  readonly version: number
}): Checksum => ofFields(row.account, row.destination, row.version, ...row.types)

/** Returns the checksum of an account's checkpoint. The storage adds `ahead`, which only the storage knows. */
export const ofCheckpoint = (account: AccountId, version: number): Checksum => ofFields(account, version)

/** Returns labels as text, in the same order however they are given; empty without labels. */
export const labelsText = (labels: Labels): string => {
  for (const _ in labels) {
    const names = Object.keys(labels).toSorted()
    return JSON.stringify(names.map((name) => [name, labels[name]]))
  }
  return ""
}

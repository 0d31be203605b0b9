/**
 * Checksums of rows of the views: whoever reads a row sees by its own whether it is as it was written, and the document
 * that it points to with it.
 *
 * A CRC-32 finds every change of a few bytes side by side, and of all others as good as every one. Nobody is kept from
 * computing a new one: that is what the hashes of records are for, which `till verify` compares all rows with.
 */
import { crc32 } from "node:zlib"
import type { AccountId, Labels, Millis } from "./Document.ts"
import type { Span } from "./Record.ts"

/** As the storage keeps it: 32 bits with a sign. */
export type Checksum = number

/** No field has this character in it, so fields that stand apart stay apart. */
const BETWEEN = "\u0000"

/** What counts of a document's row. */
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

/** Of a document's row and its texts. */
export const ofDocument = (row: DocumentFields, document: string | null, hidden: string | null): Checksum => {
  const { account, documentSpan, format, hiddenSpan, id, kind, labels, version } = row
  const [at, length] = documentSpan === null ? [null, null] : [documentSpan.at, documentSpan.length]
  const [hiddenAt, hiddenLength] = hiddenSpan === null ? [null, null] : [hiddenSpan.at, hiddenSpan.length]
  const places = `${at} ${length} ${hiddenAt} ${hiddenLength}`
  const fields = `${account}${BETWEEN}${id}${BETWEEN}${kind}${BETWEEN}${version} ${format} ${places}${labelsText(labels)}`
  return crc32(hidden ?? "", crc32(document ?? "", crc32(fields))) | 0
}

const ofFields = (...fields: ReadonlyArray<string | number>): Checksum => crc32(fields.join(BETWEEN)) | 0

/** Of a timer's row. When the account is woken for it follows from its clock, and a sweep changes it. */
export const ofTimer = (row: {
  readonly account: AccountId
  readonly id: string
  readonly name: string
  readonly version: number
  readonly dueAt: Millis
}): Checksum => ofFields(row.account, row.id, row.name, row.version, row.dueAt)

/** Of a subscription's row. */
export const ofSubscription = (row: {
  readonly account: AccountId
  readonly destination: string
  readonly types: ReadonlyArray<string>
  readonly version: number
}): Checksum => ofFields(row.account, row.destination, row.version, ...row.types)

/** Of how far an account is projected. The storage adds by how much its ids are ahead, which it alone knows. */
export const ofCheckpoint = (account: AccountId, version: number): Checksum => ofFields(account, version)

/** In one order, whichever they came in. Many documents have none. */
export const labelsText = (labels: Labels): string => {
  for (const _ in labels) {
    const names = Object.keys(labels).toSorted()
    return JSON.stringify(names.map((name) => [name, labels[name]]))
  }
  return ""
}

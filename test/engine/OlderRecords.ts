/** Records in the formats of an older Till, which contain their account and version, and documents by their ids. */
import { hash } from "node:crypto"
import type { JournalRecord, JournalRow } from "../../src/engine/log/Record.ts"
import { GENESIS } from "../../src/engine/log/Record.ts"
import { parseJson } from "../../src/json/JsonParse.ts"

/** Makes a record after the one with hash `previous`, in one of the formats before the fifth. */
export const olderRow = (record: JournalRecord, format: number, previous: string = GENESIS): JournalRow => {
  const { account, at, clock, request, sequence, version } = record
  const texts = record.changes.map(({ document, format, hidden, id, kind, labels }) => {
    const rest = `${hidden === null ? "" : `,"hidden":${hidden}`}${
      Object.keys(labels).length === 0 ? "" : `,"labels":${JSON.stringify(labels)}`
    }${format === 1 ? "" : `,"format":${format}`}`
    return `{"id":${JSON.stringify(id)},"kind":"${kind}","document":${document}${rest}}`
  })
  const nameOf = (json: string): string | undefined => record.changes.find(({ document }) => document === json)?.id
  const events = record.events.map(({ format, id, object, previous, type }) => {
    const of = nameOf(object)
    const image = of === undefined ? { object: parseJson(object), ...(format > 1 && { format }) } : { of }
    return { id, type, ...image, ...(previous !== null && { previous }) }
  })
  const { apiVersion, attempts, deliveries, hastened, response, subscriptions, timers } = record
  const of = response === null ? undefined : nameOf(response.body)
  const answer = response && {
    status: response.status,
    ...(of === undefined ? { body: parseJson(response.body) } : { of })
  }
  const rare = {
    ...(apiVersion !== null && { apiVersion }),
    subscriptions,
    attempts,
    hastened,
    now: record.now,
    clock,
    advanced: record.advanced,
    wiped: record.wiped
  }
  const head = JSON.stringify({ format, account, version, at, sequence, request }).slice(0, -1)
  const tail = JSON.stringify({ events, timers, deliveries, ...rare, response: answer }).slice(1)
  const bytes = Buffer.from(`${head},"changes":[${texts.join(",")}],${tail}`)
  return { account, version, bytes, hash: hash("sha256", `${previous}${bytes.toString()}`, "hex") }
}

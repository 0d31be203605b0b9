/**
 * Corpora: installations as released versions of Till left them, kept so that every later Till can be started on them.
 * `make.ts` makes them.
 */
import * as fs from "node:fs"
import * as Path from "node:path"
import { gunzipSync } from "node:zlib"

/** A POST under an idempotency key, and its answer. */
export interface Exchange {
  readonly path: string
  readonly key: string
  readonly idempotencyKey: string
  readonly body: object
  readonly status: number
  /** The body's exact text. */
  readonly text: string
}

/** A webhook as it arrived. */
export interface ReceivedWebhook {
  /** The path that it was sent to, without the slash. */
  readonly endpoint: string
  /** `evt_…` */
  readonly event: string
  /** Its exact text. */
  readonly body: string
}

export interface Corpus {
  /** When it was finished, in milliseconds. Repeated requests get their answers for a day from then on. */
  readonly at: number
  /** The file `secret`. */
  readonly secret: string
  readonly publicUrl: string
  readonly keys: Readonly<Record<"secretTest" | "publishableTest" | "secretLive" | "publishableLive", string>>
  readonly exchanges: ReadonlyArray<Exchange>
  readonly received: ReadonlyArray<ReceivedWebhook>
  /** The rows of each table as `row_to_json` gives them; those of `effect_sql_migrations` say how the tables looked. */
  readonly tables: Readonly<Record<string, ReadonlyArray<string>>>
}

/** The versions that have one, oldest first. */
export const versions: ReadonlyArray<string> = fs
  .readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith(".json.gz"))
  .map((file) => file.slice(0, -".json.gz".length))
  .toSorted(new Intl.Collator("en", { numeric: true }).compare)

export const fileOf = (version: string): string => Path.join(import.meta.dirname, `${version}.json.gz`)

export const load = (version: string): Corpus => JSON.parse(gunzipSync(fs.readFileSync(fileOf(version))).toString())

/** The signature of records that note erasures: only the installation's secret allows to replace a record's text. */
import { Context, Redacted } from "effect"
import { createHmac } from "node:crypto"
import type { AccountId } from "./Document.ts"
import type { Erased } from "./Record.ts"

/** Key of the signatures, derived from the installation's secret. */
export type ErasureKey = Redacted.Redacted<Uint8Array>

/** Null where the secret is not known: signatures are not checked there. */
export const ErasureKey = Context.Reference<ErasureKey | null>("till/engine/ErasureKey", { defaultValue: () => null })

export const signatureOf = (key: ErasureKey, account: AccountId, rows: Erased["rows"]): string =>
  createHmac("sha256", Redacted.value(key))
    .update(`${account}\n${JSON.stringify(rows)}`)
    .digest("hex")

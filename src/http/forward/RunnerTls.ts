/**
 * TLS between the processes of an installation: version 1.3, without certificates, with a key derived from the
 * installation's secret (an external pre-shared key, RFC 8446, 2.2). While the secret is rolled, both sides know two
 * keys: the connecting side uses that of the secret in force, and names it.
 *
 * - Each side proves in the handshake that it holds the key, and neither sends a byte of HTTP before that. A process
 *   that listens at the address of a dead runner receives a ClientHello, which contains nothing but random numbers and
 *   a keyed hash, and the handshake fails.
 * - Every connection has its own keys, because the handshake also uses an ephemeral key exchange. A recording cannot be
 *   read, even with the secret, and cannot be replayed: there is no early data.
 * - The connecting side resumes no sessions. A ticket would originate from a handshake with the same proof anyway.
 */
import { createHmac } from "node:crypto"
import type { ConnectionOptions, TlsOptions } from "node:tls"
import { Effect, Redacted } from "effect"
import type { Key } from "../../domain/SecretFile.ts"
import { logOf } from "../../engine/process/Log.ts"

const log = logOf("http")

/** The name of a key, which is public. */
const identityOf = (key: Key): string =>
  `till runner ${createHmac("sha256", Redacted.value(key)).update("name of the key").digest("hex").slice(0, 16)}`
/** External keys require SHA-256. */
const TERMS = { minVersion: "TLSv1.3", maxVersion: "TLSv1.3", ciphers: "TLS_AES_128_GCM_SHA256" } as const
/** A connection without a finished handshake is closed after this time. */
const HANDSHAKE_MILLIS_MAX = 5000

export type RunnerTls = ReturnType<typeof make>

/** Returns the TLS options of both sides of a connection. `position` is the place of the key that connections use. */
export const make = (keys: ReadonlyArray<Key>, position: () => number = () => 0) => {
  const known = keys.map((key) => ({ psk: Buffer.from(Redacted.value(key)), identity: identityOf(key) }))
  return {
    client: {
      ...TERMS,
      pskCallback: () => known[position()]!,
      // The environment could turn this off (NODE_TLS_REJECT_UNAUTHORIZED).
      rejectUnauthorized: true,
      // Node calls this only for a peer that shows a certificate instead, which a trusted authority may have signed.
      checkServerIdentity: () => new Error("The peer has a certificate instead of the installation's key.")
    } satisfies ConnectionOptions,
    server: {
      ...TERMS,
      pskCallback: (_, identity) => known.find((key) => key.identity === identity)?.psk ?? null,
      handshakeTimeout: HANDSHAKE_MILLIS_MAX
    } satisfies TlsOptions
  }
}

/** Error codes of an unreachable process, which are unrelated to its key. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  "EADDRNOTAVAIL",
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EPIPE",
  "ERR_TLS_HANDSHAKE_TIMEOUT",
  "ETIMEDOUT"
])

/** True if a handshake failed because the other side did not prove that it holds the key. */
const isUnproven = (error: Error): boolean => {
  const code = "code" in error ? String(error.code) : ""
  return !UNREACHABLE.has(code) && !code.startsWith("UND_")
}

/** The time between two log lines about connections without a proof, in milliseconds. */
const WARNING_MILLIS = 60_000

/**
 * Makes a function that logs a connection whose other side did not prove that it holds the key, at most once per
 * interval. `cause` names the side.
 */
export const makeWarning = (cause: string): Effect.Effect<(text: string, error: Error) => void> =>
  Effect.map(Effect.context<never>(), (context) => (text, error) => {
    if (!isUnproven(error)) return
    const reason = "code" in error ? String(error.code) : error.message
    log.warningIn(context, { cause, pauseMillis: WARNING_MILLIS }, () => ({ text, annotations: { reason } }))
  })

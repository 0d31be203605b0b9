/**
 * TLS between the processes of an installation: version 1.3, without certificates, with one key derived from the
 * installation's secret (an external pre-shared key, RFC 8446, 2.2).
 *
 * - Each side proves in the handshake that it holds the key, and neither sends a byte of HTTP before that. A process
 *   that listens at the address of a dead runner receives a ClientHello, which contains nothing but random numbers and
 *   a keyed hash, and the handshake fails.
 * - Every connection has its own keys, because the handshake also uses an ephemeral key exchange. A recording cannot be
 *   read, even with the secret, and cannot be replayed: there is no early data.
 * - The connecting side resumes no sessions. A ticket would originate from a handshake with the same proof anyway.
 */
import type { ConnectionOptions, TlsOptions } from "node:tls"
import { Effect, Redacted } from "effect"
import { LogThrottle } from "../RequestContext.ts"

/** The key's name, which is public. */
const IDENTITY = "till runner"
/** External keys require SHA-256. */
const TERMS = { minVersion: "TLSv1.3", maxVersion: "TLSv1.3", ciphers: "TLS_AES_128_GCM_SHA256" } as const
/** A connection without a finished handshake is closed after this time. */
const HANDSHAKE_MILLIS_MAX = 5000

export type RunnerTls = ReturnType<typeof make>

/** Returns the TLS options of both sides of a connection. */
export const make = (secret: Redacted.Redacted<Uint8Array>) => {
  const key = () => Buffer.from(Redacted.value(secret))
  return {
    client: {
      ...TERMS,
      pskCallback: () => ({ psk: key(), identity: IDENTITY }),
      // The environment could turn this off (NODE_TLS_REJECT_UNAUTHORIZED).
      rejectUnauthorized: true,
      // Node calls this only for a peer that shows a certificate instead, which a trusted authority may have signed.
      checkServerIdentity: () => new Error("The peer has a certificate instead of the installation's key.")
    } satisfies ConnectionOptions,
    server: {
      ...TERMS,
      pskCallback: (_, identity) => (identity === IDENTITY ? key() : null),
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
 * interval.
 */
export const makeWarning: Effect.Effect<(text: string, error: Error) => void> = Effect.map(
  Effect.context<never>(),
  (context) => {
    const throttle = new LogThrottle(WARNING_MILLIS)
    const runFork = Effect.runForkWith(context)
    return (text, error) => {
      const unlogged = isUnproven(error) ? throttle.take() : undefined
      if (unlogged === undefined) return
      const reason = "code" in error ? String(error.code) : error.message
      const annotations = { reason, ...(unlogged > 0 && { unlogged_before: unlogged }) }
      runFork(Effect.annotateLogs(Effect.logWarning(text), annotations))
    }
  }
)

/**
 * TLS between the processes of an installation: version 1.3, without certificates, with one key that follows from the
 * installation's secret (an external pre-shared key, RFC 8446, 2.2).
 *
 * - Each side proves in the handshake that it holds the key, and neither sends a byte of HTTP before that. A process
 *   that listens at the address of a dead runner gets a ClientHello, which contains nothing but random numbers and a
 *   keyed hash, and ends there.
 * - Every connection has keys of its own, from an ephemeral key exchange as well. A recording can be neither read, also
 *   not by somebody who gets the secret later, nor sent again: there is no early data.
 * - Sessions are not resumed by the connecting side. A ticket would come from a handshake with the same proof anyway.
 */
import type { ConnectionOptions, TlsOptions } from "node:tls"
import { Effect, Redacted } from "effect"
import { LogThrottle } from "../RequestContext.ts"

/** The name of the key, which is no secret. */
const IDENTITY = "till runner"
/** External keys go with SHA-256. */
const TERMS = { minVersion: "TLSv1.3", maxVersion: "TLSv1.3", ciphers: "TLS_AES_128_GCM_SHA256" } as const
/** A connection without a finished handshake is closed after this time. */
const HANDSHAKE_MILLIS_MAX = 5000

export type RunnerTls = ReturnType<typeof make>

/** Makes the terms of both sides of a connection. */
export const make = (secret: Redacted.Redacted<Uint8Array>) => {
  const key = () => Buffer.from(Redacted.value(secret))
  return {
    client: {
      ...TERMS,
      pskCallback: () => ({ psk: key(), identity: IDENTITY }),
      // The environment could turn it off (NODE_TLS_REJECT_UNAUTHORIZED).
      rejectUnauthorized: true,
      // Node calls it only for a peer that has shown a certificate instead, which some authority may have signed.
      checkServerIdentity: () => new Error("The peer has a certificate instead of the installation's key.")
    } satisfies ConnectionOptions,
    server: {
      ...TERMS,
      pskCallback: (_, identity) => (identity === IDENTITY ? key() : null),
      handshakeTimeout: HANDSHAKE_MILLIS_MAX
    } satisfies TlsOptions
  }
}

/** Codes of errors that say nothing about the other side's key: it is gone, or far off. */
const OF_THE_WAY: ReadonlySet<string> = new Set([
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

/** Tells whether a handshake has failed because the other side did not prove that it holds the key. */
const isUnproven = (error: Error): boolean => {
  const code = "code" in error ? String(error.code) : ""
  return !OF_THE_WAY.has(code) && !code.startsWith("UND_")
}

/** Of the connections without a proof, one is logged in so many milliseconds. */
const WARNING_MILLIS = 60_000

/** Makes what logs that the other side of a connection did not prove that it holds the key. */
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

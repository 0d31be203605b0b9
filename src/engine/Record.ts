/** Placeholder for types; implementation follows. */
export interface RequestIdentity {
  /** `req_…` */
  readonly id: string
  readonly idempotencyKey: string | null
  /** SHA-256 of what the request asks for; equal for a repetition of it. */
  readonly fingerprint: string | null
  /** `X-API-Version` in use. */
  readonly apiVersion: string
}

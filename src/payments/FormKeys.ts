/** Idempotency keys of forms on Till's own pages. No client has sent them, and none can: headers hold no such character. */

const PREFIX = "\u0001"

export const formKey = (subject: string, nonce: string): string => `${PREFIX}form/${subject}/${nonce}`

/** The key as a client has sent it; null for a form's. */
export const sentKey = (key: string | null): string | null => (key?.startsWith(PREFIX) === true ? null : key)

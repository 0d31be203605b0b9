/** The meaning of each response status, for the document (semantics errors.table). */

export interface StatusMeaning {
  readonly description: string
  readonly example: object
  readonly headers?: Readonly<Record<string, unknown>>
}

const error = (type: string, code: string, message: string, param: string | null = null) => ({
  error: { type, code, message, param, doc_url: `https://till.example/docs/errors/${code}` }
})

const invalid = (code: string, message: string, param: string | null = null) =>
  error("invalid_request_error", code, message, param)

const retryAfter = { "Retry-After": { description: "Seconds to wait.", schema: { type: "integer" } } }

export const STATUSES: Readonly<Record<string, StatusMeaning>> = {
  400: {
    description: "The request is invalid, or the object's state does not allow it. Nothing was changed.",
    example: invalid("parameter_missing", "Missing required parameter: `amount`.", "amount")
  },
  401: {
    description: "No API key, or an invalid one.",
    example: error("authentication_error", "authentication_failed", "Invalid API key provided."),
    headers: { "WWW-Authenticate": { schema: { type: "string" } } }
  },
  402: {
    description: "The card was declined. The attempt is recorded, and a repetition gets the same response.",
    example: {
      error: {
        ...error("payment_error", "card_declined", "Your card was declined.").error,
        decline_code: "generic_decline",
        charge: "ch_08Qm3vXk1Zr9TbLw5YcHn2Ea"
      }
    }
  },
  403: {
    description: "The key may not do this: a publishable key where a secret key is needed.",
    example: error("authentication_error", "secret_key_required", "This operation requires a secret API key.")
  },
  404: {
    description: "An object does not exist in this environment: the one in the path, or one that a parameter names.",
    example: invalid("resource_missing", "No Customer found with ID 'cus_08Qm3vXk1Zr9TbLw5YcHn2Ea'.", "id")
  },
  409: {
    description: "A request with the same idempotency key, an operation or a payment is still in progress.",
    example: invalid("idempotency_key_in_use", "A request with this idempotency key is still in progress."),
    headers: retryAfter
  },
  413: {
    description: "The body is larger than 1 MiB, or than 64 KiB with a publishable key.",
    example: invalid("request_too_large", "The request body must be at most 1 MiB (1048576 bytes).")
  },
  415: {
    description: "The type of the body is not `application/json`.",
    example: invalid("unsupported_media_type", "Content-Type must be application/json.")
  },
  422: {
    description: "The idempotency key belongs to another request.",
    example: invalid(
      "idempotency_key_reuse",
      "This idempotency key has already been used with different request parameters."
    )
  },
  429: {
    description: "More requests in this minute than the installation allows. Only with rate limits.",
    example: error(
      "rate_limit_error",
      "rate_limit_exceeded",
      "Too many requests. Please retry after the period specified in the Retry-After header."
    ),
    headers: retryAfter
  },
  500: {
    description: "An error in the service. Nothing was changed.",
    example: error("api_error", "internal_error", "An unexpected error occurred.")
  },
  503: {
    description:
      "The service cannot respond at the moment. Repeating the request with the same idempotency key is safe.",
    example: error("api_error", "service_unavailable", "The service cannot answer at the moment. Please try again."),
    headers: retryAfter
  }
}

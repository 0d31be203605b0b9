/** Explains each error to developers: its meaning, causes and remedies (semantics errors.table). */

export interface Explanation {
  /** One sentence. */
  readonly meaning: string
  readonly causes: ReadonlyArray<string>
  readonly remedies: ReadonlyArray<string>
}

const CORRECT_AND_REPEAT =
  "Correct the request and send it again. Nothing was executed, so you can use the same idempotency key."
const KEPT = "The response is stored under the request's idempotency key. To try again after a change, use a new key."
const SAME_KEY = "Send the same request again with the same idempotency key. It will run at most once."

const PARAMETERS: Readonly<Record<string, Explanation>> = {
  parameter_missing: {
    meaning: "A required parameter or header is missing.",
    causes: [
      "`param` names the missing field of the body, query parameter, or header `Idempotency-Key`.",
      "Every POST needs an `Idempotency-Key`.",
      "Some parameters are only required together with others, such as `success_url` for a hosted Checkout Session."
    ],
    remedies: [CORRECT_AND_REPEAT]
  },
  parameter_invalid: {
    meaning: "A parameter has an invalid value. The message says what is allowed.",
    causes: [
      'The value has the wrong JSON type: the text "2000" is not an integer, and types are never converted.',
      "The value is out of range, too long, in the wrong format, or not one of the allowed values.",
      "The value is null where null does not unset the field, or empty where only free text may be empty.",
      "The value names an unsuitable object, such as a payment method that is detached or belongs to another customer.",
      "`expand[]` names a field that cannot be expanded on this route."
    ],
    remedies: [
      "Check `param`: nested fields are written `card[number]`, items of a list `line_items[0][price]`.",
      CORRECT_AND_REPEAT
    ]
  },
  parameter_unknown: {
    meaning: "The request has a parameter that this operation does not accept.",
    causes: [
      "The name is misspelled. Unknown parameters are never ignored: with `capture_metod`, Till would capture at once.",
      "The parameter belongs to another operation, or cannot be changed after creation."
    ],
    remedies: ["Compare the name with the API reference, or leave the parameter out.", CORRECT_AND_REPEAT]
  },
  parameters_exclusive: {
    meaning: "Two parameters were sent that exclude each other.",
    causes: [
      "Both cursors of a list: `starting_after` and `ending_before`.",
      "Both `price` and `price_data`, or both `payment_method` and `payment_method_data`.",
      "`unit_amount` and `unit_amount_decimal` with different amounts."
    ],
    remedies: ["Leave one of them out; `param` names the second.", CORRECT_AND_REPEAT]
  },
  resource_missing: {
    meaning: "The object does not exist in this environment, or was deleted.",
    causes: [
      "The id is misspelled, or belongs to another kind of object.",
      "The object was created in test mode and the key is a live key, or the other way round.",
      "The object belongs to another merchant, or was deleted.",
      "With a publishable key: the `client_secret` does not belong to the object."
    ],
    remedies: [
      "`param` is `id` for the object in the path, otherwise the parameter that refers to the object.",
      CORRECT_AND_REPEAT
    ]
  },
  resource_already_exists: {
    meaning: "Another price already has this lookup key.",
    causes: ["Lookup keys are unique among all prices of an environment, including archived ones."],
    remedies: [
      "Choose another `lookup_key`, or send `transfer_lookup_key: true` to transfer it from the other price.",
      KEPT
    ]
  },
  resource_in_use: {
    meaning: "The object cannot be deleted, revoked or attached, because it is in use.",
    causes: [
      "A product cannot be deleted while it has prices, active or not.",
      "A payment method cannot be attached to a customer while it belongs to another one.",
      "An API key cannot revoke itself."
    ],
    remedies: [
      "Archive the product instead: update it with `active: false`.",
      "Ask the payer for the card again: a detached payment method cannot be attached again.",
      "Revoke the key with another secret key of the same environment, or with `till keys revoke`.",
      KEPT
    ]
  },
  price_inactive: {
    meaning: "An archived price cannot be used for a new Checkout Session or payment link, or as a product's default.",
    causes: ["The price was archived with `active: false`, or created by `price_data` for one session or link only."],
    remedies: ["Use another price, or set `active: true` again.", KEPT]
  },
  product_inactive: {
    meaning: "The price's product is archived, so it cannot be sold in a new Checkout Session or payment link.",
    causes: ["The product was archived with `active: false`."],
    remedies: ["Sell another product, or set `active: true` again.", KEPT]
  },
  amount_too_large: {
    meaning: "The amount is too large. Amounts are in the currency's smallest unit.",
    causes: [
      "An amount has more than 12 digits, or the lines of a Checkout Session add up to more.",
      "A capture exceeds the authorized amount.",
      "A refund exceeds the captured amount that is left."
    ],
    remedies: [
      "The message names the largest amount. Otherwise look it up in `amount_capturable` or `amount_received`.",
      KEPT
    ]
  }
}

const PAYMENTS: Readonly<Record<string, Explanation>> = {
  card_declined: {
    meaning:
      "The card's issuer declined the payment. `decline_code` says why, and `message` can be shown to the payer.",
    causes: [
      "The bank refused: insufficient funds, a blocked or expired card, a wrong security code, or another reason.",
      "The bank requires authentication, but the confirmation had `off_session: true`: `authentication_required`."
    ],
    remedies: [
      "Show the message and ask for another card, then confirm the PaymentIntent in `requires_payment_method` again.",
      "Confirm with a new idempotency key: the declined attempt is stored under the old one.",
      "Tell the payer no more than the message, which does not reveal that a card was reported lost or stolen."
    ]
  },
  payment_intent_authentication_failure: {
    meaning: "The payer did not pass the authentication that the card's issuer required.",
    causes: [
      "The payer gave up or failed the challenge.",
      "No response has this code. It is in `last_payment_error`, also in the event `payment_intent.payment_failed`."
    ],
    remedies: ["Ask for the card again, or for another one, and confirm the PaymentIntent again."]
  },
  payment_intent_unexpected_state: {
    meaning: "The PaymentIntent's status does not allow this operation.",
    causes: [
      "It was already confirmed, captured or canceled, perhaps by a concurrent request.",
      "It has no payment method, and the request does not provide one.",
      "It belongs to a Checkout Session; expire the session instead."
    ],
    remedies: [
      "Retrieve the PaymentIntent and continue from its `status`. The message names the allowed statuses.",
      KEPT
    ]
  },
  checkout_session_unexpected_state: {
    meaning: "Only open Checkout Sessions can be confirmed or expired.",
    causes: ["The session is complete or has expired.", "A concurrent request was processed first."],
    remedies: [
      "Retrieve the session and check `status` and `payment_status`. To sell again, create another session.",
      KEPT
    ]
  },
  payment_link_inactive: {
    meaning: "The payment link of this Checkout Session takes no more payments. Nothing was charged.",
    causes: [
      "The link was deactivated with `active: false`.",
      "Other payers have completed as many payments as the link's limit allows."
    ],
    remedies: [
      "Update the link with `active: true`, or with a higher `restrictions[completed_sessions][limit]`. The payer can " +
        "then pay for the same session until it expires.",
      KEPT
    ]
  },
  charge_already_refunded: {
    meaning: "This payment has no amount left to refund.",
    causes: ["Earlier refunds add up to the captured amount."],
    remedies: ["List the refunds of the PaymentIntent.", KEPT]
  },
  processor_not_configured: {
    meaning: "This installation has no card processor for live mode, so no live card can be charged.",
    causes: ["`TILL_LIVE_PROCESSOR` is not set."],
    remedies: ["Use a test key to try things out, or ask the operator of the installation to set up a processor.", KEPT]
  },
  processor_unavailable: {
    meaning: "The card processor did not respond. The PaymentIntent is unchanged.",
    causes: ["The processor has an outage; in test mode, a test card simulates it."],
    remedies: [SAME_KEY]
  },
  card_data_refused: {
    meaning: "The payment processor of this account takes cards by token only, so Till accepts no card number.",
    causes: ["The request has a `card`, and the account has a processor of its own."],
    remedies: ["Collect the card with the processor's own fields, and send their `token` in place of `card`."]
  },
  operation_in_progress: {
    meaning: "The processor has not told the outcome of an earlier operation on this PaymentIntent yet.",
    causes: [
      "An earlier confirm, capture, cancel or refund waits for the processor; `pending_operation` names it.",
      "The payer has been asked to authenticate, and somebody else tried to answer."
    ],
    remedies: ["Wait for the PaymentIntent's next event, or a second, then send the request again."]
  },
  customer_has_payment: {
    meaning: "The customer's data cannot be erased while a payment of theirs is in progress. Nothing was changed.",
    causes: ["A PaymentIntent of the customer is `processing`, `requires_action` or `requires_capture`."],
    remedies: ["Capture or cancel the PaymentIntent, or wait for its end; then send the request again."]
  },
  processor_refused: {
    meaning: "The processor refused the request, and will never carry it out. The PaymentIntent is unchanged.",
    causes: ["The processor does not know the payment method's token.", "The processor does not allow the amount."],
    remedies: ["The message has the processor's reason. Correct the request.", KEPT]
  }
}

const ACCESS: Readonly<Record<string, Explanation>> = {
  authentication_failed: {
    meaning: "The request has no valid API key.",
    causes: [
      "The `Authorization` header is missing, or uses another scheme than Basic, such as Bearer.",
      "The key is misspelled, was revoked, or belongs to another installation."
    ],
    remedies: [
      "Send the key as the username of HTTP Basic authentication, with an empty password: `curl -u sk_test_…:`."
    ]
  },
  api_key_expired: {
    meaning: "The key was rolled, and its grace period is over.",
    causes: ["After a key is rolled, the old key stays valid only for the chosen grace period."],
    remedies: ["Use the new key. If it is lost, roll again: a key is shown only once."]
  },
  secret_key_required: {
    meaning: "This operation requires a secret key, but the request has a publishable key.",
    causes: [
      "A publishable key tokenizes cards. With a `client_secret` it reads and confirms that one object only.",
      "The `client_secret` was left out.",
      "The PaymentIntent has `confirmation_method: manual`, which only the server may confirm."
    ],
    remedies: ["Send the request from your server with a secret key. Never put a secret key into a page or an app."]
  },
  test_mode_only: {
    meaning: "This operation exists in test mode only.",
    causes: ["A helper for tests, such as the test clock, was called with a live key."],
    remedies: ["Use a test key."]
  },
  request_log_off: {
    meaning: "The installation keeps no log of requests.",
    causes: ["The operator has set `TILL_REQUEST_LOG_DAYS` to 0."],
    remedies: ["Set `TILL_REQUEST_LOG_DAYS` to the number of days to keep requests, and restart Till."]
  },
  rate_limit_exceeded: {
    meaning: "Too many requests were sent in a short time, or too many attempts to pay have failed.",
    causes: [
      "The installation limits requests per merchant or per IP address.",
      "Twenty attempts to pay for one Checkout Session have failed, so it accepts none for an hour."
    ],
    remedies: ["Wait for the number of seconds in the `Retry-After` header, and spread requests more evenly."]
  }
}

const TRANSPORT: Readonly<Record<string, Explanation>> = {
  idempotency_key_in_use: {
    meaning: "The first request with this idempotency key is still being executed.",
    causes: ["A request was repeated while the first one was still running."],
    remedies: ["Wait a second and send the same request again to get the response of the first one."]
  },
  idempotency_key_reuse: {
    meaning: "The idempotency key was already used for another request. Nothing was executed.",
    causes: [
      "The body, the path or the object differs from that of the first request with this key.",
      "A key is generated once and used for several operations."
    ],
    remedies: ["Use a new key for each operation, such as a random UUID, and reuse it only to repeat the same request."]
  },
  invalid_json: {
    meaning: "The body is not JSON.",
    causes: [
      "The JSON has a syntax error at the byte offset in the message, counted from 0.",
      "The text is not UTF-8, for example Latin-1, or starts with a byte-order mark.",
      "The JSON has more than 64 levels of nesting."
    ],
    remedies: ["Let a library encode the JSON, and send it as UTF-8.", CORRECT_AND_REPEAT]
  },
  unsupported_media_type: {
    meaning: "The body is not declared as JSON.",
    causes: ["`Content-Type` is missing, or is the type of a form."],
    remedies: ["Send `Content-Type: application/json` and a JSON body.", CORRECT_AND_REPEAT]
  },
  request_too_large: {
    meaning: "The body is longer than 1 MiB, or than 64 KiB with a publishable key.",
    causes: ["No operation needs this much; usually something was added to the body by mistake."],
    remedies: ["Send a smaller body.", CORRECT_AND_REPEAT]
  },
  request_headers_too_large: {
    meaning: "The request's headers are longer than 16 KiB in total.",
    causes: ["A proxy or a browser adds large headers, such as cookies. Till uses none."],
    remedies: ["Leave out headers that the API does not use."]
  },
  request_timeout: {
    meaning: "The request did not arrive completely in time.",
    causes: ["The connection is slow or broken, or `Content-Length` is larger than the body."],
    remedies: [SAME_KEY]
  },
  invalid_http: {
    meaning: "The data received is not a valid HTTP request.",
    causes: [
      "The client used another protocol, such as TLS on a port without TLS.",
      "The request line or a header is malformed, or `Host` is missing."
    ],
    remedies: ["Use an HTTP library, and check the scheme of the base address."]
  },
  invalid_api_version: {
    meaning: "The header `X-API-Version` names a version that does not exist.",
    causes: ["The date is misspelled, or the header is sent twice."],
    remedies: ["Send `2026-03-09`, or leave the header out to use the merchant's default.", CORRECT_AND_REPEAT]
  },
  route_not_found: {
    meaning: "This path does not exist.",
    causes: [
      "The path is misspelled. A trailing slash or a double slash makes it a different path.",
      "The path does not begin with `/v1`."
    ],
    remedies: ["Compare the path with the API reference."]
  },
  method_not_allowed: {
    meaning: "The path exists, but does not support this method.",
    causes: ["Updates are POST, not PUT or PATCH.", "Not everything can be deleted: prices are archived."],
    remedies: ["The `Allow` header lists the methods that the path supports."]
  },
  internal_error: {
    meaning: "Something went wrong on the server. Nothing was changed.",
    causes: ["Till has a defect. Its log has the details under the response's `X-Request-Id`."],
    remedies: [SAME_KEY, "If it happens again, tell the operator of the installation the `X-Request-Id`."]
  },
  service_unavailable: {
    meaning: "Till is not available right now.",
    causes: ["Till is starting, stopping or overloaded, or cannot reach its database."],
    remedies: [`Wait for the number of seconds in \`Retry-After\`. ${SAME_KEY}`]
  }
}

/** Groups of the index with their codes. */
export const GROUPS: ReadonlyArray<{ readonly title: string; readonly codes: Readonly<Record<string, Explanation>> }> =
  [
    { title: "Parameters and objects", codes: PARAMETERS },
    { title: "Payments", codes: PAYMENTS },
    { title: "Keys and limits", codes: ACCESS },
    { title: "Requests", codes: TRANSPORT }
  ]

/** Every explanation, by code. */
export const EXPLANATIONS: ReadonlyMap<string, Explanation> = new Map(
  GROUPS.flatMap(({ codes }) => Object.entries(codes))
)

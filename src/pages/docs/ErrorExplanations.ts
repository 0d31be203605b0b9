/** Explains each error to developers: its meaning, causes and remedies (semantics §3). */

export interface Explanation {
  /** One sentence. */
  readonly meaning: string
  readonly causes: ReadonlyArray<string>
  readonly remedies: ReadonlyArray<string>
}

const CORRECT_AND_REPEAT =
  "Correct the request and send it again. Nothing was executed, so the same idempotency key can be used."
const KEPT =
  "The answer is kept under the request's idempotency key. To try again after you changed something, use a new key."
const SAME_KEY = "Send the same request again, with the same idempotency key: it happens once at most."

const PARAMETERS: Readonly<Record<string, Explanation>> = {
  parameter_missing: {
    meaning: "A parameter or header that this request needs is not there.",
    causes: [
      "`param` names what is missing: a field of the body, a query parameter, or the header `Idempotency-Key`.",
      "Every POST needs an `Idempotency-Key`.",
      "Some parameters are only needed beside others, such as `success_url` for a hosted Checkout Session."
    ],
    remedies: [CORRECT_AND_REPEAT]
  },
  parameter_invalid: {
    meaning: "A parameter has a value that it cannot have. The message says what it must be.",
    causes: [
      'The value has another JSON type: the text "2000" is no integer, and nothing is converted.',
      "It is out of range, too long, of another format, or none of the values that are possible.",
      "It is null on an update, where null does not unset it, or empty, which only free text can be.",
      "It names an object that does not fit, such as a payment method that is another customer's or was detached.",
      "`expand[]` names a field that cannot be expanded on this route."
    ],
    remedies: [
      "Look at `param`: nested fields are written `card[number]`, items of a list `line_items[0][price]`.",
      CORRECT_AND_REPEAT
    ]
  },
  parameter_unknown: {
    meaning: "The request has a parameter that this operation does not know.",
    causes: [
      "The name is misspelled. Unknown parameters are never ignored, because `capture_metod` must not capture at once.",
      "The parameter belongs to another operation, or cannot be changed after the object was created."
    ],
    remedies: ["Compare the name with the reference of the API, or leave the parameter out.", CORRECT_AND_REPEAT]
  },
  parameters_exclusive: {
    meaning: "Two parameters were sent of which only one can be.",
    causes: [
      "Both cursors of a list: `starting_after` and `ending_before`.",
      "Both `price` and `price_data`, or both `payment_method` and `payment_method_data`.",
      "`unit_amount` and `unit_amount_decimal` with different amounts."
    ],
    remedies: ["Leave one of them out; `param` names the second.", CORRECT_AND_REPEAT]
  },
  resource_missing: {
    meaning: "There is no such object in this environment, or not any more.",
    causes: [
      "The id is misspelled, or that of another kind of object.",
      "The object was made in test mode and the key is a live one, or the other way round.",
      "It belongs to another merchant, or was deleted.",
      "With a publishable key: the `client_secret` is not that of the object."
    ],
    remedies: [
      "`param` is `id` for the object of the path, else the parameter that refers to the object.",
      CORRECT_AND_REPEAT
    ]
  },
  resource_already_exists: {
    meaning: "Another price has this lookup key already.",
    causes: ["Lookup keys are unique among all prices of an environment, archived ones as well."],
    remedies: [
      "Take another `lookup_key`, or send `transfer_lookup_key: true` to take it over from the other price.",
      KEPT
    ]
  },
  resource_in_use: {
    meaning: "The object cannot be deleted, ended or given away, because something else needs, uses or has it.",
    causes: [
      "A product cannot be deleted while it has prices, active or not.",
      "A payment method cannot be attached to a customer while another one has it.",
      "An API key cannot revoke itself."
    ],
    remedies: [
      "Archive the product instead: update it with `active: false`.",
      "Ask the payer for the card again: one that is detached cannot be attached any more.",
      "Revoke the key with another secret key of the same environment, or with `till keys revoke`.",
      KEPT
    ]
  },
  price_inactive: {
    meaning: "A price that is archived cannot be used for a new Checkout Session, or as a product's default.",
    causes: ["The price was archived with `active: false`, or made by `price_data` for one session only."],
    remedies: ["Use another price, or set `active: true` again.", KEPT]
  },
  product_inactive: {
    meaning: "The price's product is archived, so it cannot be sold in a new Checkout Session.",
    causes: ["The product was archived with `active: false`."],
    remedies: ["Sell another product, or set `active: true` again.", KEPT]
  },
  amount_too_large: {
    meaning: "The amount is more than what is possible. Amounts count the currency's smallest unit.",
    causes: [
      "An amount of more than 12 digits, or a Checkout Session whose lines add up to more.",
      "A capture of more than what was authorized.",
      "A refund of more than what is left of the captured amount."
    ],
    remedies: ["The message names the largest amount, or look it up: `amount_capturable`, `amount_received`.", KEPT]
  }
}

const PAYMENTS: Readonly<Record<string, Explanation>> = {
  card_declined: {
    meaning:
      "The card's issuer declined the payment. `decline_code` says why, and `message` can be shown to the payer.",
    causes: [
      "The bank refuses: too little money, a blocked or expired card, a wrong security code, or a reason that it keeps to itself.",
      "It wants the payer to authenticate, and the payment was confirmed with `off_session: true`: `authentication_required`."
    ],
    remedies: [
      "Show the message and ask for another card. The PaymentIntent is in `requires_payment_method` and can be confirmed again.",
      "Confirm with a new idempotency key: the declined attempt is kept under the old one.",
      "Tell the payer no more than the message says: it is the same for lost and stolen cards on purpose."
    ]
  },
  payment_intent_authentication_failure: {
    meaning: "The payer did not pass the authentication that the card's issuer asked for.",
    causes: [
      "The payer gave up, or failed the challenge.",
      "No request is answered with this code: it stands in `last_payment_error` of the PaymentIntent, and the event `payment_intent.payment_failed` tells of it."
    ],
    remedies: ["Ask for the card again, or for another one, and confirm the PaymentIntent anew."]
  },
  payment_intent_unexpected_state: {
    meaning: "The PaymentIntent's status does not allow this operation.",
    causes: [
      "It was confirmed, captured or canceled before, perhaps by another request at the same time.",
      "It has no payment method, and the request brings none.",
      "It belongs to a Checkout Session, which has to be expired instead."
    ],
    remedies: [
      "Retrieve the PaymentIntent, and go on from its `status`. The message names the statuses that would do.",
      KEPT
    ]
  },
  checkout_session_unexpected_state: {
    meaning: "Only open Checkout Sessions can be confirmed or expired.",
    causes: [
      "The session is complete, or its time is over.",
      "Of two requests at the same time, the other one came first."
    ],
    remedies: [
      "Retrieve the session and look at `status` and `payment_status`. To sell again, create another session.",
      KEPT
    ]
  },
  charge_already_refunded: {
    meaning: "Nothing is left to refund of this payment.",
    causes: ["Earlier refunds add up to all that was captured."],
    remedies: ["List the refunds of the PaymentIntent to see them.", KEPT]
  },
  processor_not_configured: {
    meaning: "This installation has no card processor for live mode, so no live card can be charged.",
    causes: ["`TILL_LIVE_PROCESSOR` is not set."],
    remedies: ["Use a test key to try things out, or have the operator of the installation set up a processor.", KEPT]
  },
  processor_unavailable: {
    meaning: "The card processor did not answer. The PaymentIntent is as it was before.",
    causes: ["An outage of the processor; in test mode, the card that stands for one."],
    remedies: [SAME_KEY]
  }
}

const ACCESS: Readonly<Record<string, Explanation>> = {
  authentication_failed: {
    meaning: "The request has no API key, or none that is valid.",
    causes: [
      "There is no `Authorization` header, or one of another scheme than Basic, such as Bearer.",
      "The key is misspelled, was revoked, or belongs to another installation."
    ],
    remedies: [
      "Send the key as the username of HTTP Basic authentication, with an empty password: `curl -u sk_test_…:`."
    ]
  },
  api_key_expired: {
    meaning: "The key was rolled, and its time of grace is over.",
    causes: ["Somebody rolled the key; the old one went on for the time that was chosen then."],
    remedies: ["Put the new key in its place, or roll again if it is lost: a key is shown once only."]
  },
  secret_key_required: {
    meaning: "This operation takes a secret key, and the request has a publishable one.",
    causes: [
      "A publishable key can tokenize a card. With a matching `client_secret`, it can also read and confirm one PaymentIntent or Checkout Session.",
      "The `client_secret` was left out.",
      "The PaymentIntent has `confirmation_method: manual`, which only the server may confirm."
    ],
    remedies: ["Send the request from your server with the secret key. Never put a secret key into a page or an app."]
  },
  test_mode_only: {
    meaning: "This operation exists in test mode only.",
    causes: ["A helper for tests, such as the test clock, was called with a live key."],
    remedies: ["Use a test key."]
  },
  request_log_off: {
    meaning: "The installation keeps no log of requests.",
    causes: ["Whoever operates it has set `TILL_REQUEST_LOG_DAYS` to 0."],
    remedies: ["Set `TILL_REQUEST_LOG_DAYS` to the days for which requests shall be kept, and start Till again."]
  },
  rate_limit_exceeded: {
    meaning: "Too many requests came in too short a time, or too many attempts to pay have failed.",
    causes: [
      "The installation limits requests, by merchant or by address.",
      "Twenty attempts to pay for one Checkout Session have failed, so it takes none for an hour."
    ],
    remedies: ["Wait for as many seconds as the header `Retry-After` says. Send requests more evenly."]
  }
}

const TRANSPORT: Readonly<Record<string, Explanation>> = {
  idempotency_key_in_use: {
    meaning: "The first request with this idempotency key is still being executed.",
    causes: ["A request was repeated at once, and the first one takes unusually long."],
    remedies: ["Wait for a second and send the same request again, to get the answer of the first."]
  },
  idempotency_key_reuse: {
    meaning: "The idempotency key was used before, for another request. Nothing was executed.",
    causes: [
      "The body, the path or the object differs from that of the first request with this key.",
      "A key is generated once and used for several operations."
    ],
    remedies: [
      "Use a new key for each operation, such as a random UUID, and repeat it only with the very same request."
    ]
  },
  invalid_json: {
    meaning: "The body is not JSON.",
    causes: [
      "A syntax error at the byte that the message names, counted from 0.",
      "Text that is not UTF-8, such as Latin-1, or that starts with a byte-order mark.",
      "More than 64 levels of nesting."
    ],
    remedies: ["Let a library write the JSON, and send it as UTF-8.", CORRECT_AND_REPEAT]
  },
  unsupported_media_type: {
    meaning: "The body is not declared as JSON.",
    causes: ["`Content-Type` is missing, or is that of a form."],
    remedies: ["Send `Content-Type: application/json` and a JSON body.", CORRECT_AND_REPEAT]
  },
  request_too_large: {
    meaning: "The body is longer than 1 MiB, or than 64 KiB with a publishable key.",
    causes: ["No operation needs as much; most often, something was put into the body by mistake."],
    remedies: ["Send less.", CORRECT_AND_REPEAT]
  },
  request_headers_too_large: {
    meaning: "The request's headers are longer than 16 KiB in all.",
    causes: ["A proxy or a browser adds large headers, such as cookies. Till uses none."],
    remedies: ["Leave out the headers that the API does not ask for."]
  },
  request_timeout: {
    meaning: "The request did not arrive in full in time.",
    causes: ["A slow or broken connection, or a `Content-Length` that is larger than the body."],
    remedies: [SAME_KEY]
  },
  invalid_http: {
    meaning: "What arrived is not an HTTP request.",
    causes: [
      "Another protocol was spoken, such as TLS to a port without it, or a request line or header is malformed, or `Host` is missing."
    ],
    remedies: ["Use an HTTP library, and check the scheme of the base address."]
  },
  invalid_api_version: {
    meaning: "The header `X-API-Version` names a version that does not exist.",
    causes: ["The date is misspelled, or the header is sent twice."],
    remedies: ["Send `2026-03-09`, or leave the header out to use the merchant's default.", CORRECT_AND_REPEAT]
  },
  route_not_found: {
    meaning: "There is nothing under this path.",
    causes: [
      "The path is misspelled. A slash at the end, or two in a row, make another path.",
      "The path does not begin with `/v1`."
    ],
    remedies: ["Compare the path with the reference of the API."]
  },
  method_not_allowed: {
    meaning: "The path exists, but not for this method.",
    causes: ["Updates are POST, not PUT or PATCH.", "Not everything can be deleted: prices are archived."],
    remedies: ["The header `Allow` has the methods that the path takes."]
  },
  internal_error: {
    meaning: "Something went wrong that is not your doing. Nothing was changed.",
    causes: ["A defect in Till. Its log has the details, under the response's `X-Request-Id`."],
    remedies: [SAME_KEY, "If it happens again, tell the operator of the installation the `X-Request-Id`."]
  },
  service_unavailable: {
    meaning: "Till cannot answer at the moment.",
    causes: ["It starts, stops, has too much to do, or has lost its database."],
    remedies: [`Wait for as many seconds as \`Retry-After\` says. ${SAME_KEY}`]
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

/** All kinds of documents, with the steps by which older ones are read (semantics versions.documents). */
import { EMITTED_EVENT_TYPES } from "../domain/Event.ts"
import { DocumentFormats } from "../engine/views/DocumentFormats.ts"
import { API_KEY, API_KEY_LOOKUP } from "./ApiKeys.ts"
import { AUDIT_ENTRY } from "./Audit.ts"
import { DASHBOARD_LINK, DASHBOARD_SESSION, SESSIONS_OF, SIGN_IN } from "./DashboardSessions.ts"
import {
  CHARGE,
  CHECKOUT_SESSION,
  CUSTOMER,
  HELD_PAYMENT_METHODS,
  LINE_ITEMS,
  LOOKUP_KEY,
  PAYMENT_INTENT,
  PAYMENT_LINK,
  PAYMENT_LINK_ITEMS,
  PAYMENT_METHOD,
  PRICE,
  PRODUCT,
  REFUND,
  WEBHOOK_ENDPOINT
} from "./Documents.ts"
import { GIVEN_UP } from "./GivenUp.ts"
import { DEFAULT_MERCHANT, MERCHANT } from "./Merchants.ts"
import { PERSON, PERSON_EMAIL, TEAM } from "./People.ts"
import { SECRET_PRINT } from "./Sealing.ts"

export const KINDS = [
  API_KEY,
  API_KEY_LOOKUP,
  AUDIT_ENTRY,
  CHARGE,
  CHECKOUT_SESSION,
  CUSTOMER,
  DASHBOARD_LINK,
  DASHBOARD_SESSION,
  DEFAULT_MERCHANT,
  GIVEN_UP,
  HELD_PAYMENT_METHODS,
  LINE_ITEMS,
  LOOKUP_KEY,
  MERCHANT,
  PAYMENT_INTENT,
  PAYMENT_LINK,
  PAYMENT_LINK_ITEMS,
  PAYMENT_METHOD,
  PERSON,
  PERSON_EMAIL,
  PRICE,
  PRODUCT,
  REFUND,
  SECRET_PRINT,
  SESSIONS_OF,
  SIGN_IN,
  TEAM,
  WEBHOOK_ENDPOINT
] as const

/** Events tell of the kind that their object names; what a later Till emits is nothing that this one could read. */
const kindsOfEvents: Readonly<Record<string, string>> = EMITTED_EVENT_TYPES

export const layer = DocumentFormats.layer(KINDS, (type) => kindsOfEvents[type])

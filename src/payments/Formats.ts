/** All kinds of documents, with the steps by which older ones are read (semantics versions.documents). */
import { EMITTED_EVENT_TYPES } from "../domain/Event.ts"
import { DocumentFormats } from "../engine/views/DocumentFormats.ts"
import { API_KEY, API_KEY_LOOKUP } from "./merchants/ApiKeys.ts"
import { AUDIT_ENTRY } from "./team/Audit.ts"
import { CURRENT_PROCESSOR, PROCESSOR } from "./processing/ConfiguredProcessors.ts"
import { DASHBOARD_LINK, DASHBOARD_SESSION, SESSIONS_OF, SIGN_IN } from "./team/DashboardSessions.ts"
import {
  CHARGE,
  CHECKOUT_SESSION,
  CUSTOMER,
  HELD_PAYMENT_METHODS,
  LINE_ITEMS,
  LOOKUP_KEY,
  OPERATION,
  PAYMENT_INTENT,
  PAYMENT_LINK,
  PAYMENT_LINK_ITEMS,
  PAYMENT_METHOD,
  PRICE,
  PRODUCT,
  REFUND,
  WEBHOOK_ENDPOINT
} from "./shared/Documents.ts"
import { GIVEN_UP } from "./team/GivenUp.ts"
import { LOGO } from "./merchants/Logos.ts"
import { MAIL } from "./mail/Mails.ts"
import { DEFAULT_MERCHANT, MERCHANT } from "./merchants/Merchants.ts"
import { NOTES_OF, PAYMENT_NOTE } from "./lifecycles/PaymentNotes.ts"
import { PERSON, PERSON_EMAIL, TEAM } from "./team/People.ts"
import { MAIL_SETTINGS } from "./mail/Receipts.ts"
import { SECOND_FACTOR } from "./team/SecondFactors.ts"
import { SECRET_PRINT } from "./administration/SecretInForce.ts"

export const KINDS = [
  API_KEY,
  API_KEY_LOOKUP,
  AUDIT_ENTRY,
  CHARGE,
  CHECKOUT_SESSION,
  CURRENT_PROCESSOR,
  CUSTOMER,
  DASHBOARD_LINK,
  DASHBOARD_SESSION,
  DEFAULT_MERCHANT,
  GIVEN_UP,
  HELD_PAYMENT_METHODS,
  LINE_ITEMS,
  LOGO,
  LOOKUP_KEY,
  MAIL,
  MAIL_SETTINGS,
  MERCHANT,
  NOTES_OF,
  OPERATION,
  PAYMENT_INTENT,
  PAYMENT_LINK,
  PAYMENT_LINK_ITEMS,
  PAYMENT_METHOD,
  PAYMENT_NOTE,
  PERSON,
  PERSON_EMAIL,
  PRICE,
  PROCESSOR,
  PRODUCT,
  REFUND,
  SECOND_FACTOR,
  SECRET_PRINT,
  SESSIONS_OF,
  SIGN_IN,
  TEAM,
  WEBHOOK_ENDPOINT
] as const

/** Events tell of the kind that their object names; what a later Till emits is nothing that this one could read. */
const kindsOfEvents: Readonly<Record<string, string>> = EMITTED_EVENT_TYPES

export const layer = DocumentFormats.layer(KINDS, (type) => kindsOfEvents[type])

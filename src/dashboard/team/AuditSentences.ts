/** The audit log in sentences: each begins with the person and ends with a text of this table. */
import type { AuditEntry } from "../../domain/AuditEntry.ts"
import { type Child, html } from "../../html/Html.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import type { Visit } from "../frame/Visit.ts"
import { words } from "../frame/Values.ts"

/**
 * By action: its name in the filter, and the sentence. `{object}` is the link to the object, `{detail}` the entry's
 * detail; a part in square brackets is left out if the entry has no detail.
 */
const SENTENCES: Readonly<Record<string, readonly [name: string, sentence: string]>> = {
  "api_key.create": ["Created an API key", "created the API key {object} ({detail})"],
  "api_key.revoke": ["Revoked an API key", "revoked the API key {object} ({detail})"],
  "api_key.roll": ["Replaced an API key", "replaced the API key {object} ({detail})"],
  "checkout_session.create": ["Created a one-time link", "created a one-time link for the price {object}"],
  "checkout_session.expire": ["Closed a checkout", "closed the checkout {object}"],
  "checkout_session.update_metadata": ["Changed a checkout's metadata", "changed the metadata of {object}[: {detail}]"],
  "customer.create": ["Created a customer", "created the customer {object}"],
  "customer.delete": ["Deleted a customer", "deleted the customer {object}"],
  "customer.erase": ["Erased a customer's data", "erased the data of {object}"],
  "customer.update": ["Changed a customer", "changed the customer {object}"],
  "customer.update_metadata": ["Changed a customer's metadata", "changed the metadata of {object}[: {detail}]"],
  "dashboard_session.end": ["Ended one of their own sessions", "ended one of their own sessions"],
  "dashboard_session.end_others": ["Signed out their other sessions", "signed out all their other sessions"],
  "event.resend": ["Resent an event", "sent the event {object} again to {detail}"],
  "event.resend_all": ["Resent an event to all endpoints", "sent the event {object} again to all endpoints"],
  "event.trigger": ["Triggered a test event", "triggered the test event {detail}"],
  "merchant.brand": ["Changed the brand", "changed the brand"],
  "merchant.receipts": ["Switched receipts", "switched receipts for live payments {detail}"],
  "merchant.remove_logo": ["Removed the logo", "removed the logo"],
  "merchant.set_version": ["Changed the API version", "changed the default API version to {detail}"],
  "merchant.upload_logo": ["Uploaded a logo", "uploaded a logo"],
  "operation.check": ["Had a processor asked", "had the processor asked about the operation {object}"],
  "operation.decide": ["Decided about an operation", "decided about the operation {object}: it {detail}"],
  "payment_intent.cancel": ["Canceled a payment", "canceled the payment {object}[ ({detail})]"],
  "payment_intent.capture": ["Captured a payment", "captured {detail} of the payment {object}"],
  "payment_intent.update": ["Changed a payment", "changed the payment {object}[: {detail}]"],
  "payment_intent.update_metadata": ["Changed a payment's metadata", "changed the metadata of {object}[: {detail}]"],
  "payment_link.activate": ["Activated a payment link", "activated the payment link {object}"],
  "payment_link.create": ["Created a payment link", "created the payment link {object}"],
  "payment_link.deactivate": ["Deactivated a payment link", "deactivated the payment link {object}"],
  "payment_link.update": ["Changed a payment link", "changed the payment link {object}"],
  "payment_link.update_metadata": ["Changed a payment link's metadata", "changed the metadata of {object}[: {detail}]"],
  "payment_method.detach": ["Removed a saved card", "removed the saved card {object}"],
  "payment_note.create": ["Added a note to a payment", "added a note to the payment {object}"],
  "payment_note.delete": ["Deleted a note on a payment", "deleted a note ({detail}) on the payment {object}"],
  "person.add": ["Invited a teammate", "invited {detail}"],
  "person.end_session": ["Ended a teammate's session", "ended a session of {object}"],
  "person.invite": ["Sent an invitation again", "invited [{detail}, ]{object} again"],
  "person.link": ["Created a sign-in link", "created a sign-in link for {object}"],
  "person.remove": ["Removed a teammate", "removed [{detail}, ]{object} from the team"],
  "person.renew_recovery_codes": ["Made new recovery codes", "made new recovery codes for themselves"],
  "person.reset_two_step": [
    "Turned off a teammate's two-step verification",
    "turned off the two-step verification of {object}[, {detail}]"
  ],
  "person.set_credentials": ["Changed their own email or password", "changed their own email or password"],
  "person.set_role": ["Changed a role", "changed the role of {object} to {detail}"],
  "person.set_time_zone": ["Changed their own time zone", "changed their own time zone[ to {detail}]"],
  "person.turn_off_two_step": ["Turned off two-step verification", "turned off their own two-step verification"],
  "person.turn_on_two_step": ["Turned on two-step verification", "turned on their own two-step verification"],
  "price.activate": ["Activated a price", "activated the price {object}"],
  "price.archive": ["Archived a price", "archived the price {object}"],
  "price.create": ["Added a price", "added a price[ ({detail})] to the product {object}"],
  "price.update": ["Changed a price", "changed the price {object}"],
  "price.update_metadata": ["Changed a price's metadata", "changed the metadata of {object}[: {detail}]"],
  "processor.add": ["Added a processor", "added the processor {object} ({detail})"],
  "processor.pause": ["Paused a processor", "paused the processor {object} ({detail})"],
  "processor.resume": ["Resumed a processor", "resumed the processor {object} ({detail})"],
  "processor.retire": ["Retired a processor", "retired the processor {object} ({detail})"],
  "processor.roll_secret": [
    "Replaced a processor's secret",
    "replaced the secret of the processor {object} ({detail})"
  ],
  "product.activate": ["Activated a product", "activated the product {object}"],
  "product.archive": ["Archived a product", "archived the product {object}"],
  "product.create": ["Created a product", "created the product {object}[ ({detail})]"],
  "product.set_default_price": ["Changed a default price", "made {detail} the default price of the product {object}"],
  "product.update": ["Changed a product", "changed the product {object}"],
  "product.update_metadata": ["Changed a product's metadata", "changed the metadata of {object}[: {detail}]"],
  "receipt.send": ["Sent a receipt", "sent a receipt for the payment {object} to {detail}"],
  "refund.create": ["Refunded a payment", "refunded {detail} of the payment {object}"],
  "refund.update_metadata": ["Changed a refund's metadata", "changed the metadata of {object}[: {detail}]"],
  "test_clock.advance": ["Moved the test clock", "moved the test clock forward by {detail}"],
  "test_data.wipe": ["Wiped the test data", "wiped the test data"],
  "webhook_endpoint.create": ["Added a webhook endpoint", "added the webhook endpoint {object} ({detail})"],
  "webhook_endpoint.delete": ["Deleted a webhook endpoint", "deleted the webhook endpoint {object}"],
  "webhook_endpoint.resend_chosen": ["Resent chosen deliveries", "sent {detail} again to {object}"],
  "webhook_endpoint.resend_failed": ["Resent failed deliveries", "sent {detail} again to {object}"],
  "webhook_endpoint.roll_secret": [
    "Replaced a signing secret",
    "replaced the signing secret of {object}; the old one works for another {detail}"
  ],
  "webhook_endpoint.set_status": ["Switched a webhook endpoint", "set the webhook endpoint {object} to {detail}"],
  "webhook_endpoint.test": ["Sent a test event", "sent the test event {detail} to {object}"],
  "webhook_endpoint.update": ["Changed a webhook endpoint", "changed the webhook endpoint {object} ({detail})"]
}

/** An action's name in the filter. */
export const actionTitle = (action: string): string => SENTENCES[action]?.[0] ?? words(action.replaceAll(".", " "))

/** True if the table has the action. */
export const hasSentence = (action: string): boolean => Object.hasOwn(SENTENCES, action)

/** The sentence about an entry, without the person. */
export const sentenceOf = (visit: Visit, { action, detail, subject }: AuditEntry): Child => {
  const sentence = SENTENCES[action]?.[1] ?? `did “${actionTitle(action)}” to {object}[: {detail}]`
  return sentence
    .replaceAll(/\[([^[\]]*)\]/g, (_, part: string) => (detail === null ? "" : part))
    .split(/(\{object\}|\{detail\})/)
    .map((part): Child => {
      if (part === "{object}") return subject !== null && objectLink(visit, subject)
      return part === "{detail}" ? html`<bdi>${detail}</bdi>` : part
    })
}

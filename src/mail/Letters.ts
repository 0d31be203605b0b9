/** The letter of each purpose, from the objects as they are when the mail is sent. */
import { Clock, Effect } from "effect"
import { ENGLISH } from "../html/Translation.ts"
import { INSTALLATION } from "../payments/shared/AccountIds.ts"
import * as DashboardSessions from "../payments/team/DashboardSessions.ts"
import { WEBHOOK_ENDPOINT } from "../payments/shared/Documents.ts"
import * as Mails from "../payments/mail/Mails.ts"
import { MERCHANT, type Merchant } from "../payments/merchants/Merchants.ts"
import { PaymentsConfig } from "../payments/shared/PaymentsConfig.ts"
import { PERSON } from "../payments/team/People.ts"
import { readDocument } from "../payments/shared/ReadDocument.ts"
import { ALERT_AFTER_SECONDS } from "../payments/webhooks/WebhookOutages.ts"
import type { AccountId } from "../engine/log/Document.ts"
import { type Letter, PLAIN } from "./Letter.ts"
import * as Receipt from "./Receipt.ts"

/** The URL of the mail's sign-in link; undefined if the link was used, or no longer works. */
const linkIn = Effect.fnUntraced(function* (account: AccountId, mail: Mails.MailDocument) {
  const config = yield* PaymentsConfig
  const secret = Mails.secretOf(config, account, mail)
  if (secret === null) return undefined
  const link = yield* readDocument(account, DashboardSessions.DASHBOARD_LINK, DashboardSessions.linkIdOf(secret))
  const person = yield* readDocument(account, PERSON, mail.value.subject)
  if (link === undefined || person === undefined) return undefined
  if (!DashboardSessions.isLinkGood(link.value, person, yield* Clock.currentTimeMillis)) return undefined
  return { url: config.publicUrl + DashboardSessions.pathOfMailed(secret), person: person.value }
})

const invitation = Effect.fnUntraced(function* (account: AccountId, mail: Mails.MailDocument, { name }: Merchant) {
  const link = yield* linkIn(account, mail)
  if (link === undefined) return undefined
  const { person, url } = link
  const letter: Letter = {
    ...PLAIN,
    translation: ENGLISH,
    subject: `You are invited to the dashboard of ${name}`,
    title: `Join ${name}`,
    paragraphs: [
      `You have been invited to the payments dashboard of ${name}, as ${person.role}.`,
      "Accept within 7 days, then choose a password."
    ],
    button: { label: "Accept the invitation", url },
    notes: ["The link works once. If you did not expect this invitation, ignore this mail."]
  }
  return letter
})

const passwordReset = Effect.fnUntraced(function* (account: AccountId, mail: Mails.MailDocument, { name }: Merchant) {
  const link = yield* linkIn(account, mail)
  if (link === undefined) return undefined
  const letter: Letter = {
    ...PLAIN,
    translation: ENGLISH,
    subject: `Sign in to ${name} and choose a new password`,
    title: "Choose a new password",
    paragraphs: [
      `Somebody, probably you, has forgotten the password for the dashboard of ${name}.`,
      "Sign in with this link within an hour, then choose a new password."
    ],
    button: { label: "Sign in", url: link.url },
    notes: ["The link works once. If you did not ask for it, ignore this mail: your password has not changed."]
  }
  return letter
})

const timeOf = (millis: number): string => `${new Date(millis).toISOString().slice(0, 16).replace("T", " ")} UTC`

const webhookAlert = Effect.fnUntraced(function* (
  account: AccountId,
  { value }: Mails.MailDocument,
  { name }: Merchant
) {
  const { publicUrl } = yield* PaymentsConfig
  const found = yield* readDocument(account, WEBHOOK_ENDPOINT, value.subject)
  if (found === undefined) return undefined
  const endpoint = found.value
  // The outage may have ended since the mail was recorded.
  const { failingSince = (value.created - ALERT_AFTER_SECONDS) * 1000 } = found.hidden
  const letter: Letter = {
    ...PLAIN,
    translation: ENGLISH,
    subject: `Webhooks of ${name} are failing`,
    title: "Webhooks are failing",
    paragraphs: [
      `Every delivery to a webhook endpoint of ${name} has failed since ${timeOf(failingSince)}.`,
      "Till tries each delivery again, up to eight times in 107 hours.",
      "Check that the endpoint answers with a 2xx status."
    ],
    facts: [["Endpoint", endpoint.url]],
    button: { label: "See the deliveries", url: `${publicUrl}/dashboard/live/webhooks/${endpoint.id}` },
    notes: ["You get this mail once per outage."]
  }
  return letter
})

/** Composes a mail's letter; undefined if an object that it is about is gone, or its link no longer works. */
export const compose = Effect.fnUntraced(function* (account: AccountId, mail: Mails.MailDocument) {
  const { merchant_id, purpose, subject } = mail.value
  const merchant = (yield* readDocument(INSTALLATION, MERCHANT, merchant_id))?.value
  if (merchant === undefined) return undefined
  switch (purpose) {
    case "receipt":
      return yield* Receipt.compose(account, subject, merchant)
    case "invitation":
      return yield* invitation(account, mail, merchant)
    case "password_reset":
      return yield* passwordReset(account, mail, merchant)
    case "webhook_alert":
      return yield* webhookAlert(account, mail, merchant)
  }
})

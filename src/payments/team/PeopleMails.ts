/** Mails with sign-in links to people of the dashboard (semantics mail.invitations, mail.password_resets). */
import { Effect } from "effect"
import type { ResourceMissing } from "../../domain/Errors.ts"
import { isMailable, type MailPurpose } from "../../domain/Mail.ts"
import type { Person } from "../../domain/Person.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import * as DashboardSessions from "./DashboardSessions.ts"
import * as Mails from "../mail/Mails.ts"
import { PaymentsConfig } from "../shared/PaymentsConfig.ts"
import * as People from "./People.ts"

/** How long an invitation can be accepted, in seconds. */
const INVITATION_SECONDS = 7 * 24 * 60 * 60
/** How long the link of a password reset works, in seconds. */
const RESET_SECONDS = 60 * 60

const queueLink = Effect.fnUntraced(function* (
  person: Person,
  to: string,
  purpose: MailPurpose,
  seconds: number
): Effect.fn.Return<void, ResourceMissing, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  const sealing = yield* PaymentsConfig
  const secret = yield* DashboardSessions.makeLink(person, "link", seconds)
  const link = { secret, expiresAt: transaction.now + seconds * 1000, sealing }
  Mails.queue(transaction, { purpose, subject: person.id, merchantId: person.merchant_id, to, link })
})

/** Queues an invitation to a person with an address. */
export const invite = (person: Person): Effect.Effect<void, ResourceMissing, Transaction | PaymentsConfig> =>
  person.email === null ? Effect.void : queueLink(person, person.email, "invitation", INVITATION_SECONDS)

/** Queues a link for each person with this address; none if there is no such person. */
export const resetPassword = Effect.fnUntraced(function* (
  email: string
): Effect.fn.Return<void, never, Transaction | PaymentsConfig> {
  const transaction = yield* Transaction
  const entry = yield* transaction.get(People.PERSON_EMAIL, People.personEmailId(email))
  for (const id of Object.values(entry?.value.people ?? {})) {
    const person = (yield* transaction.get(People.PERSON, id))?.value
    // The mail goes to the stored address, never to the entered one.
    if (person?.email == null || !isMailable(person.email)) continue
    yield* Effect.orDie(queueLink(person, person.email, "password_reset", RESET_SECONDS))
  }
})

/** Invitations by mail (semantics mail.invitations). Without a mail server, an owner hands out a sign-in link. */
import { Effect } from "effect"
import { isMailable } from "../../domain/Mail.ts"
import type { Person } from "../../domain/Person.ts"
import type { Child } from "../../html/Html.ts"
import { html } from "../../html/Html.ts"
import { INSTALLATION } from "../../payments/shared/AccountIds.ts"
import * as People from "../../payments/team/People.ts"
import { invite } from "../../payments/team/PeopleMails.ts"
import { dialog, type Problem } from "../frame/Form.ts"
import { mailsSection } from "../frame/Mails.ts"
import { action, Invalid, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"
import { readInstallation } from "../frame/Visitors.ts"

export const invitationsSection = (visit: Visit, { id }: Person) =>
  mailsSection(visit, INSTALLATION, { purpose: "invitation", subject: id, title: "Invitations" })

/** The button to invite a person again; null for a person who has set a password. */
export const inviteDialog = (visit: Visit, person: Person, problem: Problem | null): Child =>
  visit.sendsMail &&
  !person.has_password &&
  person.email !== null &&
  dialog("Send an invitation", {
    visit,
    action: `/team/${person.id}/invite`,
    submit: "Send",
    problem,
    content: () => html`<p>The mail has a link to sign in, which works once, within 7 days.</p>`
  })

export const inviteAction = (show: Show) =>
  action({
    name: "person.invite",
    right: "team",
    page: "/team/:id",
    path: "/team/:id/invite",
    show,
    notice: "The invitation is on its way.",
    confirms: () => true,
    prepare: Effect.fnUntraced(function* (visit, { id = "" }) {
      const person = (yield* readInstallation(People.PERSON, id))?.value
      if (!visit.sendsMail) return new Invalid({}, "No mail server is set up.")
      if (person?.merchant_id === visit.merchant.id && !isMailable(person.email ?? "")) {
        return new Invalid({}, "Mail cannot be sent to this person's address.")
      }
      return {
        account: INSTALLATION,
        entered: {},
        detail: person?.email ?? null,
        command: Effect.flatMap(People.find(visit.merchant.id, id), ({ value }) => Effect.as(invite(value), value))
      }
    })
  })

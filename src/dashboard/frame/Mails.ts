/** A table of the mails about an object, newest first (semantics mail.shown). */
import { Effect } from "effect"
import type { MailPurpose } from "../../domain/Mail.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { type Child, html } from "../../html/Html.ts"
import { MAIL } from "../../payments/mail/Mails.ts"
import { listObjects } from "./Queries.ts"
import { table } from "./Table.ts"
import { badge, section, time } from "./Values.ts"
import type { Visit } from "./Visit.ts"

const SHOWN_MAX = 10

/** Returns the section of a page about mails of one purpose; null if there are none. */
export const mailsSection = Effect.fnUntraced(function* (
  { sendsMail }: Visit,
  account: AccountId,
  { purpose, subject, title }: { readonly purpose: MailPurpose; readonly subject: string; readonly title: string }
) {
  const none: Child = null
  if (!sendsMail) return none
  const { rows } = yield* listObjects(account, MAIL, { labels: { subject }, limit: SHOWN_MAX })
  const mails = rows.filter((mail) => mail.purpose === purpose)
  if (mails.length === 0) return none
  const shown: Child = section(
    title,
    table({
      caption: "Mails, newest first",
      columns: [
        { name: "To", long: true, cell: ({ to }) => to ?? "the team" },
        {
          name: "Status",
          cell: ({ error, status }) => html`${badge(status)} ${error !== null && html`<small>${error}</small>`}`
        },
        { name: "Date", cell: ({ created, ended_at }) => time(ended_at ?? created) }
      ],
      rows: mails,
      empty: null
    })
  )
  return shown
})

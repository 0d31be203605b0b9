/** Where somebody is signed in: the sessions that still are, and not those that another password has ended. */
import { Clock, Effect } from "effect"
import { Accounts } from "../engine/Accounts.ts"
import { INSTALLATION } from "../payments/AccountIds.ts"
import type { DashboardSessionDocument } from "../payments/DashboardSessions.ts"
import { DASHBOARD_SESSION, isOpen } from "../payments/DashboardSessions.ts"
import { PERSON } from "../payments/People.ts"
import { readInstallation } from "./Visitors.ts"

const SHOWN_MAX = 25

/** Newest first. */
export const sessionsOf = Effect.fnUntraced(function* (person: string) {
  const of = yield* readInstallation(PERSON, person)
  if (of === undefined) return []
  const { documents } = yield* Accounts.use((accounts) =>
    accounts.list(INSTALLATION, {
      kind: DASHBOARD_SESSION.name,
      prefix: DASHBOARD_SESSION.prefix,
      labels: { person },
      limit: SHOWN_MAX
    })
  )
  const now = yield* Clock.currentTimeMillis
  return documents
    .map((document) => document as unknown as DashboardSessionDocument)
    .filter((session) => isOpen(session, of, now))
    .map(({ value }) => value)
})

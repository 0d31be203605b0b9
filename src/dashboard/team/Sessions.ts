/** Where somebody is signed in: the sessions that still are, and not those that another password has ended. */
import { Clock, Effect } from "effect"
import { DASHBOARD_SESSION, isOpen, SESSIONS_OF, sessionsOfId } from "../../payments/DashboardSessions.ts"
import { PERSON } from "../../payments/People.ts"
import { readInstallation } from "../frame/Visitors.ts"

/** Newest first. */
export const sessionsOf = Effect.fnUntraced(function* (person: string) {
  const of = yield* readInstallation(PERSON, person)
  if (of === undefined) return []
  const ids = (yield* readInstallation(SESSIONS_OF, sessionsOfId(person)))?.value.sessions ?? []
  const sessions = yield* Effect.forEach(ids.toReversed(), (id) => readInstallation(DASHBOARD_SESSION, id))
  const now = yield* Clock.currentTimeMillis
  return sessions.flatMap((session) => (session !== undefined && isOpen(session, of, now) ? [session.value] : []))
})

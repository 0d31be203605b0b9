/** Events over HTTP (semantics W16). */
import { Effect } from "effect"
import * as Contract from "../../api/Events.ts"
import { LIMIT_DEFAULT } from "../../api/List.ts"
import { ResourceMissing } from "../../domain/Errors.ts"
import type { Event } from "../../domain/Event.ts"
import { eventTypeFilterOf } from "../../domain/Event.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { StoredEvent } from "../../engine/Views.ts"
import { render } from "../../payments/Events.ts"
import type { Caller } from "../Authentication.ts"
import type { Json } from "../Handlers.ts"
import { handlers } from "../Handlers.ts"
import { cursorOf, listJson } from "../Lists.ts"

export const events = handlers(Contract.Events, {
  list: Effect.fnUntraced(function* ({ caller, path, query }) {
    const accounts = yield* Accounts
    const cursor = yield* cursorOf(caller.account, query, "Event", (account, id) =>
      Effect.map(accounts.event(account, id), (event) => event !== undefined)
    )
    const type = query.type === undefined ? undefined : eventTypeFilterOf(query.type)
    const page = yield* accounts.events(caller.account, {
      limit: query.limit ?? LIMIT_DEFAULT,
      ...cursor,
      ...(type !== undefined && { type })
    })
    return listJson<Event>(
      page.events.map((event) => ({ id: event.id, json: eventJson(caller, event) })),
      page.hasMore,
      path
    )
  }),

  retrieve: Effect.fnUntraced(function* ({ caller, params }) {
    const event = yield* Accounts.use((accounts) => accounts.event(caller.account, params.id))
    if (event === undefined) return yield* new ResourceMissing({ kind: "Event", id: params.id, param: "id" })
    return eventJson(caller, event)
  })
})

const eventJson = ({ account, apiVersion }: Caller, event: StoredEvent): Json<Event> =>
  render(event, { account, apiVersion, pendingWebhooks: 0 })

/** Events over HTTP (semantics webhooks.resend, events.list). */
import { Effect } from "effect"
import * as Contract from "../../api/Events.ts"
import { LIMIT_DEFAULT } from "../../api/List.ts"
import { ResourceMissing } from "../../domain/Errors.ts"
import { type Event, eventTypeFilterOf } from "../../domain/Event.ts"
import { Accounts } from "../../engine/Accounts.ts"
import type { EventPage } from "../../engine/views/Views.ts"
import { render } from "../../payments/shared/Events.ts"
import { resend } from "../../payments/webhooks/WebhookDeliveries.ts"
import type { Caller } from "../Authentication.ts"
import { readWaiting } from "../Waiting.ts"
import { handlers, type Json } from "./Handler.ts"
import { createdOf, cursorOf, listJson } from "./Lists.ts"

export const events = handlers(Contract.Events, {
  list: Effect.fnUntraced(function* ({ caller: { account }, path, query }) {
    const accounts = yield* Accounts
    const type = query.type === undefined ? undefined : eventTypeFilterOf(query.type)
    const read = Effect.gen(function* () {
      const cursor = yield* cursorOf(account, query, "Event", (of, id) =>
        Effect.map(accounts.event(of, id), (event) => event !== undefined)
      )
      return yield* accounts.events(account, {
        limit: query.limit ?? LIMIT_DEFAULT,
        created: createdOf(query),
        ...cursor,
        ...(type !== undefined && { type })
      })
    })
    const page = yield* readWaiting(query.wait, { account, kind: "event", read, isNews: isFilled })
    const ids = page.events.map(({ id }) => id)
    const pending = yield* accounts.pendingDeliveries(account, ids)
    const items = page.events.map((event, i) => {
      const pendingWebhooks = pending[i]!
      return { id: event.id, json: render(event, { account, pendingWebhooks }) }
    })
    return listJson<Event>(items, page.hasMore, path)
  }),

  retrieve: Effect.fnUntraced(function* ({ caller, params }) {
    const found = yield* read(caller, params.id)
    if (found === undefined) return yield* missing(params.id)
    const { event, pendingWebhooks } = found
    return render(event, { account: caller.account, pendingWebhooks }) as Json<Event>
  }),

  // An event never changes, so it can be read before the command gets its turn.
  resend: {
    prepare: ({ caller, params }) =>
      Effect.map(read(caller, params.id), (found) => ({ payload }) => {
        if (found === undefined) return missing(params.id)
        const webhookEndpoint = payload.webhook_endpoint ?? null
        return resend({ ...found, webhookEndpoint })
      })
  }
})

const isFilled = ({ events }: EventPage): boolean => events.length > 0

const missing = (id: string) => Effect.fail(new ResourceMissing({ kind: "Event", id, param: "id" }))

/** Reads an event, and how many of its deliveries are under way. */
const read = Effect.fnUntraced(function* ({ account }: Caller, id: string) {
  const accounts = yield* Accounts
  const event = yield* accounts.event(account, id)
  if (event === undefined) return undefined
  const [pendingWebhooks] = yield* accounts.pendingDeliveries(account, [id])
  return { event, pendingWebhooks: pendingWebhooks! }
})

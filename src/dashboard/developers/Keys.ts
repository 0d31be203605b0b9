/**
 * API keys of an environment (semantics keys.first, keys.roll, keys.revoke, dashboard.keys). Live keys require their
 * own right, and a recent password for each change. A new key is shown once, in the response to the form that has
 * created it.
 */
import { Effect, Layer, Redacted, Schema } from "effect"
import { API_KEY_GRACE_SECONDS_MAX, type ApiKey, ApiKeyType } from "../../domain/ApiKey.ts"
import { ResourceMissing } from "../../domain/Errors.ts"
import { Revealed } from "../../http/OneTimeSecrets.ts"
import { html } from "../../html/Html.ts"
import { INSTALLATION } from "../../payments/shared/AccountIds.ts"
import * as ApiKeys from "../../payments/merchants/ApiKeys.ts"
import { dialog } from "../frame/Form.ts"
import { cursorIn, pageLinks, table } from "../frame/Table.ts"
import { badge, code, facts, NOTHING, section, time } from "../frame/Values.ts"
import { listObjects } from "../frame/Queries.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"
import type { PageContent } from "../frame/Shell.ts"
import { readInstallation } from "../frame/Visitors.ts"
import type { Visit } from "../frame/Visit.ts"

const neededIn = ({ livemode }: Visit) => (livemode ? "live_keys" : "build")
const confirms = ({ livemode }: Visit) => livemode

const maskedKey = ({ last4, prefix }: ApiKey) => html`<code>${prefix}…${last4}</code>`

const revealKey = ({ secret, value }: ApiKeys.IssuedApiKey) =>
  new Revealed(value, { secret: Redacted.value(secret) }, "object")

/** Shows a new key. A form that is sent again cannot show it, because the key is not stored. */
const newKey =
  (visit: Visit) =>
  (made: { readonly id?: string } & Readonly<Record<string, unknown>>): PageContent => ({
    title: "Your new key",
    section: "Developers",
    back: ["/developers/keys", "API keys"],
    notice:
      typeof made["secret"] === "string" ? "This key is shown only once. Store it with your server's secrets." : null,
    content:
      typeof made["secret"] === "string"
        ? facts([
            ["Key", code(made["secret"])],
            ["ID", html`<a href="${visit.to(`/developers/keys/${made.id!}`)}"><code>${made.id!}</code></a>`]
          ])
        : html`<div class="empty">
            This key was already shown and is not stored. If you have lost it,
            <a href="${visit.to(`/developers/keys/${made.id!}`)}">replace it</a>.
          </div>`
  })

const showAll: Show = Effect.fnUntraced(function* (visit, _, problem) {
  const { hasMore, rows } = yield* listObjects(INSTALLATION, ApiKeys.API_KEY, {
    cursor: cursorIn(visit.query),
    labels: { account: visit.account }
  })
  const create = dialog("Create a key", {
    visit,
    action: "/developers/keys/create",
    submit: "Create key",
    tone: "primary",
    problem,
    content: (fields) =>
      fields.choice({
        name: "type",
        label: "Type",
        value: "secret",
        options: [
          ["secret", "Secret: for your server"],
          ["publishable", "Publishable: for browsers"]
        ]
      })
  })
  return {
    title: "API keys",
    section: "Developers",
    back: ["/developers", "Developers"],
    aside: [badge(visit.mode, visit.livemode ? "good" : "wait"), html`<div class="buttons">${create}</div>`],
    content: [
      table({
        caption: `API keys of the ${visit.mode} environment, newest first`,
        columns: [
          { name: "Key", cell: maskedKey },
          { name: "Type", cell: ({ type }) => type },
          { name: "Status", cell: ({ status }) => badge(status) },
          { name: "Expires", cell: ({ expires_at }) => (expires_at === null ? NOTHING : time(expires_at)), wide: true },
          { name: "Created", cell: ({ created }) => time(created), wide: true }
        ],
        rows,
        href: ({ id }) => visit.to(`/developers/keys/${id}`),
        empty: "No keys yet. Create one to send API requests to this environment."
      }),
      pageLinks(visit, rows, hasMore)
    ]
  }
})

/** Returns a key of this environment. Fails with `ResourceMissing` for any other. */
const find = Effect.fnUntraced(function* (visit: Visit, id: string) {
  const key = (yield* readInstallation(ApiKeys.API_KEY, id))?.value
  if (key === undefined || !ApiKeys.belongsTo(key, visit.account)) {
    return yield* new ResourceMissing({ kind: "API key", id, param: "id" })
  }
  return key
})

/** Grace periods of a rolled key, at most one day. */
const GRACES: ReadonlyArray<readonly [seconds: string, label: string]> = [
  [String(API_KEY_GRACE_SECONDS_MAX), "1 day"],
  ["3600", "1 hour"],
  ["300", "5 minutes"],
  ["0", "Not at all: it has leaked"]
]

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const key = yield* find(visit, id)
  const roll = dialog("Replace", {
    visit,
    action: `/developers/keys/${id}/roll`,
    submit: "Replace the key",
    problem,
    content: (fields) =>
      fields.choice({
        name: "expires_in",
        label: "Keep the old key valid for",
        options: GRACES,
        hint: "The new key works immediately."
      })
  })
  const revoke = dialog("Revoke", {
    visit,
    action: `/developers/keys/${id}/revoke`,
    submit: "Revoke the key",
    tone: "danger",
    problem,
    content: () => html`<p>Requests with this key will be refused. This cannot be undone.</p>`
  })
  return {
    title: `${key.prefix}…${key.last4}`,
    section: "Developers",
    back: ["/developers/keys", "API keys"],
    aside: [badge(key.status), key.status !== "revoked" && html`<div class="buttons">${roll} ${revoke}</div>`],
    content: section(
      "Key",
      facts([
        ["ID", code(key.id)],
        ["Type", key.type],
        ["Environment", visit.mode],
        ["Requests", html`<a href="${visit.to("/requests", { key: key.id })}">Requests with this key</a>`],
        ["Created", time(key.created)],
        [key.status === "expired" ? "Expired" : "Expires", key.expires_at === null ? null : time(key.expires_at)]
      ])
    )
  }
})

const create = action({
  name: "api_key.create",
  right: neededIn,
  page: "/developers/keys",
  path: "/developers/keys/create",
  show: showAll,
  notice: "Key created.",
  confirms,
  prepare: (visit, _, values) => {
    const type = values.get("type")
    if (!Schema.is(ApiKeyType)(type)) return Effect.succeed(new Invalid({ type: "Choose secret or publishable." }))
    return Effect.succeed({
      account: INSTALLATION,
      entered: { type },
      detail: `${visit.mode} ${type}`,
      command: Effect.map(ApiKeys.issue(visit.merchant.id, { type, livemode: visit.livemode }), revealKey),
      next: newKey(visit)
    })
  }
})

const onPage = { right: neededIn, page: "/developers/keys/:id", show, confirms } as const

const roll = action({
  ...onPage,
  name: "api_key.roll",
  path: "/developers/keys/:id/roll",
  notice: "Key replaced.",
  prepare: (visit, { id = "" }, values) => {
    const given = values.get("expires_in") ?? ""
    const grace = GRACES.find(([seconds]) => seconds === given)
    if (grace === undefined)
      return Effect.succeed(new Invalid({ expires_in: "Choose how long the old key stays valid." }))
    return Effect.succeed({
      account: INSTALLATION,
      entered: { expires_in: given },
      detail: `${visit.mode}, old key valid for ${given} seconds`,
      command: Effect.map(ApiKeys.roll(id, { account: visit.account, expiresIn: Number(given) }), revealKey),
      next: newKey(visit)
    })
  }
})

const revoke = action({
  ...onPage,
  name: "api_key.revoke",
  path: "/developers/keys/:id/revoke",
  notice: "Key revoked.",
  prepare: (visit, { id = "" }) =>
    Effect.succeed({
      account: INSTALLATION,
      entered: {},
      detail: visit.mode,
      command: ApiKeys.revoke(id, { account: visit.account })
    })
})

export const layer = Layer.mergeAll(
  page("/developers/keys", neededIn, showAll),
  page("/developers/keys/:id", neededIn, show),
  create,
  roll,
  revoke
)

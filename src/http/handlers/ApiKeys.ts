/** API keys over HTTP (semantics keys.roll, keys.revoke). */
import { Effect, Redacted } from "effect"
import * as Contract from "../../api/ApiKeys.ts"
import { LIMIT_DEFAULT } from "../../api/List.ts"
import type { ApiKey } from "../../domain/ApiKey.ts"
import { Accounts } from "../../engine/Accounts.ts"
import { INSTALLATION } from "../../payments/shared/AccountIds.ts"
import * as ApiKeys from "../../payments/merchants/ApiKeys.ts"
import { readDocument } from "../../payments/shared/ReadDocument.ts"
import { Revealed } from "../OneTimeSecrets.ts"
import { handlers } from "./Handler.ts"
import { createdOf, cursorOf, listJson } from "./Lists.ts"

export const apiKeys = handlers(Contract.ApiKeys, {
  roll: ({ caller, params, payload }) =>
    Effect.map(
      ApiKeys.roll(params.id, { expiresIn: payload.expires_in ?? undefined, account: caller.account }),
      ({ secret, value }) => new Revealed(value, { secret: Redacted.value(secret) }, "object")
    ),

  revoke: ({ caller, params }) => ApiKeys.revoke(params.id, { account: caller.account, by: caller.apiKey }),

  list: Effect.fnUntraced(function* ({ caller, path, query }) {
    const accounts = yield* Accounts
    // Keys of all merchants lie in one account: a stranger's is no cursor.
    const cursor = yield* cursorOf(INSTALLATION, query, "API key", (account, id) =>
      Effect.map(
        readDocument(account, ApiKeys.API_KEY, id),
        (key) => key !== undefined && ApiKeys.belongsTo(key.value, caller.account)
      )
    )
    const page = yield* accounts.list(INSTALLATION, {
      kind: ApiKeys.API_KEY.name,
      prefix: ApiKeys.API_KEY.prefix,
      labels: { account: caller.account },
      limit: query.limit ?? LIMIT_DEFAULT,
      created: createdOf(query),
      ...cursor
    })
    return listJson<ApiKey>(page.documents, page.hasMore, path)
  })
})

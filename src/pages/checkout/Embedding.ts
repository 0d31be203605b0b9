/**
 * Decides who may open a session's page, and which page may show it in a frame.
 *
 * A hosted session's page is open to whoever has its address. An embedded one takes the client secret, and may be
 * framed by the one origin that the frame's address names, if the installation allows that origin. The browser holds
 * the frame to that name, so a page cannot pass for another.
 */
import { Context } from "effect"
import type { CheckoutSession } from "../../domain/CheckoutSession.ts"
import { isWebOrigin } from "../../domain/Text.ts"
import { matchesClientSecret } from "../../payments/ClientSecrets.ts"

export interface PagesConfigShape {
  /**
   * The origins whose pages may show an embedded checkout in a frame. Null if the operator has named none: then all may
   * in test mode, and none may in live mode.
   */
  readonly embedOrigins: ReadonlySet<string> | null
}

export const PagesConfig: Context.Reference<PagesConfigShape> = Context.Reference<PagesConfigShape>(
  "till/pages/PagesConfig",
  { defaultValue: () => ({ embedOrigins: null }) }
)

/** True if the session has a page for a request with this query. Custom sessions only have the shop's own page. */
export const mayOpen = (session: CheckoutSession, query: URLSearchParams): boolean =>
  session.ui_mode === "hosted" ||
  (session.ui_mode === "embedded" && matchesClientSecret(session, query.get("client_secret") ?? ""))

/** The path of the session's page below Till's address, with the secret that it takes. */
export const pathOf = ({ client_secret, id }: CheckoutSession): string =>
  client_secret === null ? `/checkout/${id}` : `/checkout/${id}?client_secret=${client_secret}`

/** The origin that may show the session's page in a frame; null if none may. */
export const embedderOf = (
  { livemode, ui_mode }: CheckoutSession,
  query: URLSearchParams,
  { embedOrigins }: PagesConfigShape
): string | null => {
  const origin = query.get("origin")
  if (ui_mode !== "embedded" || origin === null || !isWebOrigin(origin)) return null
  const isAllowed = embedOrigins === null ? !livemode : embedOrigins.has(origin)
  return isAllowed ? origin : null
}

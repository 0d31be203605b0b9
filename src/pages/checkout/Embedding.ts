/**
 * Decides who may open a session's page, and which site may frame it.
 *
 * The page of a hosted session is open to anybody with its address. The page of an embedded session requires the client
 * secret, and may be framed by the one origin in its address, if the installation allows that origin. The browser
 * enforces the origin, so a site cannot claim to be another.
 */
import { Context } from "effect"
import type { CheckoutSession } from "../../domain/CheckoutSession.ts"
import { isWebOrigin } from "../../domain/Text.ts"
import { matchesClientSecret } from "../../payments/shared/ClientSecrets.ts"

export interface PagesConfigShape {
  /**
   * Origins that may frame an embedded checkout. Null if the operator has not configured any: then every origin may in
   * test mode, and none in live mode.
   */
  readonly embedOrigins: ReadonlySet<string> | null
  /** True if only browsers on this machine reach Till: then the home page creates a checkout in test mode. */
  readonly isForThisMachine: boolean
}

export const PagesConfig: Context.Reference<PagesConfigShape> = Context.Reference<PagesConfigShape>(
  "till/pages/PagesConfig",
  { defaultValue: () => ({ embedOrigins: null, isForThisMachine: false }) }
)

/** True if a request with this query may open the session's page. Custom sessions only have the shop's own page. */
export const mayOpen = (session: CheckoutSession, query: URLSearchParams): boolean =>
  session.ui_mode === "hosted" ||
  (session.ui_mode === "embedded" && matchesClientSecret(session, query.get("client_secret") ?? ""))

/** Path of the session's page with its secret. */
export const pathOf = ({ client_secret, id }: CheckoutSession): string =>
  client_secret === null ? `/checkout/${id}` : `/checkout/${id}?client_secret=${client_secret}`

/** The origin that may frame the session's page; null if none may. */
export const embedderOf = (
  { livemode, ui_mode }: CheckoutSession,
  query: URLSearchParams,
  { embedOrigins }: Pick<PagesConfigShape, "embedOrigins">
): string | null => {
  const origin = query.get("origin")
  if (ui_mode !== "embedded" || origin === null || !isWebOrigin(origin)) return null
  const isAllowed = embedOrigins === null ? !livemode : embedOrigins.has(origin)
  return isAllowed ? origin : null
}

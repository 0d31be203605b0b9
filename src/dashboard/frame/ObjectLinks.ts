/** Links to objects: the prefix of an id determines the page. */
import { html, type Html } from "../../html/Html.ts"
import type { DashboardPath } from "./Links.ts"
import type { Visit } from "./Visit.ts"

const PAGES: Readonly<Record<string, DashboardPath>> = {
  pi: "/payments",
  ch: "/charges",
  ref: "/refunds",
  op: "/operations",
  cus: "/customers",
  pm: "/payment-methods",
  prod: "/products",
  price: "/prices",
  cs: "/checkout-sessions",
  plink: "/payment-links",
  evt: "/events",
  we: "/webhooks",
  req: "/requests",
  key: "/developers/keys",
  prc: "/developers/processors",
  per: "/team"
}

/** Objects without a page of their own: the search finds the page that shows them. */
const ELSEWHERE: ReadonlySet<string> = new Set(["csli", "plli", "whd", "mer", "note"])

/** Built-in payment methods such as `pm_card_visa` have no page and do not match. */
const ID = /^([a-z]+)_[0-9A-Za-z]+$/

/** `pi` for `pi_…`; empty if the text is not an id. */
export const prefixOf = (text: string): string => ID.exec(text)?.[1] ?? ""

/** True for an id of a kind that the dashboard knows. */
export const isId = (text: string): boolean => {
  const prefix = prefixOf(text)
  return PAGES[prefix] !== undefined || ELSEWHERE.has(prefix)
}

/** Path of the object's page below the environment; undefined if the id alone does not determine it. */
export const pageOf = (id: string): DashboardPath | undefined => {
  const path = PAGES[prefixOf(id)]
  return path === undefined ? undefined : `${path}/${id}`
}

/** Address of the object's page, or of the search that finds it; null if the text is not an id. */
export const addressOf = (visit: Visit, id: string): string | null => {
  const page = pageOf(id)
  if (page !== undefined) return visit.to(page)
  return isId(id) ? visit.to("/find", { query: id }) : null
}

export const objectLink = (visit: Visit, id: string): Html => {
  const address = addressOf(visit, id)
  return address === null ? html`<code>${id}</code>` : html`<a href="${address}"><code>${id}</code></a>`
}

/** Where each object has its page, by how its id begins. */
import type { Html } from "../../html/Html.ts"
import { html } from "../../html/Html.ts"
import type { DashboardPath } from "./Links.ts"
import type { Visit } from "./Visit.ts"

const PAGES: Readonly<Record<string, DashboardPath>> = {
  pi: "/payments",
  ch: "/charges",
  ref: "/refunds",
  cus: "/customers",
  pm: "/payment-methods",
  prod: "/products",
  price: "/prices",
  cs: "/checkout-sessions",
  evt: "/events",
  we: "/webhooks",
  req: "/requests",
  key: "/developers/keys",
  per: "/team"
}

/** These are shown on the page of something else, which has to be looked for. */
const ELSEWHERE: ReadonlySet<string> = new Set(["csli", "whd", "mer"])

/** Payment methods that are built in, such as `pm_card_visa`, are on no page. */
const ID = /^([a-z]+)_[0-9A-Za-z]+$/

/** `pi` of `pi_…`; empty for a text that is no id. */
export const prefixOf = (text: string): string => ID.exec(text)?.[1] ?? ""

/** Whether a text is an id of a kind that Till has. */
export const isId = (text: string): boolean => {
  const prefix = prefixOf(text)
  return PAGES[prefix] !== undefined || ELSEWHERE.has(prefix)
}

/** The page of an object, below the environment; undefined if its id alone does not say. */
export const pageOf = (id: string): DashboardPath | undefined => {
  const path = PAGES[prefixOf(id)]
  return path === undefined ? undefined : `${path}/${id}`
}

/** Leads to the page of an object, or to the one that it is on; null for a text that is no id. */
export const addressOf = (visit: Visit, id: string): string | null => {
  const page = pageOf(id)
  if (page !== undefined) return visit.to(page)
  return isId(id) ? visit.to("/find", { query: id }) : null
}

/** An object's id, with a link to its page. */
export const objectLink = (visit: Visit, id: string): Html => {
  const address = addressOf(visit, id)
  return address === null ? html`<code>${id}</code>` : html`<a href="${address}"><code>${id}</code></a>`
}

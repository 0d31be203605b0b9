/**
 * A merchant's brand on the pages of its payers (semantics 9.15): its icon above, its colour where a page has one, and
 * below where a payer can turn to.
 */
import type { Brand as Settings } from "../domain/Brand.ts"
import type { Merchant } from "../payments/Merchants.ts"
import type { Child, Html } from "./Html.ts"
import { html } from "./Html.ts"
import { pictureHtml, pictureOf } from "./Images.ts"

/** Null is what is not shown. */
export interface Brand extends Settings {
  /** The merchant's name. */
  readonly name: string
}

/**
 * The brand as a page can show it. In live mode pages are served over TLS, and no browser shows a picture there that
 * comes without it.
 */
export const brandOf = ({ brand, name }: Pick<Merchant, "brand" | "name">, livemode: boolean): Brand => {
  const icon = pictureOf(brand.icon)
  return { ...brand, name, icon: livemode && icon?.startsWith("http:") === true ? null : icon }
}

/** The icon and the name on top of a page that does not begin with them. */
export const headHtml = (brand: Brand): Html =>
  html`<header class="brand-head">${iconHtml(brand)}<bdi>${brand.name}</bdi></header>`

/** The merchant's icon; nothing if there is none. */
export const iconHtml = ({ icon }: Brand): Child => icon !== null && pictureHtml(icon, "icon")

const LINKS = [
  ["support", "Support"],
  ["terms", "Terms"],
  ["privacy", "Privacy"]
] as const

/** The links at a page's foot; nothing if there are none. A payer who follows one keeps the page. */
export const footHtml = (brand: Brand): Child => {
  const links = LINKS.flatMap(([setting, text]) => {
    const href = brand[setting]
    return href === null ? [] : [linkHtml(href, text)]
  })
  return links.length > 0 && html`<footer class="foot">${links}</footer>`
}

const linkHtml = (href: string, text: string): Html =>
  href.startsWith("mailto:")
    ? html`<a href="${href}">${text}</a>`
    : html`<a href="${href}" target="_blank" rel="noopener noreferrer"
        >${text}<span class="unseen"> (opens in a new tab)</span></a
      >`

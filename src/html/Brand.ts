/** A merchant's brand on payers' pages (semantics pages.brand). */
import type { Brand as Settings } from "../domain/Brand.ts"
import type { Merchant } from "../payments/merchants/Merchants.ts"
import { type Child, html, type Html } from "./Html.ts"
import { pictureHtml, pictureOf } from "./Images.ts"
import type { Translation } from "./Translation.ts"

/** Settings that are null are not shown. */
export interface Brand extends Omit<Settings, "logo"> {
  readonly name: string
  /** URL of the image beside the name, relative for an uploaded one. */
  readonly icon: string | null
}

/** The address of a merchant's uploaded logo (semantics pages.logo). */
const logoPath = (merchant: string, logo: string): `/${string}` => `/logos/${merchant}/${logo}`

/**
 * The brand for a page with this number of folders between it and Till's base address. It lacks settings that the page
 * cannot show: browsers block http pictures on pages by TLS.
 */
export const brandOf = (
  { brand: { logo, ...settings }, id, name }: Pick<Merchant, "brand" | "id" | "name">,
  livemode: boolean,
  depth = 1
): Brand => {
  if (logo !== undefined) return { ...settings, name, icon: "../".repeat(depth) + logoPath(id, logo).slice(1) }
  const icon = pictureOf(settings.icon)
  return { ...settings, name, icon: livemode && icon?.startsWith("http:") === true ? null : icon }
}

/** Icon and name at the top of a page that does not start with them. */
export const headHtml = (brand: Brand): Html =>
  html`<header class="brand-head">${iconHtml(brand)}<bdi>${brand.name}</bdi></header>`

export const iconHtml = ({ icon }: Brand): Child => icon !== null && pictureHtml(icon, "icon")

const LINKS = ["support", "terms", "privacy"] as const

/** Links at the bottom of a page. They open in a new tab, so that the payer keeps the page. */
export const footHtml = (brand: Brand, translation: Translation): Child => {
  const links = LINKS.flatMap((setting) => {
    const href = brand[setting]
    return href === null ? [] : [linkHtml(href, translation.text(`brand.${setting}`), translation)]
  })
  return links.length > 0 && html`<footer class="foot">${links}</footer>`
}

const linkHtml = (href: string, text: string, translation: Translation): Html =>
  href.startsWith("mailto:")
    ? html`<a href="${href}">${text}</a>`
    : html`<a href="${href}" target="_blank" rel="noopener noreferrer"
        >${text}<span class="unseen"> ${translation.text("brand.new_tab")}</span></a
      >`

/** The brand of a merchant on payers' pages: logo, colour, support and legal links (semantics pages.brand). */
import { Schema } from "effect"
import { hasAuthority, isEmail, text, TEXT_LENGTH_MAX, WebUrl } from "./Text.ts"

export const BrandIcon = WebUrl

/** Red, green and blue, two hexadecimal digits each. */
export const BrandAccent = Schema.String.check(Schema.isPattern(/^#[0-9A-Fa-f]{6}$/u)).annotate({
  rule: "a colour such as #1b7f5e"
})

/** Decodes a part of a URL; empty if its bytes are not UTF-8. */
const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part)
  } catch {
    return ""
  }
}

/** The address for support: a web page or an email address. */
export const BrandSupport = text()
  .check(
    Schema.makeFilter((url: string) => {
      const parsed = URL.parse(url)
      if (parsed?.protocol !== "mailto:") return parsed !== null && hasAuthority(url)
      return isEmail(decoded(parsed.pathname))
    })
  )
  .annotate({
    rule: `an absolute http or https URL, or mailto: and an email address, of at most ${TEXT_LENGTH_MAX} characters`
  })

export const BRAND_SETTINGS = {
  icon: BrandIcon,
  accent: BrandAccent,
  support: BrandSupport,
  terms: WebUrl,
  privacy: WebUrl
} as const
export type BrandSetting = keyof typeof BRAND_SETTINGS
export const BRAND_SETTING_NAMES = Object.keys(BRAND_SETTINGS) as ReadonlyArray<BrandSetting>

/** The settings of a brand; null for one that is not set. */
export const Brand = Schema.Struct({
  /** URL of an image on another server. */
  icon: Schema.NullOr(Schema.String),
  /** Name of an uploaded image, shown instead of `icon`; absent without one (`payments/merchants/Logos.ts`). */
  logo: Schema.optionalKey(Schema.String),
  /** `#rrggbb` in lower case. */
  accent: Schema.NullOr(Schema.String),
  /** URL of a page, or `mailto:`. */
  support: Schema.NullOr(Schema.String),
  terms: Schema.NullOr(Schema.String),
  privacy: Schema.NullOr(Schema.String)
})
export type Brand = typeof Brand.Type

export const NO_BRAND: Brand = { icon: null, accent: null, support: null, terms: null, privacy: null }

/**
 * The language of a payer's page, and its texts (semantics pages.languages). The catalogues are in `texts`, one per
 * language. Amounts, dates and names of countries come from `Intl`.
 */
import { isCountry } from "../domain/Address.ts"
import { type CheckoutLocale, PAGE_LANGUAGES, type PageLanguage } from "../domain/CheckoutSession.ts"
import { html, Html } from "./Html.ts"
import { ar } from "./texts/ar.ts"
import type { Catalogue, TextKey } from "./texts/Catalogue.ts"
import { de } from "./texts/de.ts"
import { en } from "./texts/en.ts"
import { es } from "./texts/es.ts"
import { fr } from "./texts/fr.ts"
import { it } from "./texts/it.ts"
import { ja } from "./texts/ja.ts"
import { nl } from "./texts/nl.ts"
import { pl } from "./texts/pl.ts"
import { pt } from "./texts/pt.ts"

export const CATALOGUES: Readonly<Record<PageLanguage, Catalogue>> = { en, de, fr, es, it, pt, nl, pl, ja, ar }

const RIGHT_TO_LEFT: ReadonlySet<PageLanguage> = new Set(["ar"])

/** The names in braces of a text. */
type Names<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never

/** The values of a text, by the names in its braces; nothing for a text without. */
type Values<Key extends TextKey, Value> = [Names<(typeof en)[Key]>] extends [never]
  ? []
  : [values: Readonly<Record<Names<(typeof en)[Key]>, Value>>]

const BRACES = /\{(\w+)\}/g

/** Characters of scripts that are written from right to left. */
const RIGHT_TO_LEFT_CHARACTERS = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/

/** A page's language. */
export class Translation {
  readonly language: PageLanguage
  /** The tag for amounts. Its language is another one only where the browser's is not offered. */
  readonly moneyLocale: string

  constructor(language: PageLanguage, moneyLocale: string) {
    this.language = language
    this.moneyLocale = moneyLocale
  }

  /** The tag for words and dates: the language, with a region if the browser names one. */
  get locale(): string {
    return languageOf(this.moneyLocale) === this.language ? this.moneyLocale : this.language
  }

  get direction(): "ltr" | "rtl" {
    return RIGHT_TO_LEFT.has(this.language) ? "rtl" : "ltr"
  }

  /** Returns a text with its values. A value's direction of writing does not reorder the text around it. */
  text<Key extends TextKey>(key: Key, ...[values]: Values<Key, string | number>): string {
    const given = (values ?? {}) as Readonly<Record<string, string | number>>
    return CATALOGUES[this.language][key].replaceAll(BRACES, (_, name: string) => this.#isolated(String(given[name])))
  }

  /** Returns a text whose values are HTML. */
  html<Key extends TextKey>(key: Key, ...[values]: Values<Key, Html>): Html {
    const given = (values ?? {}) as Readonly<Record<string, Html>>
    // The parts of a split text alternate with the names between them.
    const parts = CATALOGUES[this.language][key].split(BRACES)
    return html`${parts.map((part, index) => (index % 2 === 0 ? part : given[part]))}`
  }

  #isolated(value: string): string {
    return this.direction === "rtl" || RIGHT_TO_LEFT_CHARACTERS.test(value) ? `\u2068${value}\u2069` : value
  }
}

/** Pages without a payer, such as the documentation. */
export const ENGLISH = new Translation("en", "en")

/** Returns the language of a page: the wanted one, or else the browser's first one that is offered. */
export const translationFor = (acceptLanguage: string | undefined, wanted: CheckoutLocale = "auto"): Translation => {
  const tags = tagsIn(acceptLanguage)
  const language = wanted === "auto" ? tags.map(languageOf).find(isOffered) : wanted
  const tag = language === undefined ? tags[0] : tags.find((tag) => languageOf(tag) === language)
  const [supported] = tag === undefined ? [] : Intl.NumberFormat.supportedLocalesOf([tag])
  return new Translation(language ?? "en", supported ?? language ?? "en")
}

/** Guesses a payer's country from the browser's first language; undefined if the language is at home in many. */
export const countryFor = (acceptLanguage: string | undefined): string | undefined => {
  const [tag] = tagsIn(acceptLanguage)
  if (tag === undefined) return undefined
  const { language, region } = new Intl.Locale(tag)
  const country = region ?? (AT_HOME_IN_MANY.has(language) ? undefined : new Intl.Locale(tag).maximize().region)
  return country !== undefined && isCountry(country) ? country : undefined
}

/** Languages whose speakers mostly live outside of the language's first country. */
const AT_HOME_IN_MANY: ReadonlySet<string> = new Set(["ar", "en", "es", "fr", "pt", "zh"])

/** The most languages of a header that are read. */
const TAGS_MAX = 20

/** A tag without extensions, which could select digits that the page's texts do not use. */
const TAG = /^[A-Za-z]{2,3}(-[A-Za-z]{4})?(-[A-Za-z]{2}|-[0-9]{3})?$/

/** The tags of a header, the preferred one first. */
const tagsIn = (acceptLanguage = ""): ReadonlyArray<string> =>
  acceptLanguage
    .split(",", TAGS_MAX)
    .map((entry) => {
      const [tag = "", ...parameters] = entry.split(";").map((part) => part.trim())
      const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1"
      return { tag, weight: Number(weight) }
    })
    .filter(({ tag, weight }) => TAG.test(tag) && weight > 0)
    .toSorted((one, other) => other.weight - one.weight)
    .map(({ tag }) => tag)

const languageOf = (tag: string): string => tag.split("-", 1)[0]!.toLowerCase()

const isOffered = (language: string): language is PageLanguage =>
  (PAGE_LANGUAGES as ReadonlyArray<string>).includes(language)

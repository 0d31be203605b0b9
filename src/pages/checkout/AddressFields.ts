/**
 * Address fields of the checkout form by country: which fields exist, their order, which are required, and their names
 * (semantics pages.address). Without a country all fields are shown, and the country decides later which are required.
 */
import { COUNTRY_CODES, isCountry } from "../../domain/Address.ts"
import { addressFormatOf, type AddressName, type AddressPart } from "../../domain/AddressFormats.ts"
import type { Translation } from "../../html/Translation.ts"

export type AddressField = AddressPart | "line2"

/** Whether a field is required. `depends`: the country is not chosen yet. */
type Need = "required" | "optional" | "depends"

interface Part {
  readonly field: AddressPart
  readonly need: Need
  readonly name: AddressName | "state_or_region"
}

const ANYWHERE: ReadonlyArray<Part> = [
  { field: "line1", need: "required", name: "address" },
  { field: "city", need: "required", name: "city" },
  { field: "state", need: "depends", name: "state_or_region" },
  { field: "postal_code", need: "depends", name: "postal" }
]

const partsOf = (country: string): ReadonlyArray<Part> => {
  if (!isCountry(country)) return ANYWHERE
  const { names, parts, required } = addressFormatOf(country)
  return parts.map((field) => ({
    field,
    need: required.includes(field) ? "required" : "optional",
    name: names[field]
  }))
}

const partOf = (field: AddressPart, country: string): Part | undefined =>
  partsOf(country).find((part) => part.field === field)

/** The country's fields in its order, followed by the fields that it does not use. */
export const orderOf = (country: string): ReadonlyArray<AddressField> => {
  const parts = [...partsOf(country), ...ANYWHERE].map(({ field }) => field)
  return [...new Set(parts)].flatMap((field) => (field === "line1" ? [field, "line2"] : [field]))
}

/** True if the country's addresses have the field. */
export const isOf = (field: AddressField, country: string): boolean =>
  field === "line2" || partOf(field, country) !== undefined

export const needOf = (field: AddressField, country: string): Need =>
  field === "line2" ? "optional" : (partOf(field, country)?.need ?? "optional")

/** The name within a sentence. */
const nameOf = (field: AddressPart, country: string, translation: Translation): string =>
  translation.text(`part.${(partOf(field, country) ?? ANYWHERE.find((part) => part.field === field)!).name}`)

export const labelOf = (field: AddressField, country: string, translation: Translation): string => {
  if (field === "line2") return translation.text("address.line2")
  const name = nameOf(field, country, translation)
  return name.charAt(0).toLocaleUpperCase(translation.language) + name.slice(1)
}

/** The error for an empty field; undefined if the field is optional. */
export const missingTextOf = (field: AddressField, country: string, translation: Translation): string | undefined =>
  field !== "line2" && needOf(field, country) === "required"
    ? translation.text("address.missing", { name: nameOf(field, country, translation) })
    : undefined

const LETTERS: Readonly<Record<AddressPart, string>> = { line1: "A", city: "C", state: "S", postal_code: "Z" }
const MARKS: Readonly<Record<Need, string>> = { required: "!", optional: "?", depends: "*" }

const formatOf = (country: string): string =>
  partsOf(country)
    .map(({ field, name, need }) => `${LETTERS[field]}${MARKS[need]}${name}`)
    .join()

let formats: string | undefined

/**
 * The formats of all countries for the page's script: `ATDE:A!address,Z!postal,C!city;USVI:A!address,C!city,…`.
 * Countries with the same fields share an entry; the first entry, without countries, applies before a country is
 * chosen.
 */
export const formatsText = (): string => {
  if (formats !== undefined) return formats
  const countries = Map.groupBy(COUNTRY_CODES, formatOf)
  const entries = [...countries].map(([text, codes]) => `${codes.join("")}:${text}`)
  return (formats = [`:${formatOf("")}`, ...entries].join(";"))
}

const NAMES = new Set(["", ...COUNTRY_CODES].flatMap(partsOf).map(({ name }) => name))

/** The names of all fields, in the form used within a sentence, for the page's script. */
export const namesIn = (translation: Translation): Readonly<Record<string, string>> =>
  Object.fromEntries([...NAMES].map((name) => [name, translation.text(`part.${name}`)]))

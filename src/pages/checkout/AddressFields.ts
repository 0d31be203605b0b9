/**
 * The fields of the checkout form for an address, as the payer's country has them: which there are, in which order,
 * which of them must be filled in, and what they are called (semantics 9.8). Without a country all are there, and which
 * of them it will take is open.
 */
import { COUNTRY_CODES, isCountry } from "../../domain/Address.ts"
import type { AddressPart } from "../../domain/AddressFormats.ts"
import { addressFormatOf } from "../../domain/AddressFormats.ts"

export type AddressField = AddressPart | "line2"

/** Whether a field must be filled in. `depends`: the country that is yet to be chosen decides. */
type Need = "required" | "optional" | "depends"

interface Part {
  readonly field: AddressPart
  readonly need: Need
  /** As within a sentence. */
  readonly name: string
}

const ANYWHERE: ReadonlyArray<Part> = [
  { field: "line1", need: "required", name: "address" },
  { field: "city", need: "required", name: "city" },
  { field: "state", need: "depends", name: "state or region" },
  { field: "postal_code", need: "depends", name: "postal code" }
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

/** The fields of a country's addresses in its order, and behind them those that they do not have. */
export const orderOf = (country: string): ReadonlyArray<AddressField> => {
  const parts = [...partsOf(country), ...ANYWHERE].map(({ field }) => field)
  return [...new Set(parts)].flatMap((field) => (field === "line1" ? [field, "line2"] : [field]))
}

/** True if the country's addresses have the field. */
export const isOf = (field: AddressField, country: string): boolean =>
  field === "line2" || partOf(field, country) !== undefined

export const needOf = (field: AddressField, country: string): Need =>
  field === "line2" ? "optional" : (partOf(field, country)?.need ?? "optional")

const nameOf = (field: AddressPart, country: string): string =>
  (partOf(field, country) ?? ANYWHERE.find((part) => part.field === field)!).name

export const labelOf = (field: AddressField, country: string): string => {
  if (field === "line2") return "Apartment, suite, etc."
  const name = nameOf(field, country)
  return name.charAt(0).toUpperCase() + name.slice(1)
}

/** What the payer is told who leaves the field empty; undefined if it may be. */
export const missingTextOf = (field: AddressField, country: string): string | undefined =>
  field !== "line2" && needOf(field, country) === "required" ? `Enter your ${nameOf(field, country)}.` : undefined

const LETTERS: Readonly<Record<AddressPart, string>> = { line1: "A", city: "C", state: "S", postal_code: "Z" }
const MARKS: Readonly<Record<Need, string>> = { required: "!", optional: "?", depends: "*" }

/** The script knows these, so that not every country has to name them. */
const NAMES = addressFormatOf("").names

const textOf = (country: string): string =>
  partsOf(country)
    .map(({ field, name, need }) => `${LETTERS[field]}${MARKS[need]}${name === NAMES[field] ? "" : name}`)
    .join()

let formats: string | undefined

/**
 * All of this for the page's script: `ATDE:A!,Z!,C!;USVI:A!,C!,S!state,Z!ZIP code;…`. Countries that have the same
 * fields share an entry; the first one, without countries, is for when none is chosen.
 */
export const formatsText = (): string => {
  if (formats !== undefined) return formats
  const countries = Map.groupBy(COUNTRY_CODES, textOf)
  const entries = [...countries].map(([text, codes]) => `${codes.join("")}:${text}`)
  return (formats = [`:${textOf("")}`, ...entries].join(";"))
}

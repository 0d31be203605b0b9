/** The countries to choose from in an address, by their English names. */
import { COUNTRY_CODES, isCountry } from "../domain/Address.ts"
import { escape, Html } from "./Html.ts"

const names = new Intl.DisplayNames(["en"], { type: "region" })

interface Country {
  /** Two capital letters. */
  readonly code: string
  readonly name: string
}

/** In the order of their names. */
const COUNTRIES: ReadonlyArray<Country> = COUNTRY_CODES.map((code) => ({
  code,
  name: names.of(code) ?? code
})).toSorted((a, b) => a.name.localeCompare(b.name, "en"))

// Nearly all of a page's weight, so without the closing tags, which HTML does not ask for; and made once.
const optionOf = ({ code, name }: Country, selected: string): string =>
  `<option value="${escape(code)}"${selected}>${escape(name)}`

const unselected = new Html(COUNTRIES.map((country) => optionOf(country, "")).join("\n"))

/** The options of a list to choose from; `code` is the one that is chosen, if any is. */
export const countryOptions = (code: string | undefined): Html => {
  if (code === undefined || !isCountry(code)) return unselected
  return new Html(COUNTRIES.map((country) => optionOf(country, country.code === code ? " selected" : "")).join("\n"))
}

/** The catalogues of the texts of payers' pages, one file per language. */
import type { en } from "./en.ts"

/** The key of a text, such as `card.number`. */
export type TextKey = keyof typeof en

/** A text for each key. The compiler refuses a catalogue that lacks one, or has another. */
export type Catalogue = Readonly<Record<TextKey, string>>

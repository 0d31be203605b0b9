/**
 * Words of texts, by which the dashboard finds objects (semantics search.words).
 *
 * A text is folded and split into words. The reach of a word determines the searches that find it:
 *
 * | Reach       | Found by                                            | Terms of a word                      |
 * | ----------- | --------------------------------------------------- | ------------------------------------ |
 * | `whole`     | the whole word                                      | one                                  |
 * | `beginning` | its first letters, at least three; numbers as whole | one for each length of its beginning |
 * | `part`      | any part of it, at least three characters           | its trigrams                         |
 *
 * A word in a script without spaces between words is found by any part of it, whatever its reach. For `whole` and
 * `beginning`, only the first letters of a word count, so a search reads no document that it does not find. A word may
 * have all trigrams of a part without the part itself: there `finds` decides.
 *
 * Pure, and the same in every version of Till: the views derive terms from these words.
 */

export type Reach = "whole" | "beginning" | "part"

/** A word of an object. */
export interface Word {
  readonly text: string
  readonly reach: Reach
}

/** Words of an object that count; the others are not found. */
export const WORDS_MAX = 64
/** Words of a text of an object that count, and of a search. */
export const TEXT_WORDS_MAX = 16
/** Characters of a text and of a word that count, in UTF-16. Normalizing a text can take quadratic time. */
const TEXT_LENGTH_MAX = 1000
const WORD_LENGTH_MAX = 64

/** Shorter parts of words would be found in too many objects. */
const PART_LENGTH_MIN = 3
/** Letters of a word that count for its beginning. */
const BEGINNING_LENGTH_MAX = 8

/** Letters that Unicode does not decompose and that people type without their stroke or ligature. */
const LETTERS: Readonly<Record<string, string>> = {
  æ: "ae",
  đ: "d",
  ð: "d",
  ħ: "h",
  ł: "l",
  ø: "o",
  œ: "oe",
  ß: "ss",
  þ: "th",
  ŧ: "t",
  // The final form of sigma: the beginning of a word has the other one.
  ς: "σ"
}
const IRREGULAR = new RegExp(`[${Object.keys(LETTERS).join("")}]`, "gu")

/** Accents and vowel points. The sound marks of kana make other letters, and stay. */
const MARKS = /(?![\u3099\u309a])[\p{Script=Inherited}\u0591-\u05c7]/gu

const isAscii = (text: string): boolean => /^[\0-\x7f]*$/.test(text)

/** Returns a text without accents and case: `İstanbul` → `istanbul`, `Straße` → `strasse`, `５４` → `54`. */
const fold = (text: string): string =>
  isAscii(text)
    ? text.toLowerCase()
    : text
        .normalize("NFKD")
        .replace(MARKS, "")
        .normalize("NFC")
        // Full case folding: `ß`, `ı` and `ς` change in upper case only.
        .toUpperCase()
        .toLowerCase()
        .replace(IRREGULAR, (letter) => LETTERS[letter]!)

/** Scripts whose words follow one another without spaces, or whose words are often searched by a part. */
const UNSPACED =
  String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u30fc\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}` +
  String.raw`\p{Script=Khmer}\p{Script=Myanmar}`
const WORD = new RegExp(String.raw`[${UNSPACED}]+|(?:(?![${UNSPACED}])[\p{L}\p{M}\p{N}])+`, "gu")
const IN_UNSPACED_SCRIPT = new RegExp(`^[${UNSPACED}]`, "u")

/** Apostrophes within words: `O'Brien` is one word. */
const APOSTROPHES = /(?<=\p{L})['\u2019\u02bc](?=\p{L})/gu

/** Returns the words of a text that count, in their order, folded. */
export const wordsIn = (text: string): ReadonlyArray<string> => {
  const plain = fold(text.slice(0, TEXT_LENGTH_MAX)).replace(APOSTROPHES, "")
  const words: Array<string> = plain.match(isAscii(plain) ? /[a-z0-9]+/g : WORD) ?? []
  if (words.length > TEXT_WORDS_MAX) words.length = TEXT_WORDS_MAX
  for (let i = 0; i < words.length; i++) words[i] = words[i]!.slice(0, WORD_LENGTH_MAX)
  return words
}

/** Returns whether a word has a digit. Beginnings of order numbers would be many rare terms, and are seldom typed. */
const isNumber = (word: string): boolean => /\p{N}/u.test(word)

const isUnspaced = (word: string): boolean => word.charCodeAt(0) > 0x7f && IN_UNSPACED_SCRIPT.test(word)

const gramsOf = (word: string, length: number): ReadonlyArray<string> =>
  word.length <= length ? [word] : Array.from({ length: word.length - length + 1 }, (_, i) => word.slice(i, i + length))

/** A term for a word or its beginning, and one for a part of a word. */
const beginningTerm = (text: string): string => `^${text}`
export const partTerm = (text: string): string => `~${text}`

/** Returns the part of a word that counts for its beginning. */
const startOf = (word: string): string => (isNumber(word) ? word : word.slice(0, BEGINNING_LENGTH_MAX))

/** Adds the terms of a word of an object to a list. */
export const addTermsOf = ({ reach, text }: Word, terms: Array<string>): void => {
  const isWhole = reach === "whole" || isNumber(text) || text.length < PART_LENGTH_MIN
  if (reach === "part" || isWhole || isUnspaced(text)) {
    for (const term of termsToFind(text, reach)) terms.push(term)
    return
  }
  const lengthMax = Math.min(text.length, BEGINNING_LENGTH_MAX)
  for (let length = PART_LENGTH_MIN; length <= lengthMax; length++) terms.push(beginningTerm(text.slice(0, length)))
}

/** Returns the terms that all words have which a word of a search finds. */
export const termsToFind = (asked: string, reach: Reach): ReadonlyArray<string> => {
  if (isUnspaced(asked)) return gramsOf(asked, 2).map(beginningTerm)
  if (reach !== "part") return [beginningTerm(startOf(asked))]
  return asked.length < PART_LENGTH_MIN ? [beginningTerm(asked)] : gramsOf(asked, PART_LENGTH_MIN).map(partTerm)
}

/** Returns whether a word of a search finds a word of an object. */
export const finds = (asked: string, { reach, text }: Word): boolean => {
  if (isUnspaced(asked)) return asked.length === 1 ? text === asked : text.includes(asked)
  if (reach === "part") return asked.length < PART_LENGTH_MIN ? text === asked : text.includes(asked)
  const [wanted, found] = [startOf(asked), startOf(text)]
  const isWhole = reach === "whole" || isNumber(text) || isNumber(asked) || asked.length < PART_LENGTH_MIN
  return isWhole ? wanted === found : found.startsWith(wanted)
}

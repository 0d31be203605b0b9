/** Texts of any length that are slow for careless functions: runs, alternations, and all characters. */
import type { TextOf } from "./Growth.ts"
import type { Random } from "./SeededRandom.ts"

/** Beginning and end of a text: a pattern is slow on a text that it begins to match and fails to match at the end. */
export type Frame = readonly [start: string, end: string]

const PIECES = [
  '"',
  "\\",
  "{",
  "[",
  " ",
  "\n",
  "\t",
  ",",
  ";",
  "=",
  ":",
  "a",
  "0",
  "@",
  ".",
  "-",
  "/",
  "%",
  "é",
  "\u0301"
]
/** Units for alternating texts, each combined with each. */
const ALTERNATING = ['"', "\\", "{", "[", " ", "\n", "\t", ",", ";", "="]
const UNITS = [
  ...PIECES,
  ...ALTERNATING.flatMap((one, i) => ALTERNATING.slice(i + 1).map((other) => one + other)),
  // Marks above and below a letter, which normalization reorders.
  "\u0301\u0323",
  '\\"',
  "%41",
  "4242 ",
  '{"a":',
  '"\\n":1,'
]

const filled = (unit: string, [start, end]: Frame): TextOf => {
  const inside = (length: number) => Math.max(1, Math.floor((length - start.length - end.length) / unit.length))
  return (length) => flat(`${start}${unit.repeat(inside(length))}${end}`)
}

/** Every code unit, surrogates in pairs. */
const EVERYTHING = (() => {
  const units: Array<string> = []
  for (let code = 0; code < 0x10000; code++) if (code < 0xd800 || code > 0xdfff) units.push(String.fromCharCode(code))
  for (let i = 0; i < 0x400; i++) units.push(String.fromCharCode(0xd800 + i, 0xdc00 + i))
  return units
})()

/** A sample of all characters for short texts, with the same scripts as a long text. */
const everything =
  ([start, end]: Frame): TextOf =>
  (length) => {
    const step = Math.max(1, EVERYTHING.length / length)
    const count = Math.floor(EVERYTHING.length / step)
    const once = Array.from({ length: count }, (_, i) => EVERYTHING[Math.floor(i * step)]!).join("")
    return flat(`${start}${once.repeat(Math.ceil(length / once.length)).slice(0, length)}${end}`)
  }

/** Returns the text in one piece, as text from a socket is. */
const flat = (text: string): string => Buffer.from(text, "utf16le").toString("utf16le")

/** Texts by their names in a failure: start, repeated unit and end. */
export const hostileTexts = (frames: ReadonlyArray<Frame>): ReadonlyArray<readonly [name: string, textOf: TextOf]> =>
  frames.flatMap((frame) => [
    ...UNITS.map((unit) => [nameOf(unit, frame), filled(unit, frame)] as const),
    [nameOf("all characters", frame), everything(frame)] as const
  ])

/** A few pieces drawn at random, again and again, between others. */
export const drawnTexts = (random: Random, count: number): ReadonlyArray<readonly [name: string, textOf: TextOf]> =>
  Array.from({ length: count }, () => {
    const draw = (most: number) => Array.from({ length: random.integer(0, most) }, () => random.pick(PIECES)).join("")
    const [start, unit, end] = [draw(3), draw(3) + random.pick(PIECES), draw(3)]
    return [nameOf(unit, [start, end]), filled(unit, [start, end])]
  })

const nameOf = (unit: string, [start, end]: Frame): string =>
  [start, unit, end].map((text) => JSON.stringify(text)).join(" ")

/** Replaces the characters that cannot stand in a header. */
export const asHeader = (text: string): string => text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, "x")

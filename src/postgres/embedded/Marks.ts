/** Marks in the data folder of work that was completed: the newest backup, and the newest check of all accounts. */
import { Schema } from "effect"
import * as Path from "node:path"
import { writeAtomically } from "./DataFolder.ts"
import { readIfThere } from "./OwnFiles.ts"

const At = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** `at` is in Unix milliseconds. */
const marks = {
  backup: Schema.Struct({ at: At, folder: Schema.String }),
  scrub: Schema.Struct({ at: At, accounts: Count, problems: Count })
}
type Name = keyof typeof marks
export type Mark<N extends Name> = (typeof marks)[N]["Type"]

const fileIn = (dataFolder: string, name: Name): string => Path.join(dataFolder, `last-${name}.json`)

/** Replaces a mark. Nothing depends on marks, so a folder that takes none is no failure. */
export const setMark = <N extends Name>(dataFolder: string, name: N, mark: Mark<N>): void => {
  try {
    writeAtomically(fileIn(dataFolder, name), `${JSON.stringify(mark)}\n`)
  } catch {
    // `till doctor` reports the missing or old mark.
  }
}

/** Returns a mark; undefined if there is none, or none that can be read. */
export const findMark = <N extends Name>(dataFolder: string, name: N): Mark<N> | undefined => {
  try {
    const text = readIfThere(fileIn(dataFolder, name))
    const codec = Schema.fromJsonString(marks[name] as Schema.Codec<Mark<N>>)
    return text === undefined ? undefined : Schema.decodeUnknownSync(codec)(text)
  } catch {
    return undefined
  }
}

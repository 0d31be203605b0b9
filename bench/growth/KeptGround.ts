/** An installation of the bench of growth that outlives the run, so that an interrupted run can be continued. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"

export interface Kept {
  /** Secret keys, one per account. */
  readonly apiKeys: ReadonlyArray<string>
  /** When the first object was created, in Unix seconds. */
  readonly sinceSeconds: number
  /** Creates per second so far, in parts of equal length. */
  readonly perSecond: ReadonlyArray<number>
}

const fileIn = (folder: string): string => join(folder, "growth.json")

/** Returns what a folder holds; undefined if it is new. */
export const read = (folder: string): Kept | undefined => {
  mkdirSync(folder, { recursive: true })
  return existsSync(fileIn(folder)) ? JSON.parse(readFileSync(fileIn(folder), "utf8")) : undefined
}

export const write = (folder: string, kept: Kept): void => {
  const temporary = `${fileIn(folder)}.new`
  writeFileSync(temporary, JSON.stringify(kept), { mode: 0o600 })
  renameSync(temporary, fileIn(folder))
}

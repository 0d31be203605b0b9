/**
 * The people whose data was erased, by their ids, in a file of the data folder: a backup from before an erasure that is
 * restored is erased again. Backups have the list in their manifests, too.
 */
import { Schema } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { writeAtomically } from "../postgres/embedded/DataFolder.ts"
import { readIfThere } from "../postgres/embedded/OwnFiles.ts"
import { BackupFailed } from "./BackupFailed.ts"
import type { Erasure, ManifestKeys } from "./Manifest.ts"
import * as Manifests from "./Manifest.ts"

const NAME = "erasures.json"

const List = Schema.fromJsonString(Schema.Array(Schema.Struct({ account: Schema.String, id: Schema.String })))
const decode = Schema.decodeUnknownSync(List)

/** Reads a file of erasures; empty if there is none. Throws `BackupFailed` for another file. */
const read = (file: string): ReadonlyArray<Erasure> => {
  const text = readIfThere(file)
  if (text === undefined) return []
  try {
    return decode(text)
  } catch {
    throw new BackupFailed({ message: `${file} is no list of erasures.` })
  }
}

export const ofDataFolder = (dataFolder: string): ReadonlyArray<Erasure> => read(Path.join(dataFolder, NAME))

/** Reads the list of a newer backup or of a data folder's file. */
export const at = (path: string, keys: ManifestKeys): ReadonlyArray<Erasure> => {
  if (!fs.existsSync(path)) throw new BackupFailed({ message: `${path} does not exist.` })
  if (!fs.statSync(path).isDirectory()) return read(path)
  const found = Manifests.find(path, Manifests.MANIFEST)
  return found === undefined ? ofDataFolder(path) : (found.authenticated(keys).erasures ?? [])
}

/** Returns lists as one, each person once. */
export const union = (...lists: ReadonlyArray<ReadonlyArray<Erasure>>): ReadonlyArray<Erasure> => [
  ...new Map(lists.flat().map((one) => [`${one.account} ${one.id}`, { account: one.account, id: one.id }])).values()
]

/** Adds people to the list of a data folder. */
export const add = (dataFolder: string, people: ReadonlyArray<Erasure>): void => {
  const known = ofDataFolder(dataFolder)
  const all = union(known, people)
  if (all.length > known.length) writeAtomically(Path.join(dataFolder, NAME), `${JSON.stringify(all)}\n`)
}

/** Searches the memory of a process: the reachable part as V8 reports it, and all that a core file would hold. */
import * as fs from "node:fs"

const CHUNK_BYTES = 8 * 1024 * 1024

/** Returns the ways in which a text may lie in memory: V8 stores strings with one or two bytes per character. */
const formsOf = (text: string): ReadonlyArray<Buffer> => [Buffer.from(text, "latin1"), Buffer.from(text, "utf16le")]

interface Region {
  readonly from: number
  readonly to: number
}

/** The regions of a process that a core file contains: its private memory, written or not. */
const regionsOf = (processId: number): ReadonlyArray<Region> =>
  fs
    .readFileSync(`/proc/${processId}/maps`, "utf8")
    .split("\n")
    .flatMap((line) => {
      const [, from, to, rights, , name = ""] = /^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ (\d+) *(.*)$/u.exec(line) ?? []
      const isKept = rights?.startsWith("rw") === true && !name.startsWith("[v")
      return isKept ? [{ from: Number.parseInt(from!, 16), to: Number.parseInt(to!, 16) }] : []
    })

/** Counts the places of texts in the whole memory of a stopped process; undefined where that may not be read. */
export const countInMemory = (
  processId: number,
  texts: ReadonlyArray<string>
): ReadonlyMap<string, number> | undefined => {
  const forms = texts.map((text) => [text, formsOf(text)] as const)
  const longest = Math.max(...forms.flatMap(([, all]) => all.map(({ length }) => length)))
  const counts = new Map(texts.map((text) => [text, 0]))
  let memory: number
  try {
    memory = fs.openSync(`/proc/${processId}/mem`, "r")
  } catch {
    return undefined
  }
  try {
    const buffer = Buffer.alloc(CHUNK_BYTES)
    for (const { from, to } of regionsOf(processId)) {
      for (let at = from; at < to; at += CHUNK_BYTES - longest) {
        const length = readAt(memory, buffer, at, Math.min(CHUNK_BYTES, to - at))
        const bytes = buffer.subarray(0, length)
        for (const [text, all] of forms)
          for (const form of all) counts.set(text, counts.get(text)! + countOf(bytes, form))
      }
    }
  } finally {
    fs.closeSync(memory)
  }
  return counts
}

/** Pages that were never written cannot be read. */
const readAt = (memory: number, buffer: Buffer, at: number, length: number): number => {
  try {
    return fs.readSync(memory, buffer, 0, length, at)
  } catch {
    return 0
  }
}

const countOf = (bytes: Buffer, form: Buffer): number => {
  let count = 0
  for (let at = bytes.indexOf(form); at !== -1; at = bytes.indexOf(form, at + 1)) count++
  return count
}

/** Returns the strings of a heap snapshot, which V8 takes after a collection: those that something still holds. */
export const stringsOf = (snapshot: string): ReadonlyArray<string> =>
  (JSON.parse(fs.readFileSync(snapshot, "utf8")) as { readonly strings: ReadonlyArray<string> }).strings

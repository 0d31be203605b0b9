/**
 * CPU time of processes, user and system, in microseconds, and memory, from Linux's /proc. Undefined elsewhere.
 *
 * Ticks are 10 ms on nearly every Linux, so a figure per request is exact to about 10 ms divided by the requests of a
 * round.
 */
import { readdirSync, readFileSync } from "node:fs"

const MICROS_PER_TICK = 10_000

interface Stat {
  readonly pid: number
  /** The first 15 bytes of its program's name. */
  readonly name: string
  readonly parent: number
  readonly own: number
  /** CPU time of the children that have ended. */
  readonly children: number
}

/** Reads the text of /proc/<pid>/stat; the process's name may hold spaces and parentheses. */
export const parseStat = (text: string): Stat => {
  const [begin, end] = [text.indexOf("("), text.lastIndexOf(")")]
  const fields = text.slice(end + 2).split(" ")
  const ticks = (first: number) => (Number(fields[first]) + Number(fields[first + 1])) * MICROS_PER_TICK
  const [pid, name] = [Number.parseInt(text, 10), text.slice(begin + 1, end)]
  return { pid, name, parent: Number(fields[1]), own: ticks(11), children: ticks(13) }
}

const statOf = (pid: number | string): Stat | undefined => {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return undefined
  }
}

/** Reads the time of one process with all its threads. */
export const ofProcess = (pid: number): number | undefined => statOf(pid)?.own

/** Reads the time of a process and its descendants, ended ones included. */
export const ofTree = (pid: number): number | undefined => {
  const root = statOf(pid)
  if (root === undefined) return undefined
  const stats = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => statOf(name) ?? [])
  const within = new Set([pid])
  // Process ids wrap around, so a child may have a lower id than its parent: repeat until a pass finds none.
  for (let size = 0; size !== within.size;) {
    size = within.size
    for (const stat of stats) if (within.has(stat.parent)) within.add(stat.pid)
  }
  return stats.reduce((sum, stat) => (within.has(stat.pid) ? sum + stat.own + stat.children : sum), 0)
}

/**
 * Parses /proc/stat: CPU time of the whole machine since its start that was not idle, time taken by its host included.
 */
export const parseMachineStat = (text: string): number => {
  const [user, nice, system, , , interrupts, softInterrupts, stolen] = text
    .slice(0, text.indexOf("\n"))
    .split(/ +/)
    .slice(1)
    .map(Number)
  return (user! + nice! + system! + interrupts! + softInterrupts! + stolen!) * MICROS_PER_TICK
}

export const ofMachine = (): number | undefined => {
  try {
    return parseMachineStat(readFileSync("/proc/stat", "utf8"))
  } catch {
    return undefined
  }
}

export const nameOf = (pid: number): string | undefined => statOf(pid)?.name
export const parentOf = (pid: number): number | undefined => statOf(pid)?.parent

/** Resident memory of a process, in bytes. */
export const residentBytesOf = (pid: number): number | undefined => {
  try {
    return parseResidentBytes(readFileSync(`/proc/${pid}/status`, "utf8"))
  } catch {
    return undefined
  }
}

/** Parses /proc/<pid>/status. */
export const parseResidentBytes = (text: string): number | undefined => {
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB$/m.exec(text) ?? []
  return kibibytes === undefined ? undefined : Number(kibibytes) * 1024
}

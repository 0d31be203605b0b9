/**
 * The processes of the embedded Postgres: who runs on a cluster, and how one is started and stopped.
 *
 * Postgres records its first process in the cluster's `postmaster.pid`. A file that survived a crash may name a process
 * id that the system gave to somebody else meanwhile (after a restart of a container nearly always); so an id counts
 * only if that process is seen to be at work on this very cluster.
 */
import { spawnSync, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import * as OwnFiles from "./OwnFiles.ts"
import type { UserCommand } from "./PostgresUser.ts"

/** `postmaster.pid` says this. */
export interface PostmasterRecord {
  readonly processId: number
  /** undefined while the server starts or stops. */
  readonly port: number | undefined
  /** Its socket lies there; undefined if it has none. */
  readonly socketFolder: string | undefined
}

const recordFile = (cluster: string) => Path.join(cluster, "postmaster.pid")

/** The record of the server that is alive on this cluster, or undefined. */
export const running = (cluster: string): PostmasterRecord | undefined => {
  const lines = (OwnFiles.readIfThere(recordFile(cluster)) ?? "").split("\n").map((line) => line.trim())
  const processId = Number(lines[0])
  if (!isAtWorkOn(processId, cluster)) return undefined
  return {
    processId,
    port: lines[7] === "ready" ? Number(lines[3]) : undefined,
    socketFolder: lines[4] === "" ? undefined : lines[4]
  }
}

/** True if the process lives and is a Postgres on this cluster. The zombie of a dead one does not count. */
export const isAtWorkOn = (processId: number, cluster: string): boolean => {
  if (process.platform === "linux") {
    try {
      // A postmaster works in its cluster's folder.
      return fs.readlinkSync(`/proc/${processId}/cwd`) === cluster
    } catch {
      return false
    }
  }
  const listing = spawnSync("ps", ["-ww", "-o", "stat=,command=", "-p", String(processId)], { encoding: "utf8" })
  return !listing.stdout.trim().startsWith("Z") && listing.stdout.includes(cluster)
}

/**
 * Makes a leftover `postmaster.pid` harmless when its process id now belongs to a stranger, whom Postgres would take
 * for a running server. The file itself stays, with an id that no process can have: Postgres then still checks that no
 * child of the dead server is left.
 */
export const disownLeftover = (cluster: string): void => {
  const file = recordFile(cluster)
  const text = OwnFiles.readIfThere(file)
  if (text === undefined || running(cluster) !== undefined) return
  OwnFiles.write(file, text.replace(/^[^\n]*/, String(impossibleProcessId)))
}

/**
 * Removes the sockets of servers that were killed, with their locks: a server removes its own when it ends, and the
 * next one listens on another port and looks at no other's. The folder is this cluster's alone.
 */
export const removeDeadSockets = (cluster: string, socketFolder: string): void => {
  if (running(cluster) !== undefined) return
  for (const name of fs.readdirSync(socketFolder)) {
    if (name.startsWith(".s.PGSQL.")) fs.rmSync(Path.join(socketFolder, name), { force: true })
  }
}

const impossibleProcessId = 2 ** 31 - 1

export interface StartedPostmaster {
  readonly processId: number | undefined
  /** Resolves when the process has ended or could not be spawned. */
  readonly ended: Promise<EndOfProcess>
}

export interface EndOfProcess {
  readonly code: number | null
  readonly cause?: unknown
}

/**
 * Spawns a server in a session of its own: the interrupt that a terminal sends to Till's process group must not reach
 * it before Till has written what it still has to write. It outlives a killed Till on purpose.
 */
export const spawnDetached = (command: UserCommand, log: number, directory: string): StartedPostmaster => {
  const child = spawn(command.file, [...command.args], {
    ...command.options,
    cwd: directory,
    env: environment,
    detached: true,
    stdio: ["ignore", log, log]
  })
  const ended = new Promise<EndOfProcess>((resolve) => {
    child.once("error", (cause) => resolve({ code: null, cause }))
    child.once("exit", (code) => resolve({ code }))
  })
  child.unref()
  return { processId: child.pid, ended }
}

/** All that the programs get to see: none of Till's own variables, which hold keys. */
export const environment: NodeJS.ProcessEnv = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LC_ALL: "C",
  TZ: "UTC"
}

/** Signals a server; one that is gone already is fine. */
export const signal = (processId: number, name: NodeJS.Signals): void => {
  try {
    process.kill(processId, name)
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause && cause.code === "ESRCH")) throw cause
  }
}

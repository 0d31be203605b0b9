/**
 * The server processes of the embedded Postgres: finding, starting and stopping them.
 *
 * Postgres records its first process in the cluster's `postmaster.pid`. After a crash the file may contain a process id
 * that now belongs to an unrelated process (after a restart of a container nearly always); so an id counts only if that
 * process works on this cluster.
 */
import { spawnSync, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import * as OwnFiles from "./OwnFiles.ts"
import type { UserCommand } from "./PostgresUser.ts"

export interface PostmasterRecord {
  readonly processId: number
  /** Undefined while the server starts or stops. */
  readonly port: number | undefined
  readonly socketFolder: string | undefined
}

const recordFile = (cluster: string) => Path.join(cluster, "postmaster.pid")

export const findServer = (cluster: string): PostmasterRecord | undefined => {
  const lines = (OwnFiles.readIfThere(recordFile(cluster)) ?? "").split("\n").map((line) => line.trim())
  const processId = Number(lines[0])
  if (!isAtWorkOn(processId, cluster)) return undefined
  return {
    processId,
    port: lines[7] === "ready" ? Number(lines[3]) : undefined,
    socketFolder: lines[4] === "" ? undefined : lines[4]
  }
}

/** Returns whether a process is a live Postgres on this cluster. A zombie does not count. */
export const isAtWorkOn = (processId: number, cluster: string): boolean => {
  if (process.platform === "linux") {
    try {
      // The working directory of a postmaster is its cluster's folder.
      return fs.readlinkSync(`/proc/${processId}/cwd`) === cluster
    } catch {
      return false
    }
  }
  const listing = spawnSync("ps", ["-ww", "-o", "stat=,command=", "-p", String(processId)], { encoding: "utf8" })
  return !listing.stdout.trim().startsWith("Z") && listing.stdout.includes(cluster)
}

/**
 * Makes a leftover `postmaster.pid` harmless if its process id now belongs to an unrelated process, which Postgres
 * would take for a running server. The file remains, with an impossible process id: Postgres then still checks that no
 * child of the dead server is left.
 */
export const disownLeftover = (cluster: string): void => {
  const file = recordFile(cluster)
  const text = OwnFiles.readIfThere(file)
  if (text === undefined || findServer(cluster) !== undefined) return
  OwnFiles.write(file, text.replace(/^[^\n]*/, String(impossibleProcessId)))
}

/** Removes the sockets and locks of killed servers, from the cluster's own folder. */
export const removeDeadSockets = (cluster: string, socketFolder: string): void => {
  if (findServer(cluster) !== undefined) return
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
 * Spawns a server in a session of its own: an interrupt from the terminal, which goes to Till's process group, must not
 * stop the server before Till's last writes. The server outlives a killed Till on purpose.
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

/** The environment of the programs, without Till's variables, which contain keys. */
export const environment: NodeJS.ProcessEnv = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LC_ALL: "C",
  TZ: "UTC"
}

/** Sends a signal to a server; ignores one that has ended. */
export const signal = (processId: number, name: NodeJS.Signals): void => {
  try {
    process.kill(processId, name)
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause && cause.code === "ESRCH")) throw cause
  }
}

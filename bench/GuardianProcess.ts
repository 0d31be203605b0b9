/** The process of the guardian: `node GuardianProcess.ts FOLDER`. Guardian.ts describes its purpose. */
import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"

const folder = process.argv[2]!

interface Found {
  readonly pid: number
  /** Arguments, separated by zeros or spaces. */
  readonly command: string
}

/** Returns undefined for a process that ends during the read. */
const lookAt = <A>(look: () => A): A | undefined => {
  try {
    return look()
  } catch {
    return undefined
  }
}

const onLinux = (pid: number): Found | undefined => {
  const command = lookAt(() => readFileSync(`/proc/${pid}/cmdline`, "utf8")) ?? ""
  // Postgres backends overwrite their command lines, but their working folder stays.
  const workingFolder = lookAt(() => readlinkSync(`/proc/${pid}/cwd`)) ?? ""
  const isOfRun = command.includes(folder) || workingFolder === folder || workingFolder.startsWith(`${folder}/`)
  return isOfRun ? { pid, command } : undefined
}

const elsewhere = (): ReadonlyArray<Found> =>
  execFileSync("ps", ["-A", "-ww", "-o", "pid=,command="], { encoding: "utf8" })
    .split("\n")
    .flatMap((line) => {
      const [, pid, command] = /^ *(\d+) (.*)$/.exec(line) ?? []
      return command?.includes(folder) === true ? [{ pid: Number(pid), command }] : []
    })

const processesOfRun = (): ReadonlyArray<Found> => {
  const found =
    process.platform === "linux"
      ? readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? (onLinux(Number(name)) ?? []) : []))
      : elsewhere()
  return found.filter(({ pid }) => pid !== process.pid)
}

/** A postmaster that quits ends its children and removes its shared memory; one that is killed leaves both. */
const isPostgres = ({ command }: Found): boolean => /^[^\0 ]*postgres\b/.test(command)

const LOOK_MILLIS = 100
/** Time for a Postgres to quit. */
const QUIT_MILLIS = 3000
/** Time after which the guardian fails, because a process cannot be ended. */
const END_MILLIS = 20_000

const endAll = async () => {
  const started = performance.now()
  // A process that is starting appears in the second pass.
  for (let quietLooks = 0; quietLooks < 2;) {
    const found = processesOfRun()
    const elapsed = performance.now() - started
    if (elapsed > END_MILLIS) {
      throw new Error(`Left over by the bench: ${found.map(({ pid }) => pid).join(", ")} in ${folder}`)
    }
    quietLooks = found.length === 0 ? quietLooks + 1 : 0
    for (const one of found) {
      const signal = isPostgres(one) && elapsed < QUIT_MILLIS ? "SIGQUIT" : "SIGKILL"
      lookAt(() => process.kill(one.pid, signal))
    }
    await pause(LOOK_MILLIS)
  }
}

/** Unmounts what is mounted below the folder, the innermost first, before files are deleted by their names. */
const unmountAll = () => {
  const mounted = (lookAt(() => readFileSync("/proc/self/mounts", "utf8")) ?? "")
    .split("\n")
    .flatMap((line) => line.split(" ")[1] ?? [])
    .filter((path) => path.startsWith(`${folder}/`))
  for (const path of mounted.toReversed()) lookAt(() => execFileSync("umount", ["-l", path], { stdio: "ignore" }))
}

process.stdin.resume().once("close", () => {
  void endAll()
    .finally(unmountAll)
    .finally(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }))
})

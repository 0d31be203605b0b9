/** Checks of the machine and of the files of an installation. They need no database and no running service. */
import * as fs from "node:fs"
import * as os from "node:os"
import type { SetVariable, TillConfigShape } from "../config.ts"
import { dashboardRefusalOf, isForThisMachine, publicUrlOf } from "../config.ts"
import { intrusionInto } from "../postgres/embedded/OwnFiles.ts"
import { VERSION } from "../version.ts"
import { bytes, count, type Finding, ok, problem, unknown, warning } from "./Finding.ts"

/** Free space below which a write may soon fail, and below which an operator should act. In bytes. */
const FREE_PROBLEM = 500_000_000
const FREE_WARNING = 2_000_000_000
/** Till has a socket per connection, and a few hundred files. */
const FILES_WARNING = 4096
/** A service with a million payments takes about half of this, and Postgres the rest. In bytes. */
const MEMORY_WARNING = 1_000_000_000

export const program = (): Finding =>
  ok("program", `Till ${VERSION} on Node ${process.version}, ${os.type()} ${os.release()} ${process.arch}`)

/** The variables that are set. Values of secrets are not shown. */
export const configuration = (
  variables: ReadonlyArray<SetVariable>,
  unknownNames: ReadonlyArray<string>
): ReadonlyArray<Finding> => {
  const set = variables.map(({ name, shown }) => `${name}${shown === null ? " (hidden)" : `=${shown}`}`)
  return [
    ok("configuration", set.length === 0 ? "No variable is set: all have their defaults" : `Set: ${set.join(", ")}`),
    ...(unknownNames.length === 0
      ? []
      : [
          warning(
            "configuration.unknown",
            `Set, but not read by Till: ${unknownNames.join(", ")}`,
            "Correct or remove these variables; docs/configuration.md lists all."
          )
        ])
  ]
}

/** Settings that are valid, and yet rarely meant. */
export const settings = (config: TillConfigShape): ReadonlyArray<Finding> => {
  const url = publicUrlOf(config)
  const refusal = dashboardRefusalOf(config)
  return [
    ...(refusal === null || !config.dashboard
      ? []
      : [warning("configuration.dashboard", "Nobody can sign in to the dashboard", refusal)]),
    ...(isForThisMachine(config) || url.startsWith("https://")
      ? []
      : [
          warning(
            "configuration.public_url",
            `Links lead to ${url}, so payers' browsers send their data unencrypted`,
            "Put a proxy with TLS in front of Till and set TILL_PUBLIC_URL to its https:// address."
          )
        ]),
    ...(config.liveProcessor === "simulator"
      ? [
          warning(
            "configuration.live_processor",
            "Live mode is simulated: payments succeed and no money moves",
            "Unset TILL_LIVE_PROCESSOR on an installation that real shops use."
          )
        ]
      : []),
    ...(config.scrubDays === 0
      ? [
          warning(
            "configuration.scrub",
            "The service does not check its data: TILL_SCRUB_DAYS is 0",
            "Set TILL_SCRUB_DAYS to a number of days that is shorter than backups are kept."
          )
        ]
      : [])
  ]
}

export const isThere = (path: string): boolean => fs.statSync(path, { throwIfNoEntry: false }) !== undefined

/** The data folder, its disk, and the secret: there, private, and writable. */
export const files = ({ dataFolder, secretFile }: TillConfigShape): ReadonlyArray<Finding> =>
  isThere(dataFolder)
    ? [folder(dataFolder), secret(secretFile), disk(dataFolder)]
    : [
        problem(
          "files.data_folder",
          `There is no ${dataFolder}`,
          "Start the service first, or let TILL_DATA_DIR name its folder."
        )
      ]

const folder = (path: string): Finding => {
  const check = "files.data_folder"
  const intrusion = intrusionInto(path)
  if (intrusion !== undefined) {
    return problem(check, `The data folder is not private: ${intrusion}`, "Give it to Till's user alone (chmod 700).")
  }
  try {
    fs.accessSync(path, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK)
  } catch {
    return problem(check, `This user cannot write to ${path}`, "Run this command as the service's user.")
  }
  return ok(check, `The data folder is ${path}`)
}

const secret = (path: string): Finding => {
  const check = "files.secret"
  const found = fs.statSync(path, { throwIfNoEntry: false })
  if (found === undefined) {
    return problem(
      check,
      `There is no secret at ${path}`,
      "Restore it from a backup: without it the secrets of webhook endpoints cannot be read."
    )
  }
  return (found.mode & 0o077) === 0
    ? ok(check, `The installation's secret is ${path}, readable by its owner only`)
    : warning(check, `Other users of this machine can read ${path}`, `chmod 600 ${path}`)
}

/** The space on the disk of a folder. */
export const freeBytesOf = (path: string): { readonly free: number; readonly all: number } | undefined => {
  try {
    const { bavail, blocks, bsize } = fs.statfsSync(path)
    return { free: bavail * bsize, all: blocks * bsize }
  } catch {
    return undefined
  }
}

const disk = (path: string): Finding => {
  const check = "disk.space"
  const space = freeBytesOf(path)
  if (space === undefined) return unknown(check, `The free space of ${path} is not known`)
  const text = `${bytes(space.free)} of ${bytes(space.all)} are free on the disk of ${path}`
  const remedy = "Free some space or enlarge the disk: without space, Till refuses every write."
  if (space.free < FREE_PROBLEM) return problem(check, text, remedy)
  return space.free < FREE_WARNING || space.free < space.all / 20 ? warning(check, text, remedy) : ok(check, text)
}

interface Limits {
  readonly userLimits?: { readonly open_files?: { readonly soft: number | "unlimited" } }
}

/** The limits of this process, which are those of the service if the same user and unit run both. */
export const limits = (): ReadonlyArray<Finding> => {
  const { userLimits } = process.report.getReport() as Limits
  const files = userLimits?.open_files?.soft
  const memory = process.constrainedMemory()
  const available = memory > 0 && memory < os.totalmem() ? memory : os.totalmem()
  const cores = os.availableParallelism()
  return [
    files === undefined
      ? unknown("limits.files", "The limit of open files is not known")
      : files === "unlimited" || files >= FILES_WARNING
        ? ok("limits.files", `${files === "unlimited" ? "Any number of" : count(files)} files may be open`)
        : warning(
            "limits.files",
            `Only ${count(files)} files may be open, and each connection is one`,
            "Raise it: ulimit -n 65536, or LimitNOFILE=65536 in the unit."
          ),
    available < MEMORY_WARNING
      ? warning("limits.memory", `${bytes(available)} of memory`, "Give Till and its Postgres 1 GB at least.")
      : ok("limits.memory", `${bytes(available)} of memory, ${cores} core${cores === 1 ? "" : "s"}`)
  ]
}

/** The disk returns EIO for a flush of Postgres: a preloaded library answers instead of the system. */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import { pause } from "../../support/TillProcess.ts"
import { type Context, type Row, scene, skipped } from "../Scene.ts"
import { withServer } from "../Server.ts"

const ROUNDS = 4
const FAULT = "EIO on a flush"
const remark = "one flush fails, most often that of a commit: Postgres panics and recovers, as it has to."
const SOURCE = Path.join(import.meta.dirname, "../failing-fsync.c")
/** Clients work at the same time, so the next flush is near. */
const FLUSH_MILLIS_MAX = 10_000

export const run = async (context: Context): Promise<ReadonlyArray<Row>> => {
  if (process.platform !== "linux") return [skipped(FAULT, "a library that Postgres loads first is Linux'")]
  // Postgres has a user of its own where this one is root: it loads the library, and takes the file away.
  const shared = Path.join(context.folder, "shared")
  fs.mkdirSync(shared)
  fs.chmodSync(shared, 0o777)
  fs.chmodSync(Path.dirname(context.folder), 0o711)
  const library = Path.join(shared, "failing-fsync.so")
  const compiled = spawnSync("cc", ["-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], { encoding: "utf8" })
  if (compiled.status !== 0) {
    return [skipped(FAULT, `there is no C compiler (${compiled.error?.message ?? compiled.stderr.split("\n")[0]})`)]
  }
  const file = Path.join(shared, "failing")
  const variables = { LD_PRELOAD: library, FAULTS_FSYNC: file }
  const use = async (server: { readonly url: () => string }) => [
    await scene(context, { fault: FAULT, remark, service: { databaseUrl: server.url() } }, async (scene) => {
      for (let round = 0; round < ROUNDS * context.times; round++) {
        await scene.round(async (began) => {
          fs.writeFileSync(file, "")
          const end = performance.now() + FLUSH_MILLIS_MAX
          while (fs.existsSync(file) && performance.now() < end) await pause(1)
          if (fs.existsSync(file)) throw new Error("no flush took the library's error")
          began()
        })
      }
    })
  ]
  return withServer(Path.join(context.folder, "server"), use, variables)
}

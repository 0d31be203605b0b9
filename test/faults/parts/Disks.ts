/** Disks whose power is cut, or that are full. */
import { mkdirSync } from "node:fs"
import * as Path from "node:path"
import { killFamily, pause } from "../../support/TillProcess.ts"
import { Disk } from "../Disk.ts"
import { type Context, type Row, scene, type Scene, skipped } from "../Scene.ts"

const CUTS = 6
const FILLS = 3
/** Postgres' log takes half a gigabyte, and a small disk is filled sooner. */
const DISK_MEGABYTES = 3000
const FULL_MILLIS = 3000

const POWER_CUT = "power cut"
const FULL_DISK = "full disk"

export const run = async (context: Context): Promise<ReadonlyArray<Row>> => [
  await powerCuts(context, CUTS * context.times),
  await fullDisks(context, FILLS * context.times)
]

export const powerCuts = (context: Context, rounds: number): Promise<Row> =>
  onDisk(context, POWER_CUT, async (scene, disk) => {
    for (let round = 0; round < rounds; round++) await scene.round((began) => cut(scene, disk, began))
  })

const cut = async ({ random, service }: Scene, disk: Disk, began: () => void): Promise<void> => {
  const postgres = service.postgresProcessId!
  began()
  if (!disk.cut()) throw new Error("the file system has no call that cuts its power")
  // The processes run on for a moment on a failing disk.
  await pause(random.integer(0, 300))
  killFamily(postgres)
  await service.kill()
  await disk.remount()
  await service.start()
}

const fullDisks = (context: Context, rounds: number): Promise<Row> =>
  onDisk(context, FULL_DISK, async (scene, disk) => {
    for (let round = 0; round < rounds; round++) {
      await scene.round(async (began) => {
        disk.fill()
        await pause(FULL_MILLIS)
        disk.free()
        began()
      })
    }
  })

/** Runs a Till with all its data on a file system of its own. */
const onDisk = async (
  context: Context,
  fault: string,
  use: (scene: Scene, disk: Disk) => Promise<void>
): Promise<Row> => {
  const folder = Path.join(context.folder, fault.replaceAll(" ", "-"))
  mkdirSync(folder, { recursive: true })
  const disk = Disk.make(folder, DISK_MEGABYTES)
  if (typeof disk === "string") return skipped(fault, disk)
  try {
    const options = { fault, service: { folder: Path.join(disk.folder, "till") } }
    return await scene(context, options, (scene) => use(scene, disk))
  } finally {
    await disk.close()
  }
}

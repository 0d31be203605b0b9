/** The machine's clock is set ahead and back, also during a restart. */
import * as fs from "node:fs"
import * as Path from "node:path"
import { type Context, type Row, scene } from "../Scene.ts"

const HOUR_MILLIS = 3_600_000
/** Offset of the clock in each round, in hours. */
const HOURS = [2, 0, -2, 0, 2, -2]

export const run = async (context: Context): Promise<ReadonlyArray<Row>> => {
  const file = Path.join(context.folder, "clock")
  fs.writeFileSync(file, "0")
  const set = (hours: number) => {
    fs.writeFileSync(`${file}.new`, String(hours * HOUR_MILLIS))
    // Replaces the file in one step, so that readers never see half of it.
    fs.renameSync(`${file}.new`, file)
  }
  const clock = Path.join(import.meta.dirname, "../ShiftedClock.ts")
  const options = {
    fault: "clock ± 2 h",
    service: { imports: [clock], variables: { FAULTS_CLOCK: file } },
    remark: "Till's clock, not Postgres'; every second step is followed by a kill and a start."
  }
  const row = await scene(context, options, async (scene) => {
    for (let round = 0; round < HOURS.length * context.times; round++) {
      await scene.round(async (began) => {
        began()
        set(HOURS[round % HOURS.length]!)
        if (round % 2 === 0) return
        await scene.service.kill()
        await scene.service.start()
      })
    }
  })
  return [row]
}

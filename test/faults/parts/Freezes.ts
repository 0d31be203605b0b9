/** Processes that are stopped and continued (SIGSTOP), as on a paused or starved machine. */
import { family, pause, signalIfThere } from "../../support/TillProcess.ts"
import { type Context, type Row, scene } from "../Scene.ts"

const ROUNDS = 2

export const run = async (context: Context): Promise<ReadonlyArray<Row>> => [
  await freezes(context, "SIGSTOP of Till, 3 s", "till", 3, ROUNDS),
  await freezes(context, "SIGSTOP of Postgres, 3 s", "postgres", 3, ROUNDS),
  // Longer than Till waits for a statement.
  await freezes(context, "SIGSTOP of Postgres, 20 s", "postgres", 20, 1)
]

const freezes = (
  context: Context,
  fault: string,
  victim: "till" | "postgres",
  seconds: number,
  rounds: number
): Promise<Row> =>
  scene(context, { fault }, async (scene) => {
    for (let round = 0; round < rounds * context.times; round++) {
      await scene.round(async (began) => {
        const { postgresProcessId, processId } = scene.service
        const frozen = victim === "till" ? [processId] : family(postgresProcessId!)
        for (const one of frozen) signalIfThere(one, "SIGSTOP")
        await pause(seconds * 1000)
        for (const one of frozen.toReversed()) signalIfThere(one, "SIGCONT")
        began()
      })
    }
  })

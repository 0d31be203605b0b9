/**
 * The event loop of a process hangs. Its watchdog kills the process; a single process is restarted by the suite, as by
 * a supervisor, and one of two runners by the process that started both.
 */
import * as Path from "node:path"
import { runnersOf, signalIfThere } from "../../support/TillProcess.ts"
import { type Context, type Row, scene, type Scene } from "../Scene.ts"

const ROUNDS = 3
const RUNNERS = 2
const HANG_SECONDS = 3

const service = {
  imports: [Path.resolve(import.meta.dirname, "../../support/HangOnSignal.ts")],
  variables: { TILL_HANG_SECONDS: String(HANG_SECONDS) }
}

export const run = async (context: Context): Promise<ReadonlyArray<Row>> => [
  await hangs(context, "Till hangs", {}, hangAlone),
  await hangs(context, "one of two runners hangs", { args: ["--runners", String(RUNNERS)] }, hangRunner)
]

type Hang = (scene: Scene, began: () => void) => Promise<void>

const hangs = (
  context: Context,
  fault: string,
  options: { readonly args?: ReadonlyArray<string> },
  hang: Hang
): Promise<Row> =>
  scene(context, { fault, service: { ...service, ...options } }, async (scene) => {
    for (let round = 0; round < ROUNDS * context.times; round++) await scene.round((began) => hang(scene, began))
  })

const hangAlone: Hang = async ({ service }, began) => {
  signalIfThere(service.processId, "SIGUSR2")
  began()
  await service.ended
  await service.start()
}

const hangRunner: Hang = async ({ random, service }, began) => {
  const runners = runnersOf(service)
  if (runners.length !== RUNNERS) throw new Error(`there are ${runners.length} runners`)
  signalIfThere(random.pick(runners), "SIGUSR2")
  began()
  await service.logged("A runner has ended")
}

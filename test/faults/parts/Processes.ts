/** Two Tills on one database: both work, one stands still and goes on, one is killed. */
import * as Path from "node:path"
import { pause } from "../../support/TillProcess.ts"
import type { Context, Row, Scene } from "../Scene.ts"
import { scene } from "../Scene.ts"
import { withServer } from "../Server.ts"
import { Service } from "../Service.ts"

const ROUNDS = 4
const FROZEN_MILLIS = 2000

export const run = async (context: Context): Promise<ReadonlyArray<Row>> => [
  await twoProcesses(context, ROUNDS * context.times)
]

export const twoProcesses = (context: Context, rounds: number): Promise<Row> =>
  withServer(Path.join(context.folder, "server"), async (server) => {
    // The secret is shared, and so are the addresses in answers.
    const variables = { TILL_DATA_DIR: Path.join(context.folder, "shared"), TILL_PUBLIC_URL: "http://till.test" }
    const common = { checkout: context.checkout, databaseUrl: server.url(), variables }
    const first = { ...common, folder: Path.join(context.folder, "first") }
    // Makes the tables and the secret, and then waits for its turn.
    const second = await Service.start({ ...common, folder: Path.join(context.folder, "second") })
    try {
      const options = {
        fault: "two processes",
        service: first,
        exchanges: (service: Service) => [service.http, second.http],
        withoutReads: true,
        judgedAtEnd: true,
        work: [400, 300] as const,
        remark: "reads are not judged: what one has changed, the other may not see for 30 seconds, as the README says."
      }
      return await scene(context, options, async (scene) => {
        for (let round = 0; round < rounds; round++) await scene.round((began) => fault(scene, second, round, began))
        // A process that has just started knows what both have done.
        await second.kill()
        await scene.service.kill()
        await scene.service.start()
      })
    } finally {
      await second.destroy()
    }
  })

const fault = async ({ service }: Scene, second: Service, round: number, began: () => void): Promise<void> => {
  if (round % 2 === 0) {
    began()
    await second.kill()
    return second.start()
  }
  service.signal("SIGSTOP")
  await pause(FROZEN_MILLIS)
  service.signal("SIGCONT")
  began()
}

/**
 * Payments through the example gateway behind a network that loses, delays, doubles and forges answers; kill -9 of
 * Till, of the gateway, of both, and of one of three runners. Afterwards Till's payments, refunds and operations have
 * to agree with the gateway's own file.
 */
import * as Path from "node:path"
import { pause } from "../../support/TillProcess.ts"
import { Fleet } from "../Fleet.ts"
import { GatewayScene, type Site } from "../GatewayScene.ts"
import { type Context, perform, type Row } from "../Scene.ts"
import { withServer } from "../Server.ts"
import { Service } from "../Service.ts"

const ROUNDS = 2
const RUNNERS = 3
/** Time of the faulty network without a further fault, in milliseconds. */
const FAULTY_MILLIS = 8000
/** Time without the gateway, which Till notices, and in which others take over from a killed runner. */
const GONE_MILLIS = 8000

type Inject = (scene: GatewayScene, began: () => void) => Promise<void>

const wait: Inject = async (_, began) => {
  began()
  await pause(FAULTY_MILLIS)
}

const killTill: Inject = async ({ site: { service } }, began) => {
  began()
  await service.kill()
  await service.start()
}

const killGateway: Inject = async ({ gateway }, began) => {
  began()
  await gateway.kill()
  await pause(GONE_MILLIS)
  await gateway.start()
}

const killBoth: Inject = async ({ gateway, site: { service } }, began) => {
  began()
  await Promise.all([service.kill(), gateway.kill()])
  await service.start()
  await gateway.start()
}

const FAULTS: ReadonlyArray<readonly [fault: string, inject: Inject]> = [
  ["a gateway's answers lost, late and forged", wait],
  ["kill -9 of Till with calls under way", killTill],
  ["kill -9 of the gateway", killGateway],
  ["kill -9 of Till and the gateway", killBoth]
]

const RUNNER_KILLED = "kill -9 of a runner with calls under way"

export const run = async (context: Context): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  const isWanted = (fault: string) => fault.includes(context.fault ?? "")
  for (const [fault, inject] of FAULTS) if (isWanted(fault)) rows.push(await rounds(context, fault, ROUNDS, inject))
  if (isWanted(RUNNER_KILLED)) rows.push(await killRunners(context))
  return rows
}

const rounds = (
  context: Context,
  fault: string,
  count: number,
  inject: Inject,
  start = (folder: string) => alone(context, folder)
): Promise<Row> =>
  perform(
    context,
    fault,
    () => GatewayScene.make(context, fault, start),
    async (scene) => {
      for (let round = 0; round < count * context.times; round++) {
        await scene.round((began) => inject(scene, began))
      }
      await scene.end()
    }
  )

const alone = async ({ checkout }: Context, folder: string): Promise<Site> => {
  const service = await Service.start({ checkout, folder: Path.join(folder, "till") })
  return { service, exchange: service.http, close: () => service.destroy() }
}

/** Kills the runners in turn; the others take over the merchant's account, and its open operations, once at least. */
const killRunners = (context: Context): Promise<Row> =>
  withServer(Path.join(context.folder, "server"), async (server) => {
    let fleet: Fleet | undefined
    const start = async (folder: string): Promise<Site> => {
      const { checkout } = context
      const options = { checkout, folder, postgresPort: server.port, databaseUrl: (port: number) => server.url(port) }
      const started = (fleet = await Fleet.start(options, RUNNERS))
      return {
        service: started.runners[0]!.service,
        exchange: { request: (...request) => started.next().service.http.request(...request) },
        close: () => started.close()
      }
    }
    const inject: Inject = async ({ rounds }, began) => {
      const victim = fleet!.runners[(rounds - 1) % RUNNERS]!
      began()
      await fleet!.kill(victim)
      await pause(GONE_MILLIS)
      await fleet!.begin(victim)
    }
    return rounds(context, RUNNER_KILLED, RUNNERS, inject, start)
  })

/** Runs rounds of the faulty network alone, for the controls. */
export const faultyNetwork = (context: Context, count: number): Promise<Row> =>
  rounds(context, FAULTS[0]![0], count, wait)

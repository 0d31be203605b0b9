/**
 * Three runners of one service: they are killed, lose their addresses to a stranger, freeze, are cut off from one
 * another and from Postgres, have wrong clocks, join and leave, and are restarted one after the other.
 */
import * as Path from "node:path"
import { pause } from "../../support/TillProcess.ts"
import { Fleet, type Runner } from "../Fleet.ts"
import { fleetScene, type FleetScene } from "../FleetScene.ts"
import type { Context, Row } from "../Scene.ts"
import { type Server, withServer } from "../Server.ts"
import { Stranger } from "../Stranger.ts"

const RUNNERS = 3
const FREEZE_MILLIS = 12_000
const CUT_MILLIS = 8000
/** Long enough for other runners to take over and write. */
const LONG_CUT_MILLIS = 14_000
/** A runner with accounts of a merchant flushes long before. */
const FLUSH_MILLIS_MAX = 5000
/** Interval between joins and leaves of runners. */
const MOVE_MILLIS = 5000
const HOUR_MILLIS = 3_600_000
const SHIFTED_MILLIS = 1000
/** Shorter than the time after which ownership is unconfirmed: nothing moves. */
const SHORT_MILLIS = 2000

/** Other runners should have taken over long before; the killed runner restarts then in any case. */
const TAKEOVER_MILLIS_MAX = 12_000

type Round = (scene: FleetScene, began: () => void, recovered: () => Promise<void>) => Promise<void>

interface FleetFault {
  readonly fault: string
  /** Rounds by default, and with `--long`. */
  readonly rounds: readonly [number, number]
  readonly inject: Round
  readonly isGentle?: boolean
  readonly remark?: string
}

const someOf = ({ fleet, random }: FleetScene, count: number): ReadonlyArray<Runner> => {
  const left = [...fleet.runners]
  return Array.from({ length: count }, () => left.splice(random.integer(0, left.length - 1), 1)[0]!)
}

/** Kills runners; they return after others have taken their accounts over. */
const kill =
  (count: number): Round =>
  async (scene, began, recovered) => {
    const victims = someOf(scene, count)
    began()
    await Promise.all(victims.map((runner) => scene.fleet.kill(runner)))
    await Promise.race([recovered(), pause(TAKEOVER_MILLIS_MAX)])
    await Promise.all(victims.map((runner) => scene.fleet.begin(runner)))
  }

const killWithPostgres =
  (server: Server): Round =>
  async (scene, began, recovered) => {
    // A runner without its Postgres may only answer 503.
    const [victim] = someOf(scene, 1)
    began()
    await Promise.all([scene.fleet.kill(victim!), server.kill()])
    await Promise.race([recovered(), pause(TAKEOVER_MILLIS_MAX)])
    await scene.fleet.begin(victim!)
  }

/**
 * A stranger takes the port of a killed runner and forges answers. The runner does not return before the stranger
 * leaves.
 */
const impersonate: Round = async (scene, began, recovered) => {
  const [victim] = someOf(scene, 1)
  began()
  await scene.fleet.kill(victim!)
  const stranger = await Stranger.listen(victim!.listenerPort)
  // The others probe the address also if the runner had no account of a merchant.
  await Promise.race([Promise.all([recovered(), stranger.met]), pause(TAKEOVER_MILLIS_MAX)])
  await stranger.close()
  if (stranger.connections === 0) throw new Error("no runner connected to the stranger")
  for (const bytes of stranger.learned) scene.find(`a stranger at ${victim!.name}'s port was sent ${bytes}`)
  await scene.fleet.begin(victim!)
}

const freeze =
  (millis: number): Round =>
  async (scene, began) => {
    const [victim] = someOf(scene, 1)
    victim!.troubled()
    victim!.service.signal("SIGSTOP")
    began()
    await pause(millis)
    // The first request after the freeze must not be answered from memory.
    const looking = scene.lookAt(victim!)
    await pause(50)
    victim!.service.signal("SIGCONT")
    await looking
    victim!.recovered()
  }

/**
 * One clock is ahead and one is behind; the third runner's accounts move to these two and back. Neither of the two is
 * started during that, because it would be refused.
 */
const shiftClocks: Round = async (scene, began) => {
  const [ahead, behind, right] = someOf(scene, RUNNERS)
  ahead!.setClock(HOUR_MILLIS)
  behind!.setClock(-HOUR_MILLIS)
  began()
  await pause(SHIFTED_MILLIS)
  await scene.fleet.leave(right!)
  await scene.fleet.begin(right!)
}

const cutFromOthers: Round = async (scene, began) => {
  const victims = someOf(scene, 1)
  scene.fleet.partition(victims, true)
  began()
  await pause(CUT_MILLIS)
  scene.fleet.partition(victims, false)
}

const cutFromPostgres: Round = async (scene, began) => {
  const [victim] = someOf(scene, 1)
  victim!.database.stall()
  began()
  await pause(CUT_MILLIS)
  const looking = scene.lookAt(victim!)
  victim!.database.resume()
  await looking
}

/** Delays a flush until other runners have had the accounts for long. */
const delayFlush: Round = async (scene, began) => {
  const [victim] = someOf(scene, 1)
  await Promise.race([victim!.database.stallAtFlush(), pause(FLUSH_MILLIS_MAX)])
  victim!.database.stall()
  began()
  await pause(LONG_CUT_MILLIS)
  victim!.database.resume()
}

const comeAndGo =
  (moves: number): Round =>
  async (scene, began) => {
    const { fleet } = scene
    let guest: Runner | undefined
    for (let move = 0; move < moves || guest !== undefined; move++) {
      const next = pause(MOVE_MILLIS)
      if (guest === undefined) {
        guest = await fleet.prepare()
        await fleet.begin(guest)
      } else {
        await fleet.leave(guest)
        await fleet.remove(guest)
        guest = undefined
      }
      await next
    }
    began()
  }

const restartInTurn: Round = async ({ fleet }, began) => {
  for (const runner of fleet.runners) {
    await fleet.leave(runner)
    await fleet.begin(runner)
  }
  began()
}

export const run = (context: Context): Promise<ReadonlyArray<Row>> =>
  withServer(Path.join(context.folder, "server"), async (server) => {
    const isLong = context.times > 1
    const freezeMillis = isLong ? 30_000 : FREEZE_MILLIS
    const faults: ReadonlyArray<FleetFault> = [
      { fault: "kill -9 of a runner", rounds: [1, 12], inject: kill(1) },
      { fault: "kill -9 of two runners", rounds: [1, 4], inject: kill(2) },
      { fault: "kill -9 of a runner and Postgres", rounds: [1, 4], inject: killWithPostgres(server) },
      { fault: "a stranger listens there", rounds: [2, 8], inject: impersonate },
      { fault: `SIGSTOP of a runner, ${freezeMillis / 1000} s`, rounds: [1, 4], inject: freeze(freezeMillis) },
      { fault: "SIGSTOP of a runner, 2 s", rounds: [1, 4], inject: freeze(SHORT_MILLIS) },
      { fault: "clocks of two runners ± 1 h", rounds: [1, 10], inject: shiftClocks, isGentle: true },
      { fault: "runner cut off from the others, 8 s", rounds: [1, 6], inject: cutFromOthers },
      { fault: "runner cut off from Postgres, 8 s", rounds: [1, 6], inject: cutFromPostgres },
      { fault: "runners join and leave", rounds: [1, 1], inject: comeAndGo(isLong ? 24 : 2), isGentle: true },
      { fault: "runners restarted in turn", rounds: [1, 4], inject: restartInTurn, isGentle: true }
    ]
    const rows: Array<Row> = []
    const fleet = await startFleet(context, server)
    try {
      for (const fault of faults.filter((one) => one.fault.includes(context.fault ?? "")))
        rows.push(await rounds(context, fleet, fault))
    } finally {
      await fleet.close()
    }
    return rows
  })

const startFleet = (context: Context, server: Server): Promise<Fleet> => {
  const { checkout } = context
  const folder = Path.join(context.folder, "fleet")
  return Fleet.start({ checkout, folder, postgresPort: server.port, databaseUrl: (port) => server.url(port) }, RUNNERS)
}

const rounds = (context: Context, fleet: Fleet, { inject, rounds, ...options }: FleetFault): Promise<Row> =>
  fleetScene(context, options, fleet, async (scene) => {
    const count = rounds[context.times > 1 ? 1 : 0]
    for (let round = 0; round < count; round++) {
      await scene.round((began, recovered) => inject(scene, began, recovered))
    }
  })

const alone = (context: Context, fault: string, count: number, inject: Round): Promise<Row> =>
  withServer(Path.join(context.folder, "server"), async (server) => {
    const fleet = await startFleet(context, server)
    try {
      return await rounds(context, fleet, { fault, rounds: [count, count], inject })
    } finally {
      await fleet.close()
    }
  })

/** Runs rounds of a freeze alone, for the controls: long enough for others to take over. */
export const freezes = (context: Context, count: number): Promise<Row> =>
  alone(context, "SIGSTOP of a runner", count, freeze(FREEZE_MILLIS))

/** Runs rounds of a late flush, for the controls: it arrives after others have taken over and written. */
export const delayedFlushes = (context: Context, count: number): Promise<Row> =>
  alone(context, "runner cut off from Postgres", count, delayFlush)

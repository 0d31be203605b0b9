/**
 * kill -9 under load: of Till, of its Postgres, of one backend, of all at once; and an immediate shutdown of Postgres.
 */
import { family, killFamily, pause, signalIfThere } from "../../support/TillProcess.ts"
import { type Context, type Row, scene, type Scene } from "../Scene.ts"

const ROUNDS = 6

type Victim = "till" | "postgres" | "backend" | "all" | "immediate stop"

const FAULTS: ReadonlyArray<readonly [Victim, string]> = [
  ["till", "kill -9 of Till"],
  ["postgres", "kill -9 of Postgres"],
  ["backend", "kill -9 of a backend"],
  ["all", "kill -9 of all"],
  ["immediate stop", "immediate stop of Postgres"]
]

export const run = async (context: Context): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  for (const [victim, fault] of FAULTS) rows.push(await kills(context, fault, victim, ROUNDS * context.times))
  return rows
}

export const kills = (context: Context, fault: string, victim: Victim, rounds: number): Promise<Row> =>
  scene(context, { fault }, async (scene) => {
    for (let round = 0; round < rounds; round++) await scene.round((began) => kill(scene, victim, began))
  })

/** Kills the victim. Till restarts its Postgres by itself; the suite restarts Till, as a supervisor would. */
const kill = async ({ random, service }: Scene, victim: Victim, began: () => void): Promise<void> => {
  const postgres = service.postgresProcessId
  if (postgres === undefined) throw new Error("there is no Postgres to kill")
  await pause(random.integer(0, 20))
  began()
  switch (victim) {
    case "postgres":
      return killFamily(postgres)
    case "backend":
      return signalIfThere(backendOf(postgres, random.next()), "SIGKILL")
    case "immediate stop":
      return signalIfThere(postgres, "SIGQUIT")
    case "all":
      killFamily(postgres)
  }
  await service.kill()
  await service.start()
}

/** Returns one of the newest children: Till's connections are newer than the server's own helpers. */
const backendOf = (postgres: number, chance: number): number => {
  const newest = family(postgres)
    .slice(1)
    .toSorted((a, b) => b - a)
  return newest[Math.floor(chance * Math.min(3, newest.length))] ?? postgres
}

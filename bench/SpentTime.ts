/** CPU time during a measurement: of the server, of Postgres, and of processes outside of the bench. */
import { availableParallelism } from "node:os"
import { Effect } from "effect"
import type { Server } from "./Contender.ts"
import type { Database } from "./Database.ts"
import * as ProcessTime from "./ProcessTime.ts"

/** CPU times; undefined where the system does not report them. */
export interface Spent {
  readonly serverMicros?: number
  readonly postgresMicros?: number
  /** Share of the machine's CPU time, from 0 to 1, of processes outside of the bench. */
  readonly othersShare?: number
}

export interface Measured {
  readonly server: Server
  readonly database: Database
  /** Worker processes of the bench. */
  readonly workers: ReadonlyArray<{ readonly pid: number }>
}

const cpuNow = ({ database, server, workers }: Measured) => {
  const { system, user } = process.cpuUsage()
  return {
    server: ProcessTime.ofProcess(server.pid),
    postgres: database.cpuMicros(),
    bench: workers.reduce((sum, { pid }) => sum + (ProcessTime.ofProcess(pid) ?? 0), user + system),
    machine: ProcessTime.ofMachine()
  }
}

/** Returns the times per request. */
export const perRequest = (requests: number, { postgresMicros, serverMicros, ...spent }: Spent): Spent => ({
  ...spent,
  ...(serverMicros !== undefined && { serverMicros: serverMicros / requests }),
  ...(postgresMicros !== undefined && { postgresMicros: postgresMicros / requests })
})

/** Runs an effect and returns its value with the CPU time that passed. */
export const around = <A, E, R>(measured: Measured, effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const started = performance.now()
    const before = cpuNow(measured)
    return Effect.map(effect, (value) => {
      const after = cpuNow(measured)
      const capacity = (performance.now() - started) * 1000 * availableParallelism()
      const difference = (part: keyof typeof before) => {
        const [from, to] = [before[part], after[part]]
        return from === undefined || to === undefined ? undefined : to - from
      }
      const [serverMicros, postgresMicros] = [difference("server"), difference("postgres")]
      const machine = difference("machine")
      const others =
        machine === undefined || serverMicros === undefined || postgresMicros === undefined
          ? undefined
          : Math.max(0, machine - serverMicros - postgresMicros - difference("bench")!)
      const spent: Spent = {
        ...(serverMicros !== undefined && { serverMicros }),
        ...(postgresMicros !== undefined && { postgresMicros }),
        ...(others !== undefined && { othersShare: others / capacity })
      }
      return { value, spent }
    })
  })

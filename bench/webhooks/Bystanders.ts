/** CPU time around a measurement: of Till and Postgres, and what went to processes that are no part of the bench. */
import { availableParallelism } from "node:os"
import { Effect } from "effect"
import type { Server } from "../Contender.ts"
import type { Database } from "../Database.ts"
import * as ProcessTime from "../ProcessTime.ts"

export interface Spent {
  readonly tillMicros?: number
  readonly postgresMicros?: number
  readonly othersShare?: number
}

export interface Measured {
  readonly till: Server
  readonly database: Database
  /** The bench's own processes beside this one. */
  readonly workers: ReadonlyArray<{ readonly pid: number }>
}

const cpuNow = ({ database, till, workers }: Measured) => {
  const { system, user } = process.cpuUsage()
  return {
    till: ProcessTime.ofProcess(till.pid),
    postgres: database.cpuMicros(),
    bench: workers.reduce((sum, { pid }) => sum + (ProcessTime.ofProcess(pid) ?? 0), user + system),
    machine: ProcessTime.ofMachine()
  }
}

/** Carries something out and tells what CPU time it took, in all. */
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
      const [tillMicros, postgresMicros, machine] = [difference("till"), difference("postgres"), difference("machine")]
      const others =
        machine === undefined || tillMicros === undefined || postgresMicros === undefined
          ? undefined
          : Math.max(0, machine - tillMicros - postgresMicros - difference("bench")!)
      const spent: Spent = {
        ...(tillMicros !== undefined && { tillMicros }),
        ...(postgresMicros !== undefined && { postgresMicros }),
        ...(others !== undefined && { othersShare: others / capacity })
      }
      return { value, spent }
    })
  })

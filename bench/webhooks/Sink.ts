/** The receiver of all webhooks, seen from the bench. */
import { join } from "node:path"
import { Effect } from "effect"
import type { BenchFailure } from "../BenchFailure.ts"
import type { ArrivalsRecord } from "./Arrivals.ts"
import { pathOf } from "./Delivery.ts"
import type { SinkAnswer, SinkCommand } from "./SinkCommand.ts"
import * as Worker from "../Worker.ts"

export interface Sink {
  readonly pid: number
  /** URL of an endpoint, numbered from 0. */
  readonly url: (endpoint: number) => string
  /** Discards the arrivals and records a load's deliveries to this many endpoints. */
  readonly begin: (run: string, endpoints: number) => Effect.Effect<void, BenchFailure>
  /** Sets the answer to later requests; success at first. */
  readonly answer: (how: SinkAnswer) => Effect.Effect<void, BenchFailure>
  /** Waits for this many different deliveries; fails when deliveries cease. */
  readonly arrived: (deliveries: number) => Effect.Effect<void, BenchFailure>
  readonly take: Effect.Effect<ArrivalsRecord, BenchFailure>
}

export const make = Effect.gen(function* () {
  const { ask, pid } = yield* Worker.make(join(import.meta.dirname, "SinkServer.ts"))
  const tell = <Answer = void>(command: SinkCommand) => ask<Answer>(command)
  const port = yield* tell<number>({ command: "listen" })
  return {
    pid,
    url: (endpoint) => `http://127.0.0.1:${port}${pathOf(endpoint)}`,
    begin: (run, endpoints) => tell({ command: "begin", run, endpoints }),
    answer: (how) => tell({ command: "answer", how }),
    arrived: (deliveries) => tell({ command: "await", deliveries }),
    take: tell<ArrivalsRecord>({ command: "take" })
  } satisfies Sink as Sink
})

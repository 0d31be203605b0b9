/** The gateway of the bench, as a processor of live mode. */
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { Effect } from "effect"
import type { BenchFailure } from "../BenchFailure.ts"
import type { Installation } from "../Contender.ts"
import * as TillCommand from "../TillCommand.ts"
import * as Worker from "../Worker.ts"
import type { GatewayAnswer, GatewayCommand, Ledger } from "./GatewayCommand.ts"

export interface Gateway {
  readonly pid: number
  readonly url: string
  /** The secret that the gateway shares with Till: `whsec_…`. */
  readonly secret: string
  /** Adds the gateway to the merchants of a running Till. */
  readonly addTo: (installation: Installation, merchant: string) => Effect.Effect<void, BenchFailure>
  /** Sets the answer to later requests; at once at first. */
  readonly answer: (how: GatewayAnswer) => Effect.Effect<void, BenchFailure>
  /** Waits until this many operations have no answer. */
  readonly holds: (operations: number) => Effect.Effect<void, BenchFailure>
  readonly ledger: Effect.Effect<Ledger, BenchFailure>
}

export const make = Effect.gen(function* () {
  const { ask, pid } = yield* Worker.make(join(import.meta.dirname, "GatewayServer.ts"))
  const tell = <Answer = void>(command: GatewayCommand) => ask<Answer>(command)
  const secret = `whsec_${randomBytes(32).toString("base64")}`
  const port = yield* tell<number>({ command: "listen", secret })
  const url = `http://127.0.0.1:${port}/`
  return {
    pid,
    url,
    secret,
    addTo: (installation, merchant) => {
      const options = ["--mode", "live", "--kind", "http", "--url", url, "--credentials", "-"]
      const added = TillCommand.run(
        installation,
        ["processors", "add", merchant, ...options],
        JSON.stringify({ secret })
      )
      return Effect.asVoid(added)
    },
    answer: (how) => tell({ command: "answer", how }),
    holds: (operations) => tell({ command: "holds", operations }),
    ledger: tell<Ledger>({ command: "ledger" })
  } satisfies Gateway as Gateway
})

/**
 * Ports for servers that tests start, end and start again.
 *
 * Guarantees: no outgoing connection takes one while its server is away, as the system gives those higher ports; and no
 * two of a run's tests are given the same.
 */
import { Effect } from "effect"
import { freePort } from "../../src/postgres/embedded/FreePort.ts"

const FIRST = 12_000
/** Up to 32,000: Linux gives connections those from 32,768 on, others those from 49,152. */
const PER_WORKER = 2_000
const WORKERS = 10

const first = FIRST + PER_WORKER * (Number(process.env["VITEST_POOL_ID"] ?? 0) % WORKERS)
// Another run on this machine hardly begins at the same one.
let offset = Math.floor(Math.random() * PER_WORKER)

/** A port of 127.0.0.1 that nobody listens on. */
export const serverPort: Effect.Effect<number> = Effect.suspend(() => {
  offset = (offset + 1) % PER_WORKER
  return Effect.catch(freePort("127.0.0.1", first + offset), () => serverPort)
})

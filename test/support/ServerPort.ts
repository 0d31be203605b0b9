/**
 * Ports for servers that tests start, end and start again.
 *
 * Guarantees: no outgoing connection uses such a port while its server is down, because the system's ephemeral ports
 * are higher; and no two tests of a run get the same one.
 */
import { Effect } from "effect"
import { freePort } from "../../src/postgres/embedded/FreePort.ts"

const FIRST = 12_000
/** The ports end at 32,000: ephemeral ports begin at 32,768 on Linux, and at 49,152 elsewhere. */
const PER_WORKER = 2_000
const WORKERS = 10

const first = FIRST + PER_WORKER * (Number(process.env["VITEST_POOL_ID"] ?? 0) % WORKERS)
// A random start, because another run on this machine uses the same range.
let offset = Math.floor(Math.random() * PER_WORKER)

/** A free port of 127.0.0.1. */
export const serverPort: Effect.Effect<number> = Effect.suspend(() => {
  offset = (offset + 1) % PER_WORKER
  return Effect.catch(freePort("127.0.0.1", first + offset), () => serverPort)
})

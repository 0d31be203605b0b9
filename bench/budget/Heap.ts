/** The allocations of a server that was started with `NODE_OPTIONS`; `HeapProbe.ts` is their other side. */
import { connect } from "node:net"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { Effect } from "effect"
import { BenchFailure, failureOf } from "../BenchFailure.ts"

/** Name of the probe's socket in the server's folder. */
export const SOCKET = "heap.sock"
/** Asks for a collection before the answer. */
export const COLLECT = "collect"
const READ = "read"

/** The probe's answer. */
export interface Heap {
  readonly usedBytes: number
  /** Collections since the server's start. */
  readonly collections: number
}

/** No collection but those on demand: a young generation of 512 MB, and none because of memory outside of the heap. */
export const NODE_OPTIONS = [
  "--expose-gc",
  "--min-semi-space-size=512",
  "--max-semi-space-size=512",
  "--no-memory-reducer",
  "--no-incremental-marking",
  `--import=${join(import.meta.dirname, "HeapProbe.ts")}`
]

const read = (folder: string, command: string): Effect.Effect<Heap, BenchFailure> =>
  Effect.tryPromise({
    try: async () => {
      const socket = connect(join(folder, SOCKET))
      socket.write(command)
      return JSON.parse(await text(socket)) as Heap
    },
    catch: failureOf("The heap's probe does not answer")
  })

/** Returns the bytes that the server in a folder allocates during an effect. */
export const allocatedDuring = Effect.fnUntraced(function* <A, E>(folder: string, effect: Effect.Effect<A, E>) {
  const before = yield* read(folder, COLLECT)
  // The observer is called after the collection that it counts.
  const { collections } = yield* read(folder, READ)
  yield* effect
  const after = yield* read(folder, READ)
  if (after.collections !== collections) {
    return yield* new BenchFailure({ problem: "V8 collected garbage while allocations were measured." })
  }
  return after.usedBytes - before.usedBytes
})

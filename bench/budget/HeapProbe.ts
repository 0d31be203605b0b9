/**
 * Loaded before a server's own code (`node --import`): answers a connection to a socket in the server's folder with the
 * bytes that V8's heap has in use. Between a collection on demand and the next answer nothing is collected, if the
 * young generation is larger than what is allocated (`NODE_OPTIONS`): the difference is the allocated bytes.
 */
import { createServer } from "node:net"
import { join } from "node:path"
import { PerformanceObserver } from "node:perf_hooks"
import { getHeapStatistics } from "node:v8"
import { COLLECT, type Heap, SOCKET } from "./Heap.ts"

let collections = 0

new PerformanceObserver((entries) => {
  collections += entries.getEntries().length
}).observe({ entryTypes: ["gc"] })

createServer((connection) => {
  connection.once("data", (command) => {
    if (command.toString() === COLLECT) globalThis.gc!()
    const heap: Heap = { usedBytes: getHeapStatistics().used_heap_size, collections }
    connection.end(JSON.stringify(heap))
  })
})
  .listen(join(process.cwd(), SOCKET))
  .unref()

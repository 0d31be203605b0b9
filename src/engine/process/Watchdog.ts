/**
 * Kills this process if its event loop has stopped turning (semantics operation.hang). Such a process answers no
 * request and no signal; acknowledged commands are durable, and its supervisor starts it again.
 *
 * A separate thread watches a counter in shared memory that the event loop increments. The thread counts its own ticks
 * without a change instead of reading a clock: a sleeping machine, a stopped process (SIGSTOP) and a lack of processor
 * time stop the thread too. A process with an open inspector is never killed, because a debugger may have paused it.
 *
 * The same memory holds the id of the request whose work began last, so that the log line can name it.
 */
import * as inspector from "node:inspector"
import { Worker } from "node:worker_threads"

const BEAT_MILLIS = 250
/** Words of the shared memory: beats so far, and whether the inspector is open. */
const BEATS = 0
const INSPECTED = 1
/** Offset and length of the request's id in the shared memory, in bytes. */
const ID_AT = 8
const ID_LENGTH = 28

const memory = new SharedArrayBuffer(ID_AT + ID_LENGTH)
const words = new Int32Array(memory, 0, 2)
const bytes = Buffer.from(memory)
let noted = ""

/** Notes the request whose work begins now. All ids have the same length. */
export const noteRequest = (id: string): void => {
  if (id === noted) return
  noted = id
  bytes.write(id, ID_AT, ID_LENGTH, "latin1")
}

export interface WatchdogOptions {
  /** Standstill of the event loop after which the process is killed; 0 for never. */
  readonly hangSeconds: number
  readonly logs: boolean
}

interface Watch extends WatchdogOptions {
  readonly memory: SharedArrayBuffer
  readonly beatMillis: number
  readonly idAt: number
}

/** Starts to watch this process' event loop. Calls `onError` if the system cannot start a thread for it. */
export const watchEventLoop = ({ hangSeconds, logs }: WatchdogOptions, onError: (error: Error) => void): void => {
  if (hangSeconds === 0) return
  const beat = () => {
    Atomics.store(words, INSPECTED, inspector.url() === undefined ? 0 : 1)
    Atomics.add(words, BEATS, 1)
  }
  beat()
  setInterval(beat, BEAT_MILLIS).unref()
  const watch: Watch = { hangSeconds, logs, memory, beatMillis: BEAT_MILLIS, idAt: ID_AT }
  const worker = new Worker(`(${String(thread)})()`, {
    eval: true,
    workerData: watch,
    name: "watchdog",
    // The thread needs neither preloaded modules nor the environment.
    execArgv: [],
    env: {},
    resourceLimits: { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 8, codeRangeSizeMb: 1 }
  })
  worker.unref()
  worker.once("error", onError)
}

/** The thread's code, passed as text to save memory, so it cannot use this module's names. */
const thread = (): void => {
  const { workerData } = process.getBuiltinModule("node:worker_threads")
  const fs = process.getBuiltinModule("node:fs")
  const { beatMillis, hangSeconds, idAt, logs, memory } = workerData as Watch
  const [beats, inspected] = [0, 1]
  const words = new Int32Array(memory, 0, 2)
  const ticksMax = Math.ceil((hangSeconds * 1000) / beatMillis)
  let seen = -1
  let ticks = 0
  const log = () => {
    const id = Buffer.from(memory).toString("latin1", idAt).replaceAll("\0", "")
    const line = JSON.stringify({
      message: `The event loop has not turned for ${hangSeconds} s: this process is killed`,
      level: "FATAL",
      timestamp: new Date().toISOString(),
      annotations: { process_id: process.pid, request_id: id === "" ? null : id },
      spans: {}
    })
    // Standard error may be closed, which must not keep the process alive.
    try {
      fs.writeSync(2, `${line}\n`)
    } catch {}
  }
  setInterval(() => {
    const now = Atomics.load(words, beats)
    const isStill = now === seen && Atomics.load(words, inspected) === 0
    ticks = isStill ? ticks + 1 : 0
    seen = now
    if (ticks < ticksMax) return
    if (logs) log()
    process.kill(process.pid, "SIGKILL")
  }, beatMillis)
}

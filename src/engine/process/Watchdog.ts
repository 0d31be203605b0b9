/**
 * Kills a process whose event loop does not turn any more (semantics 9.86). Such a process answers nothing, not even
 * that it should end; what it has acknowledged is durable, and its supervisor starts it again.
 *
 * A thread of its own looks at a counter in shared memory that the event loop raises. The thread counts its own ticks
 * without a change and asks no clock: a machine that sleeps, a process that stands still (SIGSTOP) and one that gets no
 * processor stop the thread as well. A process whose inspector is open is never killed: somebody may have halted it.
 *
 * The id of the request whose work began last lies in the same memory, so that the line in the log can name it.
 */
import * as inspector from "node:inspector"
import { Worker } from "node:worker_threads"

const BEAT_MILLIS = 250
/** Words of the memory: beats so far, and whether the inspector is open. */
const BEATS = 0
const INSPECTED = 1
/** Place and length of the id, in bytes. */
const ID_AT = 8
const ID_LENGTH = 28

const memory = new SharedArrayBuffer(ID_AT + ID_LENGTH)
const words = new Int32Array(memory, 0, 2)
const bytes = Buffer.from(memory)
let noted = ""

/** Notes that work on a request begins now. The id has the length of all ids. */
export const noteRequest = (id: string): void => {
  if (id === noted) return
  noted = id
  bytes.write(id, ID_AT, ID_LENGTH, "latin1")
}

export interface WatchdogOptions {
  /** The event loop may stand still for so long; 0 if it may for ever. */
  readonly hangSeconds: number
  /** Whether the end is logged. */
  readonly logs: boolean
}

/** The thread's own data. */
interface Watch extends WatchdogOptions {
  readonly memory: SharedArrayBuffer
  readonly beatMillis: number
  readonly idAt: number
}

/** Watches this process' event loop from now on, unless the system gives it no thread for that. */
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
    // Neither what the process was told to load first nor its environment concerns the thread.
    execArgv: [],
    env: {},
    resourceLimits: { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 8, codeRangeSizeMb: 1 }
  })
  worker.unref()
  worker.once("error", onError)
}

/** The thread, which is given as text: it has nothing of this module. As a file it would take twice the memory. */
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
    // Nobody may be reading; that must not keep the process alive.
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

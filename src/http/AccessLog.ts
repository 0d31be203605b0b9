/**
 * The access log: a JSON line per answered request on standard error (semantics operation.access_log), with the field
 * names of OpenTelemetry. No line has a body, a query, a secret or a card number.
 *
 * The lines of a turn of the event loop are one write. A write never blocks the process: while the reader of the pipe
 * is behind by more than a bound, lines are dropped and counted.
 */
import { Effect, type Scope } from "effect"
import { clean } from "../domain/Secrets.ts"
import * as Metrics from "../engine/process/Metrics.ts"
import { INSTALLATION, isLive, merchantIdOf } from "../payments/shared/AccountIds.ts"
import type { Report } from "./AnsweredRequests.ts"
import type { AnsweredRequest } from "./RequestContext.ts"

/** Bytes that may wait for the reader of the pipe. */
const WAITING_BYTES_MAX = 1_048_576
/** The most characters of a path. */
const PATH_MAX = 500
/** Decimal places of a duration, which are those of a microsecond. */
const DECIMALS = 3

/** The output of the lines: standard error. */
export interface Output {
  readonly writableLength: number
  readonly write: (text: string, onWritten: (error?: Error | null) => void) => unknown
  readonly on: (event: "error", listener: () => void) => unknown
  readonly off: (event: "error", listener: () => void) => unknown
}

export interface AccessLog {
  readonly write: Report
  /** Lines that this process has dropped since its start. */
  readonly dropped: () => number
}

export const lineOf = (answered: AnsweredRequest, at: number): string => {
  const { account, id, isReplay, method, millis, path, route, status } = answered
  return `${JSON.stringify({
    timestamp: new Date(at).toISOString(),
    "event.name": "http.server.request",
    "http.request.method": clean(method),
    "http.route": route,
    "url.path": clean(path.slice(0, PATH_MAX)),
    "http.response.status_code": status,
    duration_ms: Number(millis.toFixed(DECIMALS)),
    ...(account !== undefined && account !== INSTALLATION && placeOf(account)),
    "till.request_id": id,
    ...(isReplay && { "till.replay": true })
  })}\n`
}

const placeOf = (account: string) => ({
  "till.merchant": merchantIdOf(account),
  "till.mode": isLive(account) ? "live" : "test"
})

/** Writes lines to the output until the scope closes. */
export const make = (output: Output): Effect.Effect<AccessLog, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new Writer(output)),
    (writer) => Effect.sync(() => writer.close())
  ).pipe(Effect.tap(({ dropped }) => Metrics.observeCounter(DROPPED, dropped)))

const DROPPED = {
  name: "till_access_log_dropped_lines_total",
  description: "Lines that the access log has dropped because the reader of its pipe was behind."
}

class Writer implements AccessLog {
  readonly #output: Output
  #text = ""
  #lines = 0
  #dropped = 0

  constructor(output: Output) {
    this.#output = output
    output.on("error", this.#onError)
  }

  readonly dropped = (): number => this.#dropped

  readonly write: Report = (answered) => {
    if (this.#text.length > WAITING_BYTES_MAX) return void this.#dropped++
    if (this.#lines++ === 0) setImmediate(this.#flush)
    this.#text += lineOf(answered, Date.now())
  }

  close(): void {
    this.#flush()
    this.#output.off("error", this.#onError)
  }

  readonly #flush = (): void => {
    const [text, lines] = [this.#text, this.#lines]
    this.#text = ""
    this.#lines = 0
    if (lines === 0) return
    if (this.#output.writableLength > WAITING_BYTES_MAX) {
      this.#dropped += lines
      return
    }
    this.#output.write(text, (error) => {
      if (error != null) this.#dropped += lines
    })
  }

  // The callback of the write counts the lines. Without a listener, a closed pipe would end the process.
  readonly #onError = (): void => {}
}

/**
 * Histories in the format of Jepsen's tools: one JSON object per line, an `invoke` and then an `ok` (`fail` for a
 * refusal, `info` for an unknown outcome), ordered by time, in nanoseconds. `key` is the object, so a customer is
 * Knossos' and Elle's `rw-register`, and a payment is a state machine of a few lines for Porcupine (Models.ts).
 */
import { writeFileSync } from "node:fs"
import { historiesOf, resultOf } from "./Judge.ts"
import type { Shared } from "./Models.ts"
import type { Traffic } from "./Traffic.ts"

interface Line {
  readonly process: number
  readonly type: "invoke" | "ok" | "fail" | "info"
  readonly f: string
  readonly key: string
  readonly value: unknown
  readonly time: number
}

export const linesOf = (traffic: Traffic): ReadonlyArray<Line> => {
  const lines: Array<Line> = []
  let process = 0
  for (const [key, history] of historiesOf(traffic)) {
    for (const { call, op, return: end } of history) {
      // A client repeats a request within the same operation, so each operation may count as a process.
      const one = { process: process++, f: op.operation.f, key }
      const value = valueOf(op.operation)
      lines.push({ ...one, type: "invoke", value, time: nanos(call) })
      const type = op.answer === undefined ? "info" : op.answer.status === 200 ? "ok" : "fail"
      const result = op.operation.f === "read" ? resultOf(op.operation, op.answer) : value
      lines.push({ ...one, type, value: result, time: end === Infinity ? Number.MAX_SAFE_INTEGER : nanos(end) })
    }
  }
  return lines.toSorted((a, b) => a.time - b.time)
}

const nanos = (millis: number): number => Math.round(millis * 1e6)

const valueOf = (operation: Shared): unknown =>
  "value" in operation ? operation.value : "amount" in operation ? operation.amount : null

export const write = (file: string, traffic: Traffic): void =>
  writeFileSync(
    file,
    linesOf(traffic)
      .map((line) => `${JSON.stringify(line)}\n`)
      .join("")
  )

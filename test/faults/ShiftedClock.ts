/**
 * A module that Node loads before Till (`node --import`): it shifts the wall clock by the milliseconds in the file that
 * `FAULTS_CLOCK` names. The monotonic clock is not changed, as when an operator sets a machine's clock.
 */
import * as fs from "node:fs"

const LOOK_MILLIS = 20
const file = process.env["FAULTS_CLOCK"]
const RealDate = Date
let offset = 0

const look = () => {
  if (file !== undefined) offset = Number(fs.readFileSync(file, "utf8"))
}
look()
setInterval(look, LOOK_MILLIS).unref()

class ShiftedDate extends RealDate {
  constructor(...parameters: [] | [string | number | Date]) {
    // A date with parameters is not shifted.
    if (parameters.length === 0) super(RealDate.now() + offset)
    else super(...(parameters as [string]))
  }

  static override now(): number {
    return RealDate.now() + offset
  }
}

globalThis.Date = ShiftedDate as DateConstructor

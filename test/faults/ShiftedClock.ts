/**
 * Loaded into Till before everything else (`node --import`): the wall clock is off by as many milliseconds as the file
 * says that `FAULTS_CLOCK` names. The monotonic clock is not touched, as when somebody sets a machine's clock.
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
    // A date that is made of something is what that says.
    if (parameters.length === 0) super(RealDate.now() + offset)
    else super(...(parameters as [string]))
  }

  static override now(): number {
    return RealDate.now() + offset
  }
}

globalThis.Date = ShiftedDate as DateConstructor

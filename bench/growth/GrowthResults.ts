/** The measurements of the bench of growth, which `results/growth.json` holds with the goals. */
import type { TailLatency } from "../load/Percentiles.ts"
import type { Machine } from "../Machine.ts"
import type { Round } from "../Results.ts"

/** Creates in the grown account and on an empty database, in rounds that take turns. */
export interface GrownPair {
  readonly grown: Round
  readonly empty: Round
}

/** Size of a table on the disk, indexes included. */
export interface TableSize {
  readonly table: string
  readonly rowBytes: number
  readonly indexBytes: number
}

export interface Restart {
  /** Milliseconds from the start of the process, after a kill, to its first good answer. */
  readonly readyMillis: number
  /** Milliseconds from then to the answer of the first create in the grown account. */
  readonly firstCreateMillis: number
}

export interface GrowthResults {
  readonly at: string
  readonly machine: Machine
  /** PaymentIntents, each created by a request of its own. */
  readonly objects: number
  /** Accounts over which they are spread evenly. */
  readonly accounts: number
  /** Creates per second while filling, in parts of equal length. */
  readonly fillPerSecond: ReadonlyArray<number>
  /** Resident memory of the process that created all objects. */
  readonly residentBytesFilled?: number
  /** Resident memory of a process that started on them, after the rounds' creates. */
  readonly residentBytesStarted?: number
  /** Resident memory of a process with an empty database, after the rounds' creates. */
  readonly residentBytesEmpty?: number
  readonly sizes: ReadonlyArray<TableSize>
  readonly restarts: ReadonlyArray<Restart>
  /** The longest wait of a request, in milliseconds, while one of two runners stopped under load. */
  readonly takeoverMillis: number
  /** Rounds by start. */
  readonly starts: ReadonlyArray<ReadonlyArray<GrownPair>>
  /** Reads over one connection of objects that are not in Till's memory. */
  readonly retrieve: TailLatency
  readonly list: TailLatency
  readonly records: number
  readonly verifySeconds: number
}

/** The bench of growth has measured this. `results/growth.json` is exactly this, and the goals. */
import type { TailLatency } from "../load/Percentiles.ts"
import type { Machine } from "../Machine.ts"
import type { Round } from "../Results.ts"

/** Creates in the grown account, and on an empty database, in rounds that took turns. */
export interface GrownPair {
  readonly grown: Round
  readonly empty: Round
}

/** What a table takes on the disk, its indexes included. */
export interface TableSize {
  readonly table: string
  readonly rowBytes: number
  readonly indexBytes: number
}

export interface Restart {
  /** From the start of the process, killed before, to its first good answer. */
  readonly readyMillis: number
  /** The first create in the grown account takes so long after that. */
  readonly firstCreateMillis: number
}

export interface GrowthResults {
  readonly at: string
  readonly machine: Machine
  /** PaymentIntents, each made by a request of its own. */
  readonly objects: number
  /** They are spread over so many evenly. */
  readonly accounts: number
  /** Creates per second while they were made, in parts of equal length. */
  readonly fillPerSecond: ReadonlyArray<number>
  /** Memory of the process that has made them all. */
  readonly residentBytesFilled?: number
  /** Memory of one that has been started on them and made as many as the rounds have. */
  readonly residentBytesStarted?: number
  /** The same of one with an empty database. */
  readonly residentBytesEmpty?: number
  readonly sizes: ReadonlyArray<TableSize>
  readonly restarts: ReadonlyArray<Restart>
  /** The longest wait of a request, in milliseconds, while one of two runners on them was stopped under load. */
  readonly takeoverMillis: number
  /** By start of both. */
  readonly starts: ReadonlyArray<ReadonlyArray<GrownPair>>
  /** One connection; what is asked for is not in Till's memory. */
  readonly retrieve: TailLatency
  readonly list: TailLatency
  readonly records: number
  readonly verifySeconds: number
}

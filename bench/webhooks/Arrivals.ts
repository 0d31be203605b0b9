/** Notes when the first attempt of each delivery arrived. Later attempts are counted apart and change nothing. */
import type { Delivery } from "./Delivery.ts"

export interface ArrivalsRecord {
  /** By endpoint and by number of the request: microseconds of the shared clock, 0 if nothing has arrived. */
  readonly firstMicros: ReadonlyArray<Float64Array>
  /** Deliveries that arrived again. */
  readonly repeated: number
  /** Deliveries of other loads or to other endpoints than those recorded. */
  readonly stray: number
}

const ROOM_FIRST = 1 << 14

export class Arrivals {
  readonly #run: string
  readonly #first: Array<Float64Array>
  #distinct = 0
  #repeated = 0
  #stray = 0

  constructor(run: string, endpoints: number) {
    this.#run = run
    this.#first = Array.from({ length: endpoints }, () => new Float64Array(ROOM_FIRST))
  }

  /** Deliveries that have arrived, each counted once. */
  get distinct(): number {
    return this.#distinct
  }

  add({ endpoint, request, run }: Delivery, atMicros: number): void {
    const first = this.#first[endpoint]
    if (run !== this.#run || first === undefined) {
      this.#stray++
      return
    }
    const times = request < first.length ? first : this.#grow(endpoint, first, request)
    if (times[request] !== 0) {
      this.#repeated++
      return
    }
    times[request] = atMicros
    this.#distinct++
  }

  record(): ArrivalsRecord {
    return { firstMicros: this.#first, repeated: this.#repeated, stray: this.#stray }
  }

  #grow(endpoint: number, times: Float64Array, request: number): Float64Array {
    const larger = new Float64Array(Math.max(times.length * 2, request + 1))
    larger.set(times)
    this.#first[endpoint] = larger
    return larger
  }
}

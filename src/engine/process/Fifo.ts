/** A queue. An array's own `shift` moves all other elements, of which there may be thousands. */
export class Fifo<A> {
  #entries: Array<A> = []
  #first = 0

  get size(): number {
    return this.#entries.length - this.#first
  }

  get first(): A | undefined {
    return this.#entries[this.#first]
  }

  push(entry: A): void {
    this.#entries.push(entry)
  }

  /** Removes and returns the first entry, which must exist. */
  shift(): A {
    const entry = this.#entries[this.#first++]!
    if (this.#first * 2 >= this.#entries.length) {
      this.#entries = this.#entries.slice(this.#first)
      this.#first = 0
    }
    return entry
  }
}

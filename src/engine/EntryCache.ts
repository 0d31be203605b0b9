/**
 * The bounded memory of an actor: the newest state of some keyed entries, least recently used first.
 *
 * - An entry that is not projected yet is pinned: the views cannot give it back.
 * - Loads of one entry are shared. A load that a write overtook is thrown away and done again, because its row may be
 *   older than the write even if the write has been evicted meanwhile.
 */
import { Deferred, Effect, Exit } from "effect"

export class EntryCache<Entry extends { readonly version: number }, E> {
  readonly #entries = new Map<string, Entry>()
  readonly #loads = new Map<string, Deferred.Deferred<Entry | undefined, E>>()

  get size(): number {
    return this.#entries.size
  }

  get(id: string): Entry | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined) return undefined
    this.#entries.delete(id)
    this.#entries.set(id, entry)
    return entry
  }

  set(id: string, entry: Entry): void {
    this.#loads.delete(id)
    this.#entries.delete(id)
    this.#entries.set(id, entry)
  }

  /** The entry, from memory or by `fetch`; undefined if there is none. */
  load(id: string, fetch: Effect.Effect<Entry | undefined, E>): Effect.Effect<Entry | undefined, E> {
    return Effect.suspend(() => {
      const entry = this.get(id)
      if (entry !== undefined) return Effect.succeed(entry)
      const running = this.#loads.get(id)
      return running === undefined ? this.#load(id, fetch) : Deferred.await(running)
    })
  }

  #load(id: string, fetch: Effect.Effect<Entry | undefined, E>): Effect.Effect<Entry | undefined, E> {
    const load = Deferred.makeUnsafe<Entry | undefined, E>()
    this.#loads.set(id, load)
    const loading = Effect.flatMap(Effect.exit(fetch), (exit) => {
      if (this.#loads.get(id) === load) {
        this.#loads.delete(id)
        if (Exit.isSuccess(exit) && exit.value !== undefined) this.#entries.set(id, exit.value)
        return exit
      }
      return this.load(id, fetch)
    })
    return Effect.uninterruptible(Effect.onExit(loading, (exit) => Effect.sync(() => Deferred.doneUnsafe(load, exit))))
  }

  /** Evicts the least recently used entries beyond `capacity`, but none that is newer than `projected`. */
  trim(capacity: number, projected: number): void {
    let excess = this.#entries.size - capacity
    if (excess <= 0) return
    let pinned = 0
    for (const [id, entry] of this.#entries) {
      if (entry.version <= projected) {
        this.#entries.delete(id)
        if (--excess === 0) return
      } else if (++pinned === 64) return // what is pinned is recent: evictable entries are rare from here on
    }
  }
}

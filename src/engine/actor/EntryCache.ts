/**
 * An actor's bounded cache: the newest state of some keyed entries, in two generations. A hit costs one look-up, and
 * eviction removes entries that were not used for a while.
 *
 * - An entry that is not projected yet is pinned, because the views do not have it.
 * - Loads of one entry are shared. A load overtaken by a write is discarded and repeated: its row may be older than the
 *   write, even if the write was evicted before the load ended.
 */
import { Deferred, Effect, Exit } from "effect"

/** Limits of a cache. Weights are in approximate bytes. */
export interface Bounds<Entry> {
  /** Weight of an entry; always the same. */
  readonly weightOf: (entry: Entry) => number
  /** Weight to keep, not counting pinned entries. */
  readonly capacity: () => number
  /** Version up to which the views have the entries. */
  readonly projected: () => number
}

export class EntryCache<Entry extends { readonly version: number }, E> {
  /** Entries used since the generations last changed. */
  #young = new Map<string, Entry>()
  #youngWeight = 0
  /** Entries of the generation before. If an entry is in both, the young one is valid. */
  #old = new Map<string, Entry>()
  #oldWeight = 0
  readonly #loads = new Map<string, Deferred.Deferred<Entry | undefined, E>>()
  readonly #bounds: Bounds<Entry>

  constructor(bounds: Bounds<Entry>) {
    this.#bounds = bounds
  }

  get weight(): number {
    return this.#youngWeight + this.#oldWeight
  }

  get(id: string): Entry | undefined {
    const young = this.#young.get(id)
    if (young !== undefined) return young
    const old = this.#old.get(id)
    if (old !== undefined) this.#keep(id, old)
    return old
  }

  set(id: string, entry: Entry): void {
    if (this.#loads.size > 0) this.#loads.delete(id)
    const before = this.#young.get(id)
    if (before !== undefined) this.#youngWeight -= this.#bounds.weightOf(before)
    this.#keep(id, entry)
  }

  drop(id: string): void {
    this.#loads.delete(id)
    const { weightOf } = this.#bounds
    const young = this.#young.get(id)
    if (young !== undefined && this.#young.delete(id)) this.#youngWeight -= weightOf(young)
    const old = this.#old.get(id)
    if (old !== undefined && this.#old.delete(id)) this.#oldWeight -= weightOf(old)
  }

  /** Adds an entry that was read elsewhere and that no write has overtaken, unless it is here or being loaded. */
  offer(id: string, entry: Entry): void {
    if (this.#loads.has(id) || this.get(id) !== undefined) return
    this.#keep(id, entry)
    this.trim()
  }

  #keep(id: string, entry: Entry): void {
    this.#young.set(id, entry)
    this.#youngWeight += this.#bounds.weightOf(entry)
  }

  /** Removes all entries, also pinned ones. Running loads are repeated. */
  clear(): void {
    this.#young = new Map()
    this.#old = new Map()
    this.#youngWeight = this.#oldWeight = 0
    this.#loads.clear()
  }

  load(id: string, fetch: Effect.Effect<Entry | undefined, E>): Effect.Effect<Entry | undefined, E> {
    return Effect.suspend(() => {
      const entry = this.get(id)
      return entry === undefined ? this.#loadOnce(id, fetch) : Effect.succeed(entry)
    })
  }

  /** Joins the running load, or starts one; uninterruptible between announcing a load and running it. */
  #loadOnce(id: string, fetch: Effect.Effect<Entry | undefined, E>): Effect.Effect<Entry | undefined, E> {
    return Effect.uninterruptibleMask((restore) => {
      const running = this.#loads.get(id)
      if (running !== undefined) return restore(Deferred.await(running))
      const entry = this.get(id)
      return entry === undefined ? this.#load(id, fetch) : Effect.succeed(entry)
    })
  }

  #load(id: string, fetch: Effect.Effect<Entry | undefined, E>): Effect.Effect<Entry | undefined, E> {
    const load = Deferred.makeUnsafe<Entry | undefined, E>()
    this.#loads.set(id, load)
    const loading = Effect.flatMap(Effect.exit(fetch), (exit) => {
      if (this.#loads.get(id) === load) {
        this.#loads.delete(id)
        if (Exit.isSuccess(exit) && exit.value !== undefined) this.#keep(id, exit.value)
        this.trim()
        return exit
      }
      return this.load(id, fetch)
    })
    return Effect.onExit(loading, (exit) => Effect.sync(() => Deferred.doneUnsafe(load, exit)))
  }

  /** Once the young generation fills half of the capacity, it becomes the old one, and the old one is evicted. */
  trim(): void {
    if (this.#youngWeight < this.#bounds.capacity() / 2) return
    const projected = this.#bounds.projected()
    for (const [id, entry] of this.#old) {
      if (entry.version > projected && !this.#young.has(id)) this.#keep(id, entry)
    }
    this.#old = this.#young
    this.#oldWeight = this.#youngWeight
    this.#young = new Map()
    this.#youngWeight = 0
  }
}

/**
 * The bounded memory of an actor: the newest state of some keyed entries, in two generations, so that a hit costs one
 * look-up and eviction takes what was not used for a while.
 *
 * - An entry that is not projected yet is pinned: the views cannot give it back.
 * - Loads of one entry are shared. A load that a write overtook is thrown away and done again, because its row may be
 *   older than the write even if the write has been evicted meanwhile.
 */
import { Deferred, Effect, Exit } from "effect"

/** `Bounds` limit a cache. Weights are rough, in bytes. */
export interface Bounds<Entry> {
  /** Says what an entry takes up; the same each time. */
  readonly weightOf: (entry: Entry) => number
  /** Says how much to keep, beyond what must be kept. */
  readonly capacity: () => number
  /** Version up to which the views can give entries back. */
  readonly projected: () => number
}

export class EntryCache<Entry extends { readonly version: number }, E> {
  /** Used since the last turn. */
  #young = new Map<string, Entry>()
  #youngWeight = 0
  /** From before it. What is young as well counts as it is there. */
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

  /** Forgets an entry. A load of it under way is done again. */
  drop(id: string): void {
    this.#loads.delete(id)
    const { weightOf } = this.#bounds
    const young = this.#young.get(id)
    if (young !== undefined && this.#young.delete(id)) this.#youngWeight -= weightOf(young)
    const old = this.#old.get(id)
    if (old !== undefined && this.#old.delete(id)) this.#oldWeight -= weightOf(old)
  }

  /** Takes an entry that was read elsewhere, and that no write has overtaken. What is here, or comes anyway, stays. */
  offer(id: string, entry: Entry): void {
    if (this.#loads.has(id) || this.get(id) !== undefined) return
    this.#keep(id, entry)
    this.trim()
  }

  /** Makes an entry young, if it is not. */
  #keep(id: string, entry: Entry): void {
    this.#young.set(id, entry)
    this.#youngWeight += this.#bounds.weightOf(entry)
  }

  /** Forgets everything, pinned or not. Loads under way are done again. */
  clear(): void {
    this.#young = new Map()
    this.#old = new Map()
    this.#youngWeight = this.#oldWeight = 0
    this.#loads.clear()
  }

  /** The entry, from memory or by `fetch`; undefined if there is none. */
  load(id: string, fetch: Effect.Effect<Entry | undefined, E>): Effect.Effect<Entry | undefined, E> {
    return Effect.suspend(() => {
      const entry = this.get(id)
      return entry === undefined ? this.#loadOnce(id, fetch) : Effect.succeed(entry)
    })
  }

  /** Joins the load under way, or starts one; nothing may come between announcing a load and carrying it out. */
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

  /** Once the young fill half of the capacity, they become the old, and what was old and not used since is evicted. */
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

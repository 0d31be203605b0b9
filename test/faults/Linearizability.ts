/**
 * Linearizability of one object's history: is there an order of its operations, each at a moment between its call and
 * its return, in which a sequential model gives all the answers? The search is Wing and Gong's, with Lowe's cache of
 * visited configurations: the set of completed operations, and the state. Histories are of one object, so they are
 * small.
 *
 * An operation with an unknown outcome has no return. It may have taken effect at any moment after its call, or never.
 */

export interface Timed<Op> {
  readonly op: Op
  readonly call: number
  /** Infinity if the outcome is unknown. */
  readonly return: number
}

export interface Model<State, Op> {
  readonly initial: State
  /** The state after the operation; undefined if the operation cannot have this answer in this state. */
  readonly step: (state: State, op: Op) => State | undefined
  /** Equal states have equal names. */
  readonly nameOf: (state: State) => string
}

export interface Refutation<Op> {
  /** The longest order that was found. */
  readonly longest: ReadonlyArray<Op>
  /** The operations of which one would have to be next, and none can be. */
  readonly stuck: ReadonlyArray<Op>
}

/** Steps after which the search gives up and reports that, to bound the time of a run. */
const STEPS_MAX = 2_000_000

export class SearchExceeded extends Error {}

/** Returns undefined for a linearizable history, or the place where it is not. */
export const refute = <State, Op>(
  model: Model<State, Op>,
  history: ReadonlyArray<Timed<Op>>
): Refutation<Op> | undefined => {
  const entries = history.toSorted((a, b) => a.call - b.call)
  const required = entries.filter((entry) => entry.return !== Infinity).length
  const done = Array.from({ length: entries.length }, () => false)
  const order: Array<number> = []
  const tried = new Set<string>()
  let [steps, longest, stuck]: [number, Array<number>, Array<number>] = [0, [], []]

  const candidates = (): Array<number> => {
    const open = entries.flatMap((_, i) => (done[i] ? [] : [i]))
    const deadline = Math.min(...open.map((i) => entries[i]!.return))
    return open.filter((i) => entries[i]!.call <= deadline)
  }

  const search = (state: State, answered: number): boolean => {
    if (answered === required) return true
    if (++steps > STEPS_MAX) throw new SearchExceeded(`No verdict after ${STEPS_MAX} steps`)
    const name = `${done.map((is) => (is ? 1 : 0)).join("")} ${model.nameOf(state)}`
    if (tried.has(name)) return false
    tried.add(name)
    const open = candidates()
    if (order.length >= longest.length) [longest, stuck] = [[...order], open]
    for (const i of open) {
      const { op, return: until } = entries[i]!
      const next = model.step(state, op)
      if (next === undefined) continue
      done[i] = true
      order.push(i)
      if (search(next, answered + (until === Infinity ? 0 : 1))) return true
      order.pop()
      done[i] = false
    }
    return false
  }

  if (search(model.initial, 0)) return undefined
  const opsOf = (indexes: ReadonlyArray<number>) => indexes.map((i) => entries[i]!.op)
  return { longest: opsOf(longest), stuck: opsOf(stuck) }
}

/**
 * How the memory of the engine is shared: every owner may have an equal share, and more as long as the others leave room.
 * So one busy account among many quiet ones keeps what it uses, and gives it back when the others get busy.
 *
 * An owner that had more than it may have now keeps that until it is used again, or ends.
 */

/** Answers how much an owner may have. */
export const makeShares = <Owner extends object>(
  capacity: number,
  owners: ReadonlyMap<string, Owner>,
  weightOf: (owner: Owner) => number
): ((owner: Owner) => number) => {
  let known = new WeakMap<Owner, number>()
  let used = 0
  let asked = Infinity
  // Who has ended is noticed once per round of owners: with many of them, every time would cost more than it is worth.
  const countAll = () => {
    known = new WeakMap()
    used = asked = 0
    for (const owner of owners.values()) count(owner)
  }
  const count = (owner: Owner): number => {
    const own = weightOf(owner)
    used += own - (known.get(owner) ?? 0)
    known.set(owner, own)
    return own
  }
  return (owner) => {
    if (++asked >= owners.size) countAll()
    const own = count(owner)
    const others = used - own
    return Math.max(Math.ceil(capacity / Math.max(owners.size, 1)), capacity - others)
  }
}

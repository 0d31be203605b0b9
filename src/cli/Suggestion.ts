/** Suggestions for words that a person may have mistyped. */

/** The greatest distance of a suggestion: letters to add, to remove, to replace or to swap. */
const DISTANCE_MAX = 2

/** Counts the letters to add, to remove, to replace, or to swap with their neighbour. */
const distanceOf = (a: string, b: string): number => {
  let beforeLast: ReadonlyArray<number> = []
  let last: ReadonlyArray<number> = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1]
      const replaced = last[column - 1]! + (isSame ? 0 : 1)
      let least = Math.min(last[column]! + 1, current[column - 1]! + 1, replaced)
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        least = Math.min(least, beforeLast[column - 2]! + 1)
      }
      current.push(least)
    }
    beforeLast = last
    last = current
  }
  return last.at(-1)!
}

/** Returns the words that are nearest to a mistyped one, or begin with it; none if all are far. */
const nearest = (word: string, words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const distances = words.map((candidate) => ({ candidate, distance: distanceOf(word, candidate) }))
  const least = Math.min(...distances.map(({ distance }) => distance))
  const isNear = least <= DISTANCE_MAX && least < word.length
  const near = isNear ? distances.filter(({ distance }) => distance === least) : []
  return near.length > 0
    ? near.map(({ candidate }) => candidate)
    : words.filter((candidate) => word.length > 1 && candidate.startsWith(word))
}

/** Returns `; did you mean charges?`, with up to three words; empty without a suggestion. */
export const didYouMean = (word: string, words: ReadonlyArray<string>): string => {
  const near = nearest(word, words).slice(0, 3)
  return near.length === 0 ? "" : `; did you mean ${near.join(" or ")}?`
}

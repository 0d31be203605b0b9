/** Lets others wait until something is so. Whoever changes what they look at tells them. */
import { Effect } from "effect"

export interface Until {
  readonly until: (isSo: () => boolean) => Effect.Effect<void>
  readonly changed: () => void
}

export const make = (): Until => {
  const lookers = new Set<() => void>()
  return {
    until: (isSo) =>
      Effect.callback((resume) => {
        const look = () => {
          if (!isSo()) return
          lookers.delete(look)
          resume(Effect.void)
        }
        lookers.add(look)
        look()
        return Effect.sync(() => lookers.delete(look))
      }),
    changed: () => {
      for (const look of lookers) look()
    }
  }
}

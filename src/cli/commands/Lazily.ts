/** Loads the work of a command when it runs, so that no command waits for the modules of another. */
import { Effect } from "effect"

/** Runs an effect of a module that a command's handler imports. */
export const lazily = <Module, A, E, R>(
  module: Promise<Module>,
  use: (module: Module) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.flatMap(
    Effect.promise(() => module),
    use
  )

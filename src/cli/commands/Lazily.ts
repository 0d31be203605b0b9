/** Loads the work of a command when it runs, so that no command waits for the modules of another. */
import { Effect } from "effect"

/** Loads a module, then runs an effect of it. */
export const lazily = <Module, A, E, R>(
  load: () => Promise<Module>,
  use: (module: Module) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => Effect.flatMap(Effect.promise(load), use)

/**
 * Gives programs that import `typescript` the last version with the JavaScript API, under the name `typescript-5`:
 * generators of clients print their code with it.
 */
import { registerHooks } from "node:module"

registerHooks({
  resolve: (specifier, context, nextResolve) =>
    nextResolve(specifier === "typescript" ? import.meta.resolve("typescript-5") : specifier, context)
})

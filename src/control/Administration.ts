/**
 * Commands on the merchants and keys of an installation (semantics A7, A8, V3), whether its service runs or not.
 *
 * A running service carries them out itself. Where none is running, this process opens the installation and takes its
 * place.
 */
import { Context, Effect, Layer, Option } from "effect"
import type { Accounts } from "../engine/Accounts.ts"
import type { Answer, Command } from "../payments/Administration.ts"
import { AdministrationFailed, administer } from "../payments/Administration.ts"
import { ask, type Installation } from "./ControlSocket.ts"

/** The accounts of an installation that nobody serves. Both fail if somebody does after all. */
export interface AccountsInPlace {
  readonly ofExisting: Layer.Layer<Accounts, Error>
  /** Makes the installation if it is not there. */
  readonly ofAny: Layer.Layer<Accounts, Error>
}

export class Administration extends Context.Service<
  Administration,
  { readonly carryOut: (command: Command) => Effect.Effect<Answer, AdministrationFailed> }
>()("till/control/Administration") {
  static readonly layer = (installation: Installation, inPlace: AccountsInPlace): Layer.Layer<Administration> =>
    Layer.succeed(Administration, {
      carryOut: Effect.fnUntraced(function* (command) {
        const answered = yield* ask(installation, command)
        if (Option.isSome(answered)) return answered.value
        if (command._tag === "LinkToDashboard") {
          return yield* new AdministrationFailed({ message: "Till is not running here: start it, and ask again." })
        }
        return yield* administer(command).pipe(
          Effect.catchTag("Unavailable", ({ reason: message }) => new AdministrationFailed({ message })),
          // A merchant may be made before the first start; everything else is about what is there.
          Effect.provide(command._tag === "CreateMerchant" ? inPlace.ofAny : inPlace.ofExisting),
          Effect.mapError(({ message }) => new AdministrationFailed({ message }))
        )
      })
    })
}

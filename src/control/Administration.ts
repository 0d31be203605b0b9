/**
 * Commands on the merchants and keys of an installation (semantics keys.cli, keys.roll, versions.default), whether its
 * service runs or not.
 *
 * A running service executes them itself. If none is running, this process opens the installation and executes them in
 * the service's place.
 */
import { Context, Effect, Layer, Option } from "effect"
import type { Accounts } from "../engine/Accounts.ts"
import {
  administer,
  type Administered,
  AdministrationFailed,
  NOT_RUNNING,
  type OperatorCommand
} from "../payments/administration/Administration.ts"
import { type Installation, send } from "./ControlSocket.ts"

/** Commands whose work only a service does. */
const NEEDS_SERVICE = [
  "ListOperations",
  "ShowOperation",
  "CheckOperation",
  "DecideOperation",
  "AddProcessor",
  "UpdateProcessor",
  "CheckProcessor",
  "ReconcileProcessor",
  "LinkToDashboard",
  "EraseCustomer",
  "ErasePerson"
] as const
type NeedsService = OperatorCommand & { readonly _tag: (typeof NEEDS_SERVICE)[number] }

const needsService = (command: OperatorCommand): command is NeedsService =>
  NEEDS_SERVICE.some((tag) => tag === command._tag)

/** The accounts of an installation without a running service. Both layers fail if a service is running after all. */
export interface AccountsInPlace {
  readonly ofExisting: Layer.Layer<Accounts, Error>
  /** Creates the installation if it does not exist. */
  readonly ofAny: Layer.Layer<Accounts, Error>
}

export class Administration extends Context.Service<
  Administration,
  { readonly carryOut: (command: OperatorCommand) => Effect.Effect<Administered, AdministrationFailed> }
>()("till/control/Administration") {
  static readonly layer = (installation: Installation, inPlace: AccountsInPlace): Layer.Layer<Administration> =>
    Layer.succeed(Administration, {
      carryOut: Effect.fnUntraced(function* (command) {
        const answered = yield* send(installation, command)
        if (Option.isSome(answered)) return answered.value
        if (needsService(command)) return yield* new AdministrationFailed({ message: NOT_RUNNING })
        return yield* administer(command).pipe(
          Effect.catchTag("Unavailable", ({ reason: message }) => new AdministrationFailed({ message })),
          // A merchant may be created before the first start; all other commands need an existing installation.
          Effect.provide(command._tag === "CreateMerchant" ? inPlace.ofAny : inPlace.ofExisting),
          Effect.mapError(({ message }) => new AdministrationFailed({ message }))
        )
      })
    })
}

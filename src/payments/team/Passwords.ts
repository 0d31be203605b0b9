/**
 * Storage of passwords: salted, hashed with scrypt, and encrypted with the installation's key for one person, so that
 * the database alone does not allow guessing and no hash can be moved to another person.
 *
 * People of several merchants can share an email address (semantics dashboard.people). The salt is derived from the
 * address and the installation's key, so one hash compares a password with all of them: an attempt costs the same time
 * and memory whether no person or a hundred have the address.
 *
 * A hash takes 32 MiB and a tenth of a second of a core, on Node's thread pool. So only a few are computed at a time,
 * and an attempt fails while too many wait: a flood of sign-ins takes no memory from payments.
 */
import { createHmac, scrypt, type ScryptOptions, timingSafeEqual } from "node:crypto"
import { Context, Effect, Layer, Redacted, Semaphore } from "effect"
import { Unavailable } from "../../engine/Accounts.ts"
import { PaymentsConfig, type PaymentsConfigShape } from "../shared/PaymentsConfig.ts"
import { open, reseal, seal, type Sealing } from "../shared/Sealing.ts"
import { logOf } from "../../engine/process/Log.ts"

const log = logOf("payments")

/** OWASP's parameters for 32 MiB. A hash made with other parameters is still checked with those. */
const COST = 2 ** 15
const BLOCK_SIZE = 8
const PARALLELIZATION = 3
/** Node's memory limit for scrypt, in bytes; a hash takes 128 × cost × block size. */
const MEMORY_BYTES_MAX = 64 * 2 ** 20
const HASH_BYTES = 32
/** Hashes computed at a time. Node has four threads for hashes and files. */
const AT_ONCE = 2
/** Hashes that can wait: about two seconds of work. */
const WAITING_MAX = 16

/** `cost$block size$parallelization$hash`, sealed. */
export type PasswordHash = string

export interface Candidate {
  readonly id: string
  readonly hidden: { readonly password: PasswordHash | null }
}

export interface PasswordsShape {
  /** Hashes a person's password for storage. Fails with `Unavailable` while too many wait. */
  readonly hash: (
    of: { readonly person: string; readonly email: string },
    password: string
  ) => Effect.Effect<PasswordHash, Unavailable>
  /**
   * Returns the people with this address whose password it is. Takes the same time for any number of people, including
   * none, so the time does not reveal whether there is such a person. Fails with `Unavailable` while too many wait.
   */
  readonly ownersOf: <P extends Candidate>(
    email: string,
    password: string,
    people: ReadonlyArray<P>
  ) => Effect.Effect<ReadonlyArray<P>, Unavailable>
}

type Keys = Pick<PaymentsConfigShape, "keyring" | "saltKey">

export class Passwords extends Context.Service<Passwords, PasswordsShape>()("till/payments/Passwords") {
  /** Hashes at this cost, a power of two. Lower costs are for tests. */
  static readonly layer = (cost: number = COST): Layer.Layer<Passwords, never, PaymentsConfig> =>
    Layer.effect(
      Passwords,
      Effect.gen(function* () {
        const config = yield* PaymentsConfig
        const usual = [cost, BLOCK_SIZE, PARALLELIZATION].join("$")
        const turns = yield* Semaphore.make(AT_ONCE)
        let waiting = 0
        const inTurn = <A>(make: Effect.Effect<A>): Effect.Effect<A, Unavailable> =>
          Effect.suspend(() => {
            if (waiting >= WAITING_MAX + AT_ONCE) {
              return Effect.fail(new Unavailable({ reason: "Too many people sign in at once." }))
            }
            waiting++
            return Effect.ensuring(
              turns.withPermits(1)(make),
              Effect.sync(() => waiting--)
            )
          })
        return {
          hash: ({ email, person }, password) =>
            inTurn(
              Effect.map(derive(config, email, password, usual), (hash) =>
                seal(sealingOf(config, person), `${usual}$${hash.toString("base64url")}`)
              )
            ),
          ownersOf: (email, password, people) => inTurn(findOwners(config, email, password, people, usual))
        }
      })
    )
}

const sealingOf = ({ keyring }: Pick<Keys, "keyring">, person: string): Sealing => ({
  keyring,
  purpose: `password ${person}`
})

/** Seals a hash anew that is under an older secret; undefined for one that is not (semantics operation.roll). */
export const resealed = (
  config: Pick<Keys, "keyring">,
  { hidden: { password }, id }: Candidate
): PasswordHash | undefined => (password === null ? undefined : reseal(sealingOf(config, id), password))

const saltOf = ({ saltKey }: Keys, email: string): Buffer =>
  createHmac("sha256", Redacted.value(saltKey)).update(email.toLowerCase()).digest()

/** Hashes a normalized password with `parameters`: cost, block size and parallelization. */
const derive = (config: Keys, email: string, password: string, parameters: string): Effect.Effect<Buffer> =>
  Effect.callback((resume) => {
    const [N, r, p] = parameters.split("$").map(Number) as [number, number, number]
    const options: ScryptOptions = { N, r, p, maxmem: MEMORY_BYTES_MAX }
    scrypt(password.normalize("NFKC"), saltOf(config, email), HASH_BYTES, options, (error, hash) =>
      resume(error === null ? Effect.succeed(hash) : Effect.die(error))
    )
  })

interface Kept<P> {
  readonly person: P
  readonly parameters: string
  readonly hash: Buffer
}

/** Decrypts a person's stored hash. A hash encrypted for another person matches no password. */
const keptOf = <P extends Candidate>(config: Keys, person: P): Effect.Effect<ReadonlyArray<Kept<P>>> => {
  const { password } = person.hidden
  if (password === null) return Effect.succeed([])
  try {
    const text = open(sealingOf(config, person.id), password)
    const end = text.lastIndexOf("$")
    const hash = Buffer.from(text.slice(end + 1), "base64url")
    return Effect.succeed([{ person, parameters: text.slice(0, end), hash }])
  } catch {
    return Effect.as(
      log.error(`The password of ${person.id} was changed in the database`, undefined, { cause: "changed password" }),
      []
    )
  }
}

/** Compares a password with all people's hashes: one computation per set of parameters, and one for no people. */
const findOwners = Effect.fnUntraced(function* <P extends Candidate>(
  config: Keys,
  email: string,
  password: string,
  people: ReadonlyArray<P>,
  usual: string
) {
  const kept = (yield* Effect.forEach(people, (person) => keptOf(config, person))).flat()
  const parameters = new Set(kept.length === 0 ? [usual] : kept.map(({ parameters }) => parameters))
  const hashes = new Map<string, Buffer>()
  for (const some of parameters) hashes.set(some, yield* derive(config, email, password, some))
  return kept
    .filter(({ hash, parameters }) => timingSafeEqual(hash, hashes.get(parameters)!))
    .map(({ person }) => person)
})

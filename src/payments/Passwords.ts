/**
 * Passwords as they are kept: salted, hashed by scrypt, and sealed with the installation's own key, so that the
 * database alone is of no use to whoever guesses.
 *
 * A hash takes 32 MiB and a tenth of a second of a core, on Node's own threads. So only a few are made at a time, and
 * whoever comes while too many wait is told to come again: no flood of sign-ins takes memory from payments.
 */
import type { ScryptOptions } from "node:crypto"
import { randomBytes, scrypt, timingSafeEqual } from "node:crypto"
import { Context, Effect, Layer, Semaphore } from "effect"
import { Unavailable } from "../engine/Accounts.ts"
import type { PaymentsConfigShape } from "./PaymentsConfig.ts"
import { PaymentsConfig } from "./PaymentsConfig.ts"
import { open, seal } from "./Sealing.ts"

/** OWASP's choice for 32 MiB. What was hashed with others is still checked with those. */
const COST = 2 ** 15
const BLOCK_SIZE = 8
const PARALLELIZATION = 3
/** Node wants to be told that so much memory is meant, in bytes; scrypt takes 128 × cost × block size. */
const MEMORY_BYTES_MAX = 64 * 2 ** 20
const SALT_BYTES = 16
const HASH_BYTES = 32
/** So many hashes are made at a time. Node has four threads for them and for files. */
const AT_ONCE = 2
/** So many more may wait: two seconds' worth. */
const WAITING_MAX = 16

/** `cost$block size$parallelization$salt$hash`, sealed. */
export type PasswordHash = string

export interface PasswordsShape {
  /** Makes of a password what is kept of it. Fails with `Unavailable` while too many wait. */
  readonly hash: (password: string) => Effect.Effect<PasswordHash, Unavailable>
  /**
   * Tells whether this is the password. With no hash, it takes as long and is false, so that nobody learns from the
   * time whether there is such a person. Fails with `Unavailable` while too many wait.
   */
  readonly verify: (password: string, hash: PasswordHash | null) => Effect.Effect<boolean, Unavailable>
}

export class Passwords extends Context.Service<Passwords, PasswordsShape>()("till/payments/Passwords") {
  /** Hashes at this cost, a power of two. What has one hashed faster is for tests. */
  static readonly layer = (cost: number = COST): Layer.Layer<Passwords, never, PaymentsConfig> =>
    Layer.effect(
      Passwords,
      Effect.gen(function* () {
        const config = yield* PaymentsConfig
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
          hash: (password) => inTurn(Effect.map(made(cost, password), (text) => seal(sealingOf(config), text))),
          verify: (password, hash) =>
            inTurn(verified(cost, password, hash === null ? null : open(sealingOf(config), hash)))
        }
      })
    )
}

const sealingOf = ({ sealingKey }: Pick<PaymentsConfigShape, "sealingKey">) => ({
  key: sealingKey,
  purpose: "password"
})

/** Two keyboards may write the same letter in two ways. */
const derive = (password: string, salt: Buffer, options: ScryptOptions): Effect.Effect<Buffer> =>
  Effect.callback((resume) => {
    scrypt(password.normalize("NFKC"), salt, HASH_BYTES, { ...options, maxmem: MEMORY_BYTES_MAX }, (error, hash) =>
      resume(error === null ? Effect.succeed(hash) : Effect.die(error))
    )
  })

const made = (cost: number, password: string): Effect.Effect<string> => {
  const salt = randomBytes(SALT_BYTES)
  return Effect.map(derive(password, salt, { N: cost, r: BLOCK_SIZE, p: PARALLELIZATION }), (hash) =>
    [cost, BLOCK_SIZE, PARALLELIZATION, salt.toString("base64url"), hash.toString("base64url")].join("$")
  )
}

const verified = (usual: number, password: string, kept: string | null): Effect.Effect<boolean> => {
  if (kept === null) return Effect.as(made(usual, password), false)
  const [cost, blockSize, parallelization, salt, hash] = kept.split("$") as [string, string, string, string, string]
  const options = { N: Number(cost), r: Number(blockSize), p: Number(parallelization) }
  return Effect.map(derive(password, Buffer.from(salt, "base64url"), options), (found) =>
    timingSafeEqual(found, Buffer.from(hash, "base64url"))
  )
}

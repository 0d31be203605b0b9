/**
 * The numbers of payments (semantics dashboard.sums, dashboard.views) equal a plain count over all of an account's
 * payments, charges and refunds: in any sequence of operations, at any time of a test clock, after a wipe, after the
 * stop or crash of a process, after a rebuild of the views, and in a restored backup.
 *
 * To replay a failure, pass the printed token to its property: `{ arbitrary: { replay: "…" } }`. Postgres has timing of
 * its own, so a replay repeats the random choices, but not always the interleaving.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as Path from "node:path"
import { backup } from "../../../src/backup/Backup.ts"
import { check, load } from "../../../src/backup/Restore.ts"
import { remakeOutdated } from "../../../src/engine/verify/Verify.ts"
import { KINDS } from "../../../src/payments/Formats.ts"
import { newest } from "../../../src/postgres/Migrations.ts"
import type { Storage } from "../../engine/Harness.ts"
import * as Harness from "../../engine/Harness.ts"
import * as PostgresStorage from "../../engine/PostgresStorage.ts"
import { agrees, Payments, start } from "../../models/Tallies.ts"
import { Random, Seed } from "../../support/Random.ts"
import { temporaryFolder } from "../../support/TemporaryFolder.ts"

/** Fills storage with payments, by several processes in sequence. Returns their numbers. */
const filled = Effect.fnUntraced(function* (storage: Storage, random: Random) {
  const payments = new Payments(random)
  let numbers: Effect.Success<ReturnType<typeof agrees>> = []
  for (let life = 0; life < 3; life++) {
    const engine = yield* start(storage)
    for (let round = 0; round < 4; round++) {
      yield* payments.goOn(engine, 1 + random.below(20))
      if (random.chance(0.7)) numbers = yield* agrees(engine)
    }
    // A killed process leaves records for the next one to project.
    if (life < 2 && random.chance(0.5)) {
      yield* payments.goOn(engine, 10)
      yield* engine.kill
      continue
    }
    if (life === 2) yield* payments.end(engine)
    numbers = yield* agrees(engine)
    yield* engine.stop
    if (random.chance(0.3)) yield* Harness.rebuilt(storage, KINDS)
  }
  yield* Harness.verified(storage, KINDS)
  return numbers
})

const agreesAnew = (storage: Storage) =>
  Effect.gen(function* () {
    const engine = yield* start(storage)
    const numbers = yield* agrees(engine)
    yield* engine.stop
    yield* Harness.verified(storage, KINDS)
    return numbers
  })

/** Copies the journal into other storage, by a backup. */
const restored = Effect.fnUntraced(function* (storage: Storage, target: Storage) {
  const folder = Path.join(yield* temporaryFolder(), "backup")
  const secret = Redacted.make("ab".repeat(32))
  const manifestKeys = [Redacted.make(new Uint8Array(32))]
  yield* backup({
    folder,
    mode: "all",
    installation: { secret, manifestKeys, migration: newest },
    erasures: [],
    holds: () => true
  }).pipe(Effect.provideContext(storage))
  const checked = yield* check({
    folder,
    until: undefined,
    migration: newest,
    keysOf: () => Effect.succeed(manifestKeys)
  })
  yield* Harness.projecting(target, load(checked), KINDS)
})

describe("the numbers of payments", () => {
  it.effect.prop(
    "equal a plain count after any sequence of commands, stops of processes and rebuilds, and in a restored backup",
    { seed: Seed },
    ({ seed }) =>
      Effect.scoped(
        Effect.gen(function* () {
          yield* Harness.startClock
          yield* Harness.flowingTime
          const storage = yield* Harness.storageInMemory
          const numbers = yield* filled(storage, new Random(seed))
          const copy = yield* Harness.storageInMemory
          yield* restored(storage, copy)
          assert.deepStrictEqual(yield* agreesAnew(copy), numbers)
        })
      ),
    { arbitrary: { runs: 20, maxShrinks: 5 } }
  )

  it.live.prop(
    "equal it on Postgres, also after an upgrade during which other processes start",
    { seed: Seed },
    ({ seed }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const random = new Random(seed)
          const database = yield* PostgresStorage.make
          const numbers = yield* Effect.scoped(
            Effect.flatMap(database.connect("before"), (storage) => filled(storage, random))
          )
          yield* database.edit("TRUNCATE tallies")
          yield* database.outdate
          const starting = Effect.gen(function* () {
            const storage = yield* database.connect("after")
            yield* Harness.projecting(storage, remakeOutdated, KINDS)
            assert.deepStrictEqual(yield* agreesAnew(storage), numbers)
          })
          yield* Effect.all([starting, starting, starting], { concurrency: "unbounded" })
        })
      ),
    { arbitrary: { runs: 5, maxShrinks: 5 } }
  )
})

/** Accounts whose partition is acquired, released, or unconfirmed. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Latch } from "effect"
import type { AccountNumbersShape } from "../../src/engine/log/AccountNumbers.ts"
import { type Accounts, runOnce, Unavailable } from "../../src/engine/Accounts.ts"
import { CONFIRMED_MILLIS, partitionOf, Placement } from "../../src/engine/process/Placement.ts"
import type { RunningEngine } from "./Harness.ts"
import * as Harness from "./Harness.ts"
import type { FaultPoint } from "./storage/Faults.ts"
import * as Toy from "./Toy.ts"

const ACCOUNT = "mer_1:test"
const PARTITION = partitionOf(ACCOUNT)

interface Started extends RunningEngine {
  /** Blocks operations at a point until the latch is open; the first `past` operations pass. */
  readonly hold: (point: FaultPoint, past?: number) => Latch.Latch
}

/** Engines on one storage. The first has the partition with a counter; only `confirm` confirms ownership. */
const engines = Effect.suspend(() => enginesWith(Harness.numbersUnder("a key")))

const enginesWith = Effect.fnUntraced(function* (numbers: AccountNumbersShape) {
  yield* Harness.startClock
  yield* Harness.flowingTime
  const clock = yield* Clock.Clock
  const now = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  const storage = yield* Harness.storageInMemory
  const start = Effect.gen(function* () {
    const held = new Map<FaultPoint, { past: number; readonly latch: Latch.Latch }>()
    const engine = yield* Harness.startEngine(storage, {
      numbers,
      faults: (point) => {
        const at = held.get(point)
        return at === undefined || at.past-- > 0 ? Effect.void : at.latch.await
      },
      placement: Placement.layerSharedBy(now)
    })
    const hold = (point: FaultPoint, past: number = 0) => {
      const latch = Latch.makeUnsafe(false)
      held.set(point, { past, latch })
      return latch
    }
    const started: Started = { ...engine, hold }
    return started
  })
  const [first, second] = [yield* start, yield* start]
  const confirm = (engine: Started) => engine.placement.confirm(now())
  for (const engine of [first, second]) confirm(engine)
  yield* first.placement.acquire(PARTITION)
  const { id } = yield* first.accounts.run(ACCOUNT, Toy.create("a", "plain"))
  yield* first.projector.drained
  const stop = Effect.andThen(
    Effect.forEach([first, second], (engine) => engine.stop),
    Harness.verified(storage)
  )
  return { first, second, confirm, id, stop, storage }
})

const increment = ({ accounts }: { readonly accounts: Accounts["Service"] }) =>
  accounts.run(
    ACCOUNT,
    Effect.flatMap(Toy.counterIn("a"), (counter) => Toy.add(counter!.value, 1))
  )

const countIn = (engine: Started, id: string) =>
  Effect.map(engine.accounts.read(ACCOUNT, id), (entry) =>
    entry === undefined || entry.deleted ? undefined : (entry.value as Toy.Counter).count
  )

/** The failure of an account that the engine does not serve. */
const saysElsewhere = Effect.fnUntraced(function* (engine: Started, id: string) {
  const query = { kind: "counter", limit: 1 }
  const uses: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
    engine.accounts.read(ACCOUNT, id),
    engine.accounts.list(ACCOUNT, query),
    engine.accounts.events(ACCOUNT, { limit: 1 }),
    runOnce(engine.accounts, ACCOUNT, Toy.request("key"), () => Toy.command({ op: "look", slot: "a" })),
    increment(engine)
  ]
  for (const use of uses) assert.deepStrictEqual(yield* Effect.flip(use), Unavailable.elsewhere(ACCOUNT))
  assert.isUndefined(engine.accounts.peek(ACCOUNT, id))
  assert.isEmpty(engine.accounts.wakeTimes(0))
})

describe("an id", () => {
  it.effect("leads to an account elsewhere, as far as this engine knows it", () =>
    Effect.gen(function* () {
      const { first, id, second, stop } = yield* engines
      assert.strictEqual(yield* first.accounts.holder(id), ACCOUNT)
      assert.deepStrictEqual(yield* Effect.flip(second.accounts.holder(id)), Unavailable.elsewhere(ACCOUNT))
      yield* stop
    })
  )

  it.effect("leads, among several accounts with its number, to the one that has it, however new that is", () =>
    Effect.gen(function* () {
      const numbers = { ...Harness.numbersUnder("a key"), of: () => 5 }
      const { first, second, stop, storage } = yield* enginesWith(numbers)
      const [another, third] = ["mer_2:test", "mer_3:test"]
      yield* first.placement.acquire(partitionOf(third!))
      yield* second.placement.acquire(partitionOf(another!))
      yield* second.accounts.run(another!, Toy.create("a", "plain"))
      yield* first.accounts.run(third!, Toy.create("a", "plain"))
      const apply = first.hold("apply.before")
      const { id } = yield* first.accounts.run(ACCOUNT, Toy.create("b", "plain"))
      assert.deepStrictEqual(yield* Effect.flip(second.accounts.holder(id)), Unavailable.elsewhere(ACCOUNT))
      const madeUp = numbers.idOf("ctr", 1, 5)
      assert.isUndefined(yield* second.accounts.holder(madeUp))
      yield* apply.open
      yield* stop
      yield* Harness.verified(storage)
    })
  )
})

describe("an account", () => {
  it.effect("that is elsewhere is not touched", () =>
    Effect.gen(function* () {
      const { first, id, second, stop, storage } = yield* engines
      yield* saysElsewhere(second, id)
      assert.strictEqual(yield* countIn(first, id), 0)
      assert.lengthOf(yield* Harness.recordsOf(storage, ACCOUNT), 1)
      yield* stop
    })
  )

  it.effect("that is released is answered, flushed and projected before, and begins nothing more", () =>
    Effect.gen(function* () {
      const { first, id, second, stop, storage } = yield* engines
      const flush = first.hold("append.before")
      const apply = first.hold("apply.before")
      const fibers = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(increment(first)))
      yield* Harness.settled
      const releasing = yield* Effect.forkChild(first.placement.release(PARTITION))
      yield* Harness.settled
      yield* saysElsewhere(first, id)
      assert.isUndefined(releasing.pollUnsafe())
      yield* flush.open
      for (const [i, fiber] of fibers.entries()) assert.strictEqual((yield* Fiber.join(fiber)).count, i + 1)
      yield* Harness.settled
      assert.isUndefined(releasing.pollUnsafe())
      yield* apply.open
      yield* Fiber.join(releasing)
      assert.strictEqual(yield* Harness.viewsOf(storage).checkpoint(ACCOUNT).pipe(Effect.orDie), 4)
      yield* second.placement.acquire(PARTITION)
      assert.strictEqual(yield* countIn(second, id), 3)
      yield* stop
    })
  )

  it.effect("that is released while the storage hangs still ends", () =>
    Effect.gen(function* () {
      const { confirm, first, id, second, stop } = yield* engines
      const flush = first.hold("append.before")
      const fiber = yield* Effect.forkChild(Effect.flip(increment(first)))
      yield* Harness.settled
      yield* first.placement.release(PARTITION)
      confirm(second)
      yield* second.placement.acquire(PARTITION)
      assert.strictEqual((yield* increment(second)).count, 1)
      yield* flush.open
      const failure = yield* Fiber.join(fiber)
      assert.isTrue(failure.isElsewhere, "the journal has refused it, so it did not happen")
      assert.strictEqual(yield* countIn(second, id), 1)
      yield* stop
    })
  )

  it.effect("that is released before it is fully projected still leaves memory", () =>
    Effect.gen(function* () {
      const { confirm, first, id, second, stop } = yield* engines
      const apply = first.hold("apply.before")
      yield* Effect.forkScoped(
        Effect.forever(
          Effect.andThen(
            Effect.sleep(1000),
            Effect.sync(() => confirm(first))
          )
        )
      )
      yield* increment(first)
      yield* first.placement.release(PARTITION)
      confirm(second)
      yield* second.placement.acquire(PARTITION)
      yield* increment(second)
      yield* second.placement.release(PARTITION)
      yield* apply.open
      yield* first.placement.acquire(PARTITION)
      confirm(first)
      assert.strictEqual(yield* countIn(first, id), 2)
      yield* stop
    })
  )

  it.effect("is read anew after its earlier records are durable or have failed", () =>
    Effect.gen(function* () {
      const { confirm, first, id, stop } = yield* engines
      const flush = first.hold("append.before")
      const fiber = yield* Effect.forkChild(increment(first))
      yield* Harness.settled
      yield* Effect.sleep(CONFIRMED_MILLIS)
      confirm(first)
      const reading = yield* Effect.forkChild(countIn(first, id))
      yield* Effect.sleep(100)
      yield* flush.open
      assert.strictEqual((yield* Fiber.join(fiber)).count, 1)
      yield* Fiber.join(reading)
      assert.strictEqual(yield* countIn(first, id), 1)
      yield* stop
    })
  )

  it.effect("is read anew after ownership was in doubt, because another process may have had it", () =>
    Effect.gen(function* () {
      const { confirm, first, id, second, stop } = yield* engines
      assert.strictEqual(yield* countIn(first, id), 0)
      yield* Effect.sleep(CONFIRMED_MILLIS)
      yield* saysElsewhere(first, id)
      confirm(second)
      yield* second.placement.acquire(PARTITION)
      yield* increment(second)
      yield* second.placement.release(PARTITION)
      confirm(first)
      assert.strictEqual(yield* countIn(first, id), 1)
      yield* stop
    })
  )

  it.effect("is read anew if ownership came into doubt during its activation", () =>
    Effect.gen(function* () {
      const { confirm, first, id, second, storage } = yield* engines
      yield* first.placement.release(PARTITION)
      yield* first.placement.acquire(PARTITION)
      confirm(first)
      // The account's head has been read, but not everything else.
      const reading = first.hold("read", 3)
      const fiber = yield* Effect.forkChild(countIn(first, id))
      yield* Harness.settled
      yield* Effect.sleep(CONFIRMED_MILLIS)
      confirm(second)
      yield* second.placement.acquire(PARTITION)
      // The views do not show that the account has a newer record.
      second.hold("apply.before")
      yield* increment(second)
      yield* second.placement.release(PARTITION)
      confirm(first)
      yield* reading.open
      assert.strictEqual(yield* Fiber.join(fiber), 1)
      assert.strictEqual(yield* countIn(first, id), 1)
      yield* first.stop
      yield* second.kill
      yield* Harness.verified(storage)
    })
  )

  it.effect("acknowledges nothing that becomes durable after another process may own it", () =>
    Effect.gen(function* () {
      const { confirm, first, id, second, stop } = yield* engines
      const flush = first.hold("append.before")
      const fiber = yield* Effect.forkChild(Effect.flip(increment(first)))
      yield* Harness.settled
      yield* Effect.sleep(CONFIRMED_MILLIS)
      confirm(second)
      yield* second.placement.acquire(PARTITION)
      // Reads the log before the record arrives, and does not write: so the record is not fenced.
      assert.strictEqual(yield* countIn(second, id), 0)
      yield* flush.open
      const failure = yield* Fiber.join(fiber)
      assert.isFalse(failure.isElsewhere, "it was done, perhaps")
      assert.strictEqual((yield* increment(second)).count, 2)
      yield* stop
    })
  )

  it.effect("redirects to its owner a command with a key that became durable after the change of owner", () =>
    Effect.gen(function* () {
      const { confirm, first, id, second, stop } = yield* engines
      const command = (engine: Started, key: string | null) =>
        runOnce(engine.accounts, ACCOUNT, Toy.request(key), () => Toy.command({ op: "increment", slot: "a", by: 1 }))
      const outcomeOf = Effect.fnUntraced(function* (key: string | null) {
        const flush = first.hold("append.before")
        const fiber = yield* Effect.forkChild(Effect.flip(command(first, key)))
        yield* Harness.settled
        first.placement.unconfirm()
        yield* flush.open
        const failure = yield* Fiber.join(fiber)
        return failure instanceof Unavailable && failure.isElsewhere ? failure.account : undefined
      })
      assert.strictEqual(yield* outcomeOf("key"), ACCOUNT)
      confirm(first)
      assert.strictEqual(yield* outcomeOf(null), undefined, "it may have happened, and cannot be checked")
      confirm(second)
      yield* second.placement.acquire(PARTITION)
      assert.isNotNull((yield* command(second, "key")).replayOf)
      assert.strictEqual(yield* countIn(second, id), 2)
      yield* stop
    })
  )

  it.effect("whose partition arrives fires its timers, also those that are not in the views", () =>
    Effect.gen(function* () {
      const { confirm, first, id, second, storage } = yield* engines
      first.hold("apply.before")
      yield* runOnce(first.accounts, ACCOUNT, Toy.request(null), () =>
        Toy.command({ op: "setTimer", slot: "a", delay: 90 })
      )
      yield* first.kill
      yield* Effect.sleep(CONFIRMED_MILLIS)
      confirm(second)
      yield* second.placement.acquire(PARTITION)
      yield* Effect.sleep(1000)
      // There was no request to the account.
      const records = yield* Harness.recordsOf(storage, ACCOUNT)
      assert.strictEqual(records.at(-1)?.events[0]?.type, "counter.timed")
      confirm(second)
      assert.strictEqual(yield* countIn(second, id), 1 + Toy.TIMER_INCREMENT)
      yield* second.stop
    })
  )
})

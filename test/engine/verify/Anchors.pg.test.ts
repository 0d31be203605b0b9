/**
 * Without the secret, write access to the database is not enough to rewrite anchored records undetected (semantics
 * storage.anchors): neither with a consistent new chain and matching views, nor by truncating a journal or the anchors.
 * Verification names the place.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { createHmac } from "node:crypto"
import { Clock, Context, Effect, Layer, Redacted, References } from "effect"
import * as Anchors from "../../../src/engine/verify/Anchors.ts"
import { anchored, type AnchorKeys, AnchorStore, makeAnchoring } from "../../../src/engine/verify/Anchors.ts"
import { partitionOf, Placement, type PlacementShape } from "../../../src/engine/process/Placement.ts"
import { GENESIS, type JournalRow, seal, unseal } from "../../../src/engine/log/Record.ts"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import { Random, Seed } from "../../support/Random.ts"
import { temporaryFolder } from "../../support/TemporaryFolder.ts"
import type { Storage } from "../Harness.ts"
import * as Harness from "../Harness.ts"
import * as PostgresStorage from "../PostgresStorage.ts"
import * as Toy from "../Toy.ts"

/** Keys, newest first. The newest one signs unless `position` names another. */
const keysAt = (position: number, ...texts: ReadonlyArray<string>): AnchorKeys => ({
  all: texts.map((text) => Redacted.make(Buffer.from(text))),
  position: () => position
})
const keysOf = (...texts: ReadonlyArray<string>): AnchorKeys => keysAt(0, ...texts)
const KEYS = keysOf("a key of 32 bytes, or nearly that")
const ACCOUNTS = ["mer_1:test", "mer_2:test", "mer_3:live"]

/** Anchored versions of each account, in ascending order. */
type Versions = ReadonlyMap<string, ReadonlyArray<number>>

/** An engine's history in several accounts, anchored from time to time. */
const withHistory = Effect.fnUntraced(function* (random: Random) {
  const postgres = yield* PostgresStorage.make
  const storage = yield* postgres.connect("engine")
  const store = yield* postgres.anchors(yield* temporaryFolder())
  const engine = yield* Harness.startEngine(storage)
  const anchor = Effect.provideContext(yield* Effect.provideContext(makeAnchoring(KEYS), store), store)
  const versions = new Map<string, Array<number>>()
  const step = (account: string, i: number) =>
    random.chance(0.1)
      ? engine.accounts.run(
          account,
          Effect.map(Transaction, (transaction) => transaction.wipe())
        )
      : engine.accounts.run(account, Toy.create(`slot ${i}`, "plain"))
  const steps = (least: number, most: number) =>
    Effect.forEach(ACCOUNTS, (account) =>
      Effect.forEach(
        Array.from({ length: least + random.below(most - least + 1) }, (_, i) => i),
        (i) => step(account, i)
      )
    )
  for (let round = 0; round < 3; round++) {
    yield* steps(round === 0 ? 2 : 0, 4)
    yield* anchor
    for (const account of ACCOUNTS) {
      const version = (yield* Harness.recordsOf(storage, account)).length
      const known = versions.get(account) ?? []
      if (known.at(-1) !== version) versions.set(account, [...known, version])
    }
  }
  yield* steps(0, 2)
  yield* engine.projector.drained
  yield* engine.stop
  /** The problems that `till verify` finds. */
  const found = Effect.gen(function* () {
    const { heads, newest, problem } = yield* Effect.provideContext(anchored(KEYS), store)
    const report = yield* Harness.verification(storage, {}, [Toy.COUNTER], heads)
    return { ...report, newest, problems: problem === null ? report.problems : [problem, ...report.problems] }
  })
  return { postgres, storage, store, anchor, versions: versions as Versions, found }
})

const total = (versions: Versions) => versions.values().reduce((sum, all) => sum + all.at(-1)!, 0)

const hex = (bytes: Uint8Array) => `decode('${Buffer.from(bytes).toString("hex")}', 'hex')`

/** Moves one record a second later, and rebuilds the chain from there. */
const rewritten = (rows: ReadonlyArray<JournalRow>, from: number): ReadonlyArray<JournalRow> => {
  let before = { version: 0, hash: GENESIS }
  let previous = GENESIS
  return rows.map((row) => {
    const { record } = unseal(before, row)
    before = row
    const sealed = seal(previous, row.version === from ? { ...record, now: record.now + 1000 } : record)
    // An unchanged record keeps its bytes, in any format.
    const next = row.version < from ? row : { ...row, bytes: sealed.bytes, hash: sealed.hash }
    previous = next.hash
    return next
  })
}

const rewrite = Effect.fnUntraced(function* (
  { postgres, storage }: { postgres: PostgresStorage.PostgresStorage; storage: Storage },
  account: string,
  from: number
) {
  const rows = yield* Harness.journalOf(storage).read(account, 0, 1_000_000)
  for (const { bytes, hash, version } of rewritten(rows, from).slice(from - 1)) {
    yield* postgres.edit(`UPDATE journal SET record = ${hex(bytes)}, hash = decode('${hash}', 'hex')
      WHERE account = '${account}' AND version = ${version}`)
  }
  yield* Harness.rebuilt(storage)
})

const quietly = Effect.provideService(References.MinimumLogLevel, "None")

describe("anchors", () => {
  it.live.prop(
    "find a rewritten history with an intact chain and views, and name the first difference",
    { seed: Seed },
    Effect.fnUntraced(
      function* ({ seed }) {
        const random = new Random(seed)
        const history = yield* withHistory(random)
        const { found, storage, versions } = history
        const sound = yield* found
        assert.deepStrictEqual(sound.problems, [])
        assert.strictEqual(sound.anchored, total(versions))
        const account = random.pick(ACCOUNTS)
        const count = (yield* Harness.recordsOf(storage, account)).length
        const from = 1 + random.below(count)
        yield* rewrite(history, account, from)
        // Verification without anchors finds nothing.
        yield* Harness.verified(storage)
        const all = versions.get(account)!
        const noticed = all.findIndex((version) => version >= from)
        const { problems } = yield* found
        if (noticed === -1) return assert.deepStrictEqual(problems, [])
        assert.lengthOf(problems, 1)
        const first = noticed === 0 ? 1 : all[noticed - 1]! + 1
        const which = first === all[noticed] ? "it was" : `one of the records from ${first} on was`
        assert.match(
          problems[0]!,
          new RegExp(
            `^Record ${all[noticed]} of account ${account} is not what was anchored at .+: ${which} rewritten$`
          )
        )
      },
      (effect) => Effect.scoped(effect)
    ),
    { arbitrary: { runs: 8, maxShrinks: 5 } }
  )

  it.live.prop(
    "find a journal that ends too early, or is missing with its views",
    { seed: Seed },
    Effect.fnUntraced(
      function* ({ seed }) {
        const random = new Random(seed)
        const { found, postgres, storage, versions } = yield* withHistory(random)
        const account = random.pick(ACCOUNTS)
        const all = versions.get(account)!
        const from = 1 + random.below(all.at(-1)!)
        yield* postgres.edit(`DELETE FROM journal WHERE account = '${account}' AND version >= ${from}`)
        yield* Harness.rebuilt(storage)
        if (from === 1) yield* postgres.edit(`DELETE FROM checkpoints WHERE account = '${account}'`)
        yield* Harness.verified(storage)
        const next = all.find((version) => version >= from)
        const { problems } = yield* found
        assert.lengthOf(problems, 1)
        assert.include(
          problems[0],
          `Record ${from} of account ${account} is missing, but record ${next} was anchored at `
        )
      },
      (effect) => Effect.scoped(effect)
    ),
    { arbitrary: { runs: 6, maxShrinks: 5 } }
  )

  it.live("cannot be forged, removed or truncated, and none is made after such a change", () =>
    Effect.gen(function* () {
      const history = yield* withHistory(new Random(5))
      const { found, postgres, store, versions } = history
      const count = Effect.map(
        postgres.readRows<{ sequence: bigint }>(`SELECT sequence FROM anchors`),
        (rows) => rows.length
      )
      const anchors = yield* count
      const account = ACCOUNTS.find((account) => versions.get(account)!.length > 1)!
      yield* postgres.edit("CREATE TABLE saved AS SELECT * FROM anchors")
      const restore = Effect.andThen(
        postgres.edit("DELETE FROM anchors"),
        postgres.edit("INSERT INTO anchors SELECT * FROM saved")
      )
      const edits: ReadonlyArray<readonly [string, RegExp]> = [
        [`DELETE FROM anchors WHERE sequence = 1`, /^Anchor 1 is missing$/],
        [`DELETE FROM anchors WHERE sequence = 2`, /^Anchor 2 is missing$/],
        [`DELETE FROM anchors WHERE sequence = ${anchors}`, new RegExp(`^Anchor ${anchors} is gone or replaced: `)],
        [`DELETE FROM anchors`, new RegExp(`^Anchor ${anchors} is gone or replaced: `)],
        [`UPDATE anchors SET at = at + 1 WHERE sequence = 2`, /^Anchor 2 of .+ is not signed with the secret /],
        [
          `UPDATE anchors SET heads = replace(heads, '${account}', 'mer_9:test') WHERE sequence = 1`,
          /^Anchor 1 of .+ is not signed with the secret /
        ],
        [
          `UPDATE anchors SET signature = (SELECT signature FROM saved WHERE sequence = 1) WHERE sequence = 2`,
          /^Anchor 2 of .+ is not signed with the secret /
        ]
      ]
      // A change to anchor, in a process that has just started.
      const engine = yield* Harness.startEngine(history.storage)
      yield* engine.accounts.run(account, Toy.create("more", "plain"))
      yield* engine.stop
      const started = Effect.flatMap(makeAnchoring(KEYS), quietly).pipe(Effect.provideContext(store))
      for (const [edit, named] of edits) {
        yield* postgres.edit(edit)
        const left = yield* count
        assert.match((yield* found).problems[0] ?? "", named, edit)
        yield* started
        assert.strictEqual(yield* count, left, edit)
        yield* restore
      }
      assert.deepStrictEqual((yield* found).problems, [])
      // The running process does not know of the change, and continues from its last anchor.
      yield* history.anchor
      yield* started
      assert.strictEqual(yield* count, anchors + 1)
      assert.deepStrictEqual((yield* found).problems, [])
      const other = yield* Effect.provideContext(anchored(keysOf("another")), store)
      assert.match(other.problem ?? "", /^Anchor 1 of .+ is not signed with the secret in TILL_DATA_DIR/)
      assert.strictEqual(other.heads.size, 0)
    }).pipe(Effect.scoped)
  )

  it.live("operation.roll: are signed with the new secret, and the old one forges none behind them", () =>
    Effect.gen(function* () {
      const postgres = yield* PostgresStorage.make
      const storage = yield* postgres.connect("engine")
      const engine = yield* Harness.startEngine(storage)
      const store = yield* postgres.anchors(yield* temporaryFolder())
      const makerOf = (keys: AnchorKeys) =>
        Effect.map(Effect.provideContext(makeAnchoring(keys), store), Effect.provideContext(store))
      let slots = 0
      const anchoredBy = Effect.fnUntraced(function* (maker: Effect.Effect<void>) {
        yield* engine.accounts.run(ACCOUNTS[0]!, Toy.create(`slot ${slots++}`, "plain"))
        yield* quietly(maker)
        return (yield* Effect.provideContext(anchored(keysOf("new", "old")), store)).problem
      })
      assert.isNull(yield* anchoredBy(yield* makerOf(keysOf("old"))))
      // Has read both secrets, and has not noticed the roll yet.
      const late = yield* makerOf(keysAt(1, "new", "old"))
      assert.isNull(yield* anchoredBy(late))
      assert.strictEqual((yield* Effect.provideContext(anchored(keysOf("old")), store)).problem, null)
      assert.isNull(yield* anchoredBy(yield* makerOf(keysOf("new", "old"))))
      assert.isNull(yield* anchoredBy(late))
      const alone = yield* Effect.provideContext(anchored(keysOf("new")), store)
      assert.match(alone.problem ?? "", /^Anchor 1 of .+ is not signed with the secret /)
      const stale = yield* Effect.provideContext(anchored(keysOf("old")), store)
      assert.match(stale.problem ?? "", /^Anchor 3 of .+ is not signed with the secret /)
      // The anchor of an attacker who has the old secret, and write access to the database.
      const [last] = (yield* Effect.provideContext(
        AnchorStore.use(({ read }) => read(0, 100)),
        store
      )).slice(-1)
      const forged = { sequence: last!.sequence + 1, at: last!.at, heads: last!.heads }
      const text = `${last!.signature}\n${forged.sequence}\n${forged.at}\n${forged.heads}`
      const signature = createHmac("sha256", "old").update(text).digest("hex")
      yield* Effect.provideContext(
        AnchorStore.use(({ append }) => append({ ...forged, signature })),
        store
      )
      const { problem } = yield* Effect.provideContext(anchored(keysOf("new", "old")), store)
      assert.match(problem ?? "", /^Anchor 5 of .+ is not signed with the secret /)
      yield* engine.stop
    }).pipe(Effect.scoped)
  )

  it.live("are made by several processes in turn, and only if an account has changed", () =>
    Effect.gen(function* () {
      const postgres = yield* PostgresStorage.make
      const storage = yield* postgres.connect("engine")
      const engine = yield* Harness.startEngine(storage)
      const stores = [
        yield* postgres.anchors(yield* temporaryFolder()),
        yield* postgres.anchors(yield* temporaryFolder())
      ]
      const makers = yield* Effect.forEach(stores, (store) =>
        Effect.map(Effect.provideContext(makeAnchoring(KEYS), store), Effect.provideContext(store))
      )
      const told = () => Effect.provideContext(anchored(KEYS), stores[1]!)
      for (let i = 0; i < 6; i++) {
        yield* engine.accounts.run(ACCOUNTS[i % 2]!, Toy.create(`slot ${i}`, "plain"))
        yield* Effect.all(i % 3 === 2 ? makers : [makers[i % 3]!], { concurrency: "unbounded" })
        yield* makers[(i + 1) % 2]!
      }
      const { heads, problem } = yield* told()
      assert.isNull(problem)
      for (const account of ACCOUNTS.slice(0, 2)) {
        assert.deepStrictEqual(
          heads.get(account)?.map(({ version }) => version),
          [1, 2, 3]
        )
      }
      yield* engine.stop
    }).pipe(Effect.scoped)
  )

  it.live("are made at the end of the process that served the account, and of no other", () =>
    Effect.gen(function* () {
      const postgres = yield* PostgresStorage.make
      const engine = yield* Harness.startEngine(yield* postgres.connect("engine"))
      const [account] = ACCOUNTS as [string]
      const ended = Effect.fnUntraced(function* (work: (placement: PlacementShape) => Effect.Effect<void>) {
        const store = yield* postgres.anchors(yield* temporaryFolder())
        const process = Layer.provideMerge(Anchors.layer(KEYS, account), Placement.layerShared)
        yield* engine.accounts.run(account, Toy.create(`slot ${yield* Clock.currentTimeNanos}`, "plain"))
        yield* Effect.scoped(Effect.flatMap(Layer.build(process), (built) => work(Context.get(built, Placement)))).pipe(
          Effect.provideContext(store)
        )
        const { heads } = yield* Effect.provideContext(Anchors.anchored(KEYS), store)
        return heads.get(account)?.length ?? 0
      })
      const serving = ({ acquire, confirm, release }: PlacementShape) => {
        confirm(performance.now())
        return Effect.andThen(acquire(partitionOf(account)), release(partitionOf(account)))
      }
      assert.strictEqual(yield* ended(() => Effect.void), 0)
      assert.strictEqual(yield* ended(serving), 1)
      assert.strictEqual(yield* ended(() => Effect.void), 1)
      yield* engine.stop
    }).pipe(Effect.scoped)
  )
})

/** Configured processors are resolved from memory (semantics processors.resolution). */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Layer, Redacted } from "effect"
import { ApiVersions, VERSIONS } from "../../src/domain/ApiVersions.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import * as Engine from "../../src/engine/Engine.ts"
import { Placement } from "../../src/engine/process/Placement.ts"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import * as Configured from "../../src/payments/processing/ConfiguredProcessors.ts"
import * as Formats from "../../src/payments/Formats.ts"
import * as Merchants from "../../src/payments/merchants/Merchants.ts"
import { PaymentsConfig } from "../../src/payments/shared/PaymentsConfig.ts"
import * as Simulator from "../../src/payments/processing/Simulator.ts"
import * as Registry from "../../src/processors/Registry.ts"
import * as Harness from "../engine/Harness.ts"
import { MemoryAccount } from "../support/MemoryAccount.ts"
import * as MemoryEngine from "../support/MemoryEngine.ts"
import { paymentsConfig } from "../support/PaymentsConfig.ts"
import { exchangeWith, OTHER, requestOf, SECRET, stateOf } from "./protocol/Calls.ts"

const PROFILE = { name: "Acme", currencies: null, fields_url: null }

const setUp = Effect.gen(function* () {
  const account = new MemoryAccount(INSTALLATION)
  const { id: merchant } = yield* account.run(Merchants.create("Shop"), null)
  const { exchange, requests } = exchangeWith(() => ({ status: 200, body: JSON.stringify(stateOf()) }))
  const registry = Registry.make(account.config, exchange, yield* Clock.Clock)
  const add = (livemode: boolean) =>
    account.run(
      Configured.add({ merchant, livemode, kind: "http", url: "https://a.example/", secret: SECRET, profile: PROFILE }),
      null
    )
  const follow = () =>
    registry.replace(
      [...account.documents.values()].filter(
        ({ kind }) => kind === Configured.PROCESSOR.name
      ) as unknown as ReadonlyArray<Configured.ProcessorDocument>
    )
  return { account, merchant, registry, requests, add, follow }
})

describe("processors.resolution: an account", () => {
  it.effect("without a processor has none", () =>
    Effect.gen(function* () {
      const { follow, merchant, registry } = yield* setUp
      follow()
      assert.isUndefined(registry.of(`${merchant}:test`))
      assert.isNull(registry.byId("prc_x"))
      assert.isFalse(registry.mayBegin("prc_x"))
    })
  )

  it.effect("has that of its mode", () =>
    Effect.gen(function* () {
      const { add, follow, merchant, registry } = yield* setUp
      const [test, live] = [yield* add(false), yield* add(true)]
      follow()
      assert.strictEqual(registry.of(`${merchant}:test`)?.id, test.value.id)
      assert.strictEqual(registry.of(`${merchant}:live`)?.id, live.value.id)
      assert.strictEqual(registry.byId(live.value.id), registry.of(`${merchant}:live`))
    })
  )

  it.effect("with a paused one may begin nothing, and a retiring one is found by its id alone", () =>
    Effect.gen(function* () {
      const { account, add, follow, merchant, registry } = yield* setUp
      const { value } = yield* add(false)
      follow()
      assert.isTrue(registry.mayBegin(value.id))
      yield* account.run(Configured.take(value.id, "pause"), null)
      follow()
      assert.isFalse(registry.mayBegin(value.id))
      assert.strictEqual(registry.of(`${merchant}:test`), registry.byId(value.id)!)
      yield* account.run(Configured.take(value.id, "retire"), null)
      const next = yield* add(false)
      follow()
      assert.strictEqual(registry.of(`${merchant}:test`)?.id, next.value.id)
      assert.strictEqual(registry.byId(value.id)?.id, value.id)
      assert.isTrue(registry.mayBegin(value.id))
    })
  )

  it.effect(
    "processors.restored: that was held is only asked, and begins nothing until it is released and resumed",
    () =>
      Effect.gen(function* () {
        const { account, add, follow, registry } = yield* setUp
        const { value } = yield* add(false)
        yield* account.run(Configured.hold([value.id], 1_795_000_000_500), null)
        follow()
        assert.deepInclude(account.value(Configured.PROCESSOR, value.id), {
          status: "paused",
          restored_at: 1_795_000_000
        })
        assert.deepStrictEqual([registry.byId(value.id)!.onlyLooks, registry.mayBegin(value.id)], [true, false])
        // An older backup of a held installation was restored once more.
        yield* account.run(Configured.hold([value.id], 1_796_000_000_000), null)
        assert.strictEqual(account.value(Configured.PROCESSOR, value.id)!.restored_at, 1_795_000_000)
        const refused = yield* Effect.flip(account.run(Configured.take(value.id, "resume"), null))
        assert.strictEqual((refused as Configured.ProcessorUnfit).message, Configured.mustReconcile(value.id))
        yield* account.run(Configured.release(value.id), null)
        follow()
        assert.deepStrictEqual([registry.byId(value.id)!.onlyLooks, registry.mayBegin(value.id)], [false, false])
        yield* account.run(Configured.take(value.id, "resume"), null)
        follow()
        assert.isTrue(registry.mayBegin(value.id))
      })
  )

  it.effect("processors.restored: that is retiring stays so, and begins nothing while it is held", () =>
    Effect.gen(function* () {
      const { account, add, follow, registry } = yield* setUp
      const { value } = yield* add(false)
      yield* account.run(Configured.take(value.id, "retire"), null)
      yield* account.run(Configured.hold([value.id], 1_795_000_000_000), null)
      follow()
      assert.strictEqual(account.value(Configured.PROCESSOR, value.id)!.status, "retiring")
      assert.isFalse(registry.mayBegin(value.id))
      yield* account.run(Configured.release(value.id), null)
      follow()
      assert.isTrue(registry.mayBegin(value.id))
    })
  )

  it.effect("keeps the same object until its processor changes, and the other secret then", () =>
    Effect.gen(function* () {
      const { account, add, follow, registry } = yield* setUp
      const { value } = yield* add(false)
      follow()
      const before = registry.byId(value.id)
      follow()
      assert.strictEqual(registry.byId(value.id), before)
      yield* account.run(Configured.update(value.id, { secret: OTHER, profile: PROFILE }), null)
      follow()
      assert.notStrictEqual(registry.byId(value.id), before)
    })
  )

  it.effect("signs with a replaced secret until its grace period ends", () =>
    Effect.gen(function* () {
      const { account, add, follow, registry, requests } = yield* setUp
      const { value } = yield* add(false)
      const now = yield* Clock.currentTimeMillis
      account.now = now
      yield* account.run(Configured.update(value.id, { secret: OTHER, expiresIn: 60, profile: PROFILE }), null)
      follow()
      const processor = registry.byId(value.id)!
      yield* processor.perform(requestOf())
      assert.lengthOf(requests[0]!.headers["webhook-signature"]!.split(" "), 2)
      assert.isFalse(JSON.stringify(requests[0]!.headers).includes(Redacted.value(SECRET)))
    })
  )
})

describe("gateways.fields: the check of a gateway", () => {
  const checkWith = (frame: string | null) => {
    const body = JSON.stringify({
      protocol: 1,
      name: "Acme",
      livemode: false,
      fields: frame === null ? null : { frame }
    })
    const { exchange } = exchangeWith(() => ({ status: 200, body }))
    const gate = Registry.makeGate(paymentsConfig({ publicUrl: "https://till.example/pay" }), exchange)
    return gate.check({ url: "https://a.example/", secrets: [SECRET] }, false)
  }

  it.effect("keeps the page with the inputs of a card", () =>
    Effect.gen(function* () {
      for (const frame of ["https://a.example/fields?v=1", "http://localhost:4343/fields", null]) {
        assert.strictEqual((yield* checkWith(frame)).fields_url, frame)
      }
    })
  )

  it.effect("fails for a page that a frame cannot show safely", () =>
    Effect.gen(function* () {
      for (const frame of [
        "http://a.example/fields",
        "https://till.example/fields",
        "https://user@a.example/fields",
        "https://[2001:db8::1]/fields",
        "https://a.example;script-src/fields",
        "javascript:alert(1)",
        "/fields"
      ]) {
        const { message } = yield* Effect.flip(checkWith(frame))
        assert.match(message, /^The gateway's page with the inputs of a card must .*\.$/u, frame)
      }
    })
  )
})

describe("processors.resolution: a process", () => {
  const newOf = (merchant: string) =>
    Configured.add({
      merchant,
      livemode: false,
      kind: "http",
      url: "https://a.example/",
      secret: SECRET,
      profile: PROFILE
    })

  /** A registry that follows an engine of its own on the storage. */
  const startOn = (storage: Harness.Storage) =>
    Layer.build(
      Registry.following.pipe(
        Layer.provideMerge(Engine.layer()),
        Layer.provide(MemoryEngine.lifecycles),
        Layer.provideMerge(Layer.effectContext(Registry.start)),
        Layer.provide([ApiVersions.layer(VERSIONS), Simulator.layer, Formats.layer]),
        Layer.provideMerge(Layer.succeed(PaymentsConfig, paymentsConfig({}))),
        Layer.provideMerge(Placement.layerSole),
        Layer.provide(Layer.succeedContext(storage))
      )
    )

  it.live("sees a change soon after it, and at its start all changes before", () =>
    Effect.gen(function* () {
      const storage = yield* Harness.storageInMemory
      const account = yield* Effect.scoped(
        Effect.gen(function* () {
          const process = yield* startOn(storage)
          const { run } = Context.get(process, Accounts)
          const registry = Context.get(process, Registry.Registry)
          const { id } = yield* run(INSTALLATION, Merchants.create("Shop"))
          assert.isUndefined(registry.of(`${id}:test`))
          const added = Effect.provideService(newOf(id), PaymentsConfig, paymentsConfig({}))
          const { value } = yield* run(INSTALLATION, added)
          while (registry.of(`${id}:test`) === undefined) yield* Effect.sleep(5)
          assert.strictEqual(registry.of(`${id}:test`)?.id, value.id)
          yield* run(INSTALLATION, Configured.take(value.id, "pause"))
          while (registry.mayBegin(value.id)) yield* Effect.sleep(5)
          yield* run(INSTALLATION, Configured.take(value.id, "resume"))
          return `${id}:test`
        })
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          const registry = Context.get(yield* startOn(storage), Registry.Registry)
          assert.strictEqual(registry.of(account)?.kind, "remote")
        })
      )
    })
  )
})

/**
 * Products and prices against a plain model: in any order of operations, lookup keys have one price, products with
 * prices stay, events contain exactly the changes, and a refused operation leaves nothing.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { mergeMetadata } from "../../../src/domain/Metadata.ts"
import { Price } from "../../../src/domain/Price.ts"
import { Product } from "../../../src/domain/Product.ts"
import { LOOKUP_KEY, PRICE, PRODUCT } from "../../../src/payments/shared/Documents.ts"
import * as Prices from "../../../src/payments/lifecycles/Prices.ts"
import * as Products from "../../../src/payments/lifecycles/Products.ts"
import { MemoryAccount } from "../../support/MemoryAccount.ts"
import { Random, runSeed } from "../../support/Random.ts"
import { countRuns, runs } from "../../support/Runs.ts"

const RUNS = runs(80)
const STEPS = 30

const KEYS = ["a", "b", "__proto__"]
const NOBODY = { product: "prod_nobody", price: "price_nobody" }

/** The expected content of the account, as far as the rules cover it. */
interface Model {
  readonly products: Map<string, { readonly prices: Set<string>; defaultPrice: string | null }>
  readonly prices: Map<string, { readonly product: string; active: boolean; lookupKey: string | null }>
}

type Expected = { readonly fails: string } | { readonly changes: () => void }

const maybe = <A>(random: Random, value: () => A): A | undefined => (random.chance(0.5) ? value() : undefined)

/** Leaves out undefined fields, as JSON does. */
const sent = <A extends object>(parameters: A): { [K in keyof A]: Exclude<A[K], undefined> } =>
  Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== undefined)) as never

const metadataOf = (random: Random) =>
  random.pick([{ a: random.pick(["x", "y", "", null]) }, {}, null, "", { b: "z" }] as const)

const withoutId = (price: Price) => ({ ...price, id: "price_…" })

class Catalog {
  readonly account = new MemoryAccount()
  readonly model: Model = { products: new Map(), prices: new Map() }
  readonly random: Random

  constructor(random: Random) {
    this.random = random
  }

  anyProduct(): string {
    return this.random.pick([...this.model.products.keys(), NOBODY.product])
  }

  anyPrice(): string {
    return this.random.pick([...this.model.prices.keys(), NOBODY.price])
  }

  ownerOf(lookupKey: string): string | undefined {
    return [...this.model.prices].find(([, price]) => price.lookupKey === lookupKey)?.[0]
  }

  /** Runs one random command and checks its expected result. */
  readonly step = Effect.fnUntraced({ self: this }, function* () {
    this.account.now += this.random.integer(0, 3000)
    const before = this.account.text
    const [exit, expected, name] = yield* this.random.pick([
      this.createProduct,
      this.updateProduct,
      this.removeProduct,
      this.createPrice,
      this.createPrice,
      this.updatePrice,
      this.updatePrice
    ])()
    if ("fails" in expected) {
      assert.isTrue(Exit.isFailure(exit), `${name} should have failed`)
      assert.include(JSON.stringify(exit), expected.fails, name)
      assert.strictEqual(this.account.text, before, name)
    } else {
      assert.isTrue(Exit.isSuccess(exit), `${name}: ${JSON.stringify(exit)}`)
      expected.changes()
    }
    this.check()
  })

  readonly createProduct = Effect.fnUntraced({ self: this }, function* () {
    const { random } = this
    const data = maybe(random, () => ({ currency: "usd", unit_amount: random.integer(0, 9) }))
    const parameters = sent({ name: "Tea", default_price_data: data, url: maybe(random, () => "https://a.b") })
    const exit = yield* Effect.exit(this.account.run(Products.create(parameters)))
    const changes = () => {
      if (!Exit.isSuccess(exit)) return
      const { default_price: defaultPrice, id } = exit.value
      assert.strictEqual(defaultPrice !== null, data !== undefined)
      this.model.products.set(id, { prices: new Set(defaultPrice === null ? [] : [defaultPrice]), defaultPrice })
      if (defaultPrice !== null) this.model.prices.set(defaultPrice, { product: id, active: true, lookupKey: null })
    }
    return [exit, { changes }, "create product"] as Step
  })

  readonly updateProduct = Effect.fnUntraced({ self: this }, function* () {
    const { random } = this
    const id = this.anyProduct()
    const default_price = maybe(random, () => (random.chance(0.3) ? null : this.anyPrice()))
    const parameters = sent({
      name: maybe(random, () => random.pick(["Tea", "Coffee"])),
      active: maybe(random, () => random.chance(0.5)),
      description: maybe(random, () => random.pick(["one", "two", "", null])),
      shippable: maybe(random, () => random.pick([true, false, null])),
      images: maybe(random, () => random.pick([["https://a.b/1"], []])),
      package_dimensions: maybe(random, () =>
        random.pick([{ weight: 1, height: 1, width: 1, length: random.integer(1, 2) }, null])
      ),
      metadata: maybe(random, () => metadataOf(random)),
      default_price
    })
    const before = this.account.value(PRODUCT, id)
    const events = this.account.events.length
    const exit = yield* Effect.exit(this.account.run(Products.update(id, parameters)))
    const product = this.model.products.get(id)
    if (product === undefined) return [exit, { fails: "ResourceMissing" }, "update missing product"] as Step
    if (default_price != null) {
      const price = this.model.prices.get(default_price)
      if (price === undefined) return [exit, { fails: "ResourceMissing" }, "missing default price"] as Step
      if (!price.active) return [exit, { fails: "PriceInactive" }, "archived default price"] as Step
      if (price.product !== id) return [exit, { fails: "ParameterInvalid" }, "foreign default price"] as Step
    }
    const changes = () => {
      if (default_price !== undefined) product.defaultPrice = default_price
      if (!Exit.isSuccess(exit)) return
      const { metadata, package_dimensions, ...plain } = parameters
      for (const [field, value] of Object.entries(plain)) {
        const expected = value === "" ? null : value
        assert.deepStrictEqual(exit.value[field as "name"], expected as never, field)
      }
      if (package_dimensions !== undefined) {
        assert.deepStrictEqual(exit.value.package_dimensions, package_dimensions ?? undefined)
      }
      if (metadata !== undefined) assert.deepStrictEqual(exit.value.metadata, mergeMetadata(before!.metadata, metadata))
      this.checkUpdate("product.updated", before!, exit.value, events)
      const moved = this.account.events.length > events
      assert.strictEqual(exit.value.updated, moved ? Math.floor(this.account.now / 1000) : before!.updated)
    }
    return [exit, { changes }, "update product"] as Step
  })

  readonly removeProduct = Effect.fnUntraced({ self: this }, function* () {
    const id = this.anyProduct()
    const exit = yield* Effect.exit(this.account.run(Products.remove(id)))
    const product = this.model.products.get(id)
    if (product === undefined) return [exit, { fails: "ResourceMissing" }, "remove missing product"] as Step
    if (product.prices.size > 0) return [exit, { fails: "ProductHasPrices" }, "remove priced product"] as Step
    return [exit, { changes: () => this.model.products.delete(id) }, "remove product"] as Step
  })

  readonly createPrice = Effect.fnUntraced({ self: this }, function* () {
    const { random } = this
    const product = this.anyProduct()
    const lookup_key = maybe(random, () => random.pick([...KEYS, null, ""]))
    const transfer = random.chance(0.3)
    const parameters = sent({
      product,
      currency: "usd",
      unit_amount: random.pick([1, 1_000_000_000_000]),
      active: maybe(random, () => random.chance(0.7)),
      lookup_key,
      transfer_lookup_key: transfer
    })
    const owner = lookup_key ? this.ownerOf(lookup_key) : undefined
    const { text } = this.account
    const events = this.account.events.length
    const preview = yield* Effect.exit(this.account.run(Prices.preview(parameters)))
    assert.strictEqual(this.account.text, text)
    const exit = yield* Effect.exit(this.account.run(Prices.create(parameters)))
    // A preview has the same result as the creation, except for the id.
    assert.deepStrictEqual(Exit.map(preview, withoutId), Exit.map(exit, withoutId))
    if (!this.model.products.has(product)) return [exit, { fails: "ResourceMissing" }, "price of nothing"] as Step
    if (parameters.unit_amount > 1) return [exit, { fails: "AmountTooLarge" }, "price above the cap"] as Step
    if (owner !== undefined && !transfer) return [exit, { fails: "LookupKeyTaken" }, "taken lookup key"] as Step
    const changes = () => {
      if (!Exit.isSuccess(exit)) return
      const { active, id } = exit.value
      if (owner !== undefined) this.model.prices.get(owner)!.lookupKey = null
      this.model.prices.set(id, { product, active, lookupKey: lookup_key || null })
      this.model.products.get(product)!.prices.add(id)
      const types = this.account.events.slice(events).map(({ type }) => type)
      assert.deepStrictEqual(types, [...(owner === undefined ? [] : ["price.updated"]), "price.created"])
    }
    return [exit, { changes }, "create price"] as Step
  })

  readonly updatePrice = Effect.fnUntraced({ self: this }, function* () {
    const { random } = this
    const id = this.anyPrice()
    const lookup_key = maybe(random, () => random.pick([...KEYS, null, ""]))
    const transfer = random.chance(0.3)
    const parameters = sent({
      active: maybe(random, () => random.chance(0.7)),
      nickname: maybe(random, () => random.pick(["one", "", null])),
      tax_behavior: maybe(random, () => random.pick(["inclusive", "exclusive"] as const)),
      metadata: maybe(random, () => metadataOf(random)),
      lookup_key,
      transfer_lookup_key: transfer
    })
    const before = this.account.value(PRICE, id)
    const events = this.account.events.length
    const owner = lookup_key ? this.ownerOf(lookup_key) : undefined
    const exit = yield* Effect.exit(this.account.run(Prices.update(id, parameters)))
    const price = this.model.prices.get(id)
    if (price === undefined) return [exit, { fails: "ResourceMissing" }, "update missing price"] as Step
    const robbed = owner !== undefined && owner !== id
    if (robbed && !transfer) return [exit, { fails: "LookupKeyTaken" }, "taken lookup key"] as Step
    const changes = () => {
      if (!Exit.isSuccess(exit)) return
      if (robbed) {
        const [event] = this.account.events.slice(events)
        assert.deepInclude(event, { type: "price.updated", previous: { lookup_key } })
        assert.strictEqual(JSON.parse(event!.object).id, owner)
        this.model.prices.get(owner)!.lookupKey = null
      }
      price.active = parameters.active ?? price.active
      price.lookupKey = lookup_key === undefined ? price.lookupKey : lookup_key || null
      this.checkUpdate("price.updated", before!, exit.value, events + (robbed ? 1 : 0))
    }
    return [exit, { changes }, "update price"] as Step
  })

  /** Checks for one event if anything changed, whose previous attributes undo exactly the change. */
  checkUpdate(type: string, before: Product | Price, after: Product | Price, events: number): void {
    const strip = (value: object) => ({ ...value, updated: 0 })
    const [event, ...more] = this.account.events.slice(events)
    assert.lengthOf(more, 0)
    if (event === undefined) return assert.deepStrictEqual(after, before)
    assert.strictEqual(event.type, type)
    assert.strictEqual(event.object, JSON.stringify(after))
    const { metadata, ...previous } = event.previous as Record<string, unknown>
    assert.isAbove(Object.keys(event.previous!).length, 0)
    assert.notProperty(previous, "updated")
    const undone: Record<string, unknown> = { ...after, ...previous }
    for (const [field, old] of Object.entries(previous)) {
      assert.notDeepEqual(after[field as "id"], old as string, field)
      if (old === null && !(field in before)) delete undone[field]
    }
    undone["metadata"] = mergeMetadata(after.metadata, (metadata ?? {}) as Record<string, string | null>)
    assert.deepStrictEqual(strip(undone), strip(before))
  }

  /** Compares the account with the model. */
  check(): void {
    const { account, model } = this
    assert.sameMembers(
      account.all(PRODUCT).map(({ id }) => id),
      [...model.products.keys()]
    )
    for (const { hidden, labels, value } of account.all(PRODUCT)) {
      const { defaultPrice, prices } = model.products.get(value.id)!
      assert.strictEqual(hidden.hasPrice, prices.size > 0)
      assert.strictEqual(value.default_price, defaultPrice)
      assert.deepStrictEqual(labels, { active: String(value.active) })
      assert.isTrue(Schema.is(Product)(value))
    }
    assert.sameMembers(
      account.all(PRICE).map(({ id }) => id),
      [...model.prices.keys()]
    )
    for (const { labels, value } of account.all(PRICE)) {
      const { active, lookupKey, product } = model.prices.get(value.id)!
      assert.deepStrictEqual([value.active, value.lookup_key, value.product], [active, lookupKey, product])
      assert.deepStrictEqual(labels, { active: String(active), product, currency: "usd", type: "one_time" })
      assert.isTrue(Schema.is(Price)(value))
    }
    const named = account
      .all(PRICE)
      .flatMap(({ value: { id, lookup_key: key } }) => (key === null ? [] : [`${key}=${id}`]))
    const entries = account
      .all(LOOKUP_KEY)
      .map(({ value: { id, price } }) => `${id.slice("lookup_key:".length)}=${price}`)
    assert.sameMembers(entries, named)
    assert.strictEqual(new Set(named.map((entry) => entry.split("=")[0])).size, named.length)
  }
}

type Step = readonly [exit: Exit.Exit<unknown, unknown>, expected: Expected, name: string]

describe("products and prices", () => {
  it.effect("follow their model in any sequence of operations", () =>
    Effect.gen(function* () {
      countRuns(RUNS)
      for (let run = 0; run < RUNS; run++) {
        const catalog = new Catalog(new Random(runSeed + run))
        for (let step = 0; step < STEPS; step++) {
          yield* Effect.catchDefect(catalog.step(), (cause) =>
            Effect.die(new Error(`TILL_SEED=${runSeed} run ${run} step ${step}`, { cause }))
          )
        }
      }
    })
  )

  it.effect("a currency that is not accepted is refused, by its path (semantics money.currencies)", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount(undefined, { currencies: new Set(["usd"]) })
      const { id } = yield* account.run(Products.create({ name: "Tea" }))
      const price = yield* Effect.flip(account.run(Prices.create({ product: id, currency: "eur", unit_amount: 1 })))
      assert.include(price, { _tag: "ParameterInvalid", param: "currency" })
      const product = yield* Effect.flip(
        account.run(Products.create({ name: "Tea", default_price_data: { currency: "eur", unit_amount: 1 } }))
      )
      assert.include(product, { _tag: "ParameterInvalid", param: "default_price_data[currency]" })
      yield* account.run(Prices.create({ product: id, currency: "USD", unit_amount: 1 }))
    })
  )

  it.effect("only the first price writes its product again (semantics products.delete)", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const { id } = yield* account.run(Products.create({ name: "Tea" }))
      const versionOf = () => account.documents.get(id)!.version
      yield* account.run(Prices.create({ product: id, currency: "usd", unit_amount: 1 }))
      const first = versionOf()
      yield* account.run(Prices.create({ product: id, currency: "usd", unit_amount: 2 }))
      assert.strictEqual(versionOf(), first)
      assert.strictEqual(first, account.version - 1)
    })
  )
})

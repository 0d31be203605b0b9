/**
 * A search finds exactly the objects that a filter over all objects selects (semantics search.*): in memory and on
 * Postgres, page after page, right after each change, and after the views were recreated. The same holds for the
 * dashboard's additional searches, among them those for words (semantics dashboard.payments, search.words).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Scope } from "effect"
import { DeclineCode } from "../../src/domain/Cards.ts"
import type { Customer } from "../../src/domain/Customer.ts"
import type { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import { PaymentIntentStatus } from "../../src/domain/PaymentIntentStates.ts"
import type { Product } from "../../src/domain/Product.ts"
import { type Clause, type SearchQuery } from "../../src/domain/SearchQuery.ts"
import { finds, type Reach, WORDS_MAX, wordsIn } from "../../src/domain/SearchWords.ts"
import { searchObjects } from "../../src/dashboard/frame/Queries.ts"
import { Accounts } from "../../src/engine/Accounts.ts"
import type { Identified } from "../../src/engine/log/Document.ts"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import { searchDocuments, type SearchResultOf } from "../../src/http/handlers/Search.ts"
import { CUSTOMER, PAYMENT_INTENT, PRODUCT, type Resource } from "../../src/payments/shared/Documents.ts"
import {
  FILTERED_PAYMENT_INTENT,
  SEARCHED_CUSTOMER,
  SEARCHED_PAYMENT_INTENT,
  SEARCHED_PRODUCT,
  type SearchedBy,
  wordsCondition
} from "../../src/payments/shared/Search.ts"
import * as Harness from "../engine/Harness.ts"
import * as PostgresStorage from "../engine/PostgresStorage.ts"
import { Random, Seed } from "../support/Random.ts"
import { print } from "../support/SearchQueries.ts"

const ACCOUNTS = ["mer_1:test", "mer_2:test"]
const KINDS = [CUSTOMER, PAYMENT_INTENT, PRODUCT]
/** Here they hide nothing. */
const PAYMENTS = PAYMENT_INTENT as unknown as Resource<PaymentIntent>
const PRODUCTS = PRODUCT as unknown as Resource<Product>
const KEYS = ["order", "__proto__", "a=b", "ü"]
/** Texts whose words are found, some of them longer than what counts. */
const PHRASES = [
  "Order 6735",
  "order #36, Jenny",
  "İstanbul'da 3 × Straße",
  "Bestellung für Łódź",
  "東京タワー A1",
  Array.from({ length: 40 }, (_, i) => `word${String.fromCodePoint(97 + (i % 26))}`).join(" "),
  "international internet"
]
const PHONES = ["+1 (555) 123-4567", "0049 30 1234"]
const TOKENS = ["6735", "Straße", "STRASSE", "null", 'say "hi"', "ΑΣ", "ας", "ab"]
const TEXTS = ["Jenny Rosen", "jenny@example.com", "JENNY@EXAMPLE.COM", "en@ex", "ab", "😀😀😀 x", "İstanbul", "ΣΑΣ"]
const AMOUNTS = [1, 2, 127, 128, 129, 2000, 2001, 2047, 999_999_999_999]
const TIMES = [0, 1, 1_763_596_800, 1_763_596_801]
const IDS = ["cus_x", "pi_x"]
const REASONS = DeclineCode.literals.slice(0, 3)
const EMAILS = ["jenny@example.com", "JENNY@EXAMPLE.COM", "ada@example.com"]

const some = <A>(random: Random, choices: ReadonlyArray<A>): A | null =>
  random.chance(0.3) ? null : random.pick(choices)

const metadata = (random: Random) =>
  Object.fromEntries(KEYS.filter(() => random.chance(0.4)).map((key) => [key, random.pick(TOKENS)]))

/**
 * Objects with only the fields that searches use: real ones come from the lifecycles, and nothing here reads the rest.
 */
const customer = (random: Random, id: string, created: number) =>
  ({
    id,
    created,
    email: some(random, TEXTS),
    name: some(random, TEXTS),
    phone: some(random, PHONES),
    description: some(random, PHRASES),
    metadata: metadata(random)
  }) as Customer

const product = (random: Random, id: string, created: number) =>
  ({ id, created, name: random.pick(TEXTS), description: some(random, PHRASES), metadata: metadata(random) }) as Product

const paymentIntent = (random: Random, id: string, created: number) => {
  const last4 = some(random, TOKENS)
  const email = some(random, EMAILS)
  const name = some(random, TEXTS)
  const charge = { billing_details: { email, name }, payment_method_details: { card: { last4 } } }
  const decline_code = some(random, REASONS)
  return {
    id,
    created,
    amount: random.pick(AMOUNTS),
    amount_received: 0,
    currency: random.pick(["usd", "eur"]),
    status: random.pick(PaymentIntentStatus.literals),
    customer: some(random, IDS),
    description: some(random, PHRASES),
    charges: { data: last4 === null ? [] : [charge] },
    ...(random.chance(0.5) && { last_payment_error: { ...(decline_code !== null && { decline_code }) } }),
    metadata: metadata(random)
  } as unknown as PaymentIntent
}

const clause = <A>(random: Random, { fields }: SearchedBy<A>, ids: ReadonlyArray<string>): Clause => {
  const field = random.pick(Object.keys(fields))
  const { keyed, nullable, type } = fields[field]!
  const head = { negated: random.chance(0.3), field, ...(keyed && { key: random.pick(KEYS) }) }
  if (type === "number") {
    const operator = random.pick([":", ">", ">=", "<", "<="] as const)
    return { ...head, operator, value: random.pick(field === "amount" ? AMOUNTS : TIMES) }
  }
  if ((nullable || keyed) && random.chance(0.2)) return { ...head, operator: ":", value: null }
  const choices: Readonly<Record<string, ReadonlyArray<string>>> = {
    id: [...ids, "x"],
    status: [...PaymentIntentStatus.literals, "x"],
    currency: ["usd", "EUR"],
    customer: IDS,
    decline_code: [...REASONS, "x"],
    payer_email: EMAILS,
    // An email with a blank is refused.
    email: TEXTS.filter((text) => !/\s/u.test(text))
  }
  const text = random.pick(choices[field] ?? [...TOKENS, ...TEXTS])
  const part = text.slice(random.below(4))
  return type === "text" && [...part].length >= 3 && random.chance(0.6)
    ? { ...head, operator: "~", value: part }
    : { ...head, operator: ":", value: text }
}

const query = <A>(random: Random, searched: SearchedBy<A>, ids: ReadonlyArray<string>): SearchQuery => {
  const clauses = Array.from({ length: random.integer(1, 4) }, () => clause(random, searched, ids))
  return { connective: clauses.length === 1 ? "AND" : random.pick(["AND", "OR"]), clauses }
}

const COMPARE: Readonly<Record<string, (found: number, value: number) => boolean>> = {
  ":": (found, value) => found === value,
  ">": (found, value) => found > value,
  ">=": (found, value) => found >= value,
  "<": (found, value) => found < value,
  "<=": (found, value) => found <= value
}

/** The model of a clause, word by word. */
const says = (object: Readonly<Record<string, unknown>>, { field, key, negated, operator, value }: Clause): boolean => {
  const { charges, last_payment_error, metadata } = object as unknown as PaymentIntent
  const entry = key !== undefined && Object.hasOwn(metadata, key) ? metadata[key] : null
  const last4 = charges?.data[0]?.payment_method_details.card.last4 ?? null
  const values: Readonly<Record<string, unknown>> = {
    ...object,
    metadata: entry,
    last4,
    decline_code: last_payment_error?.decline_code ?? null,
    payer_email: charges?.data[0]?.billing_details.email ?? null
  }
  const found = values[field] as string | number | null
  const holds = (): boolean => {
    if (found === null || value === null) return found === value
    if (typeof found === "number") return COMPARE[operator]!(found, value as number)
    if (field === "id" || field === "customer") return found === value
    const [text, wanted] = [found.toLowerCase(), String(value).toLowerCase()]
    return operator === "~" ? text.includes(wanted) : text === wanted
  }
  return holds() !== negated
}

const put = Effect.fnUntraced(function* <A extends Identified>(
  kind: Resource<A, undefined>,
  make: (id: string, created: number) => A,
  known?: { readonly id: string; readonly created: number }
) {
  const transaction = yield* Transaction
  const value = make(known?.id ?? transaction.newId(kind.prefix!), known?.created ?? Math.floor(transaction.now / 1000))
  transaction.put(kind, value)
  return value
})

const remove = (id: string) =>
  Effect.flatMap(Transaction, (transaction) =>
    Effect.map(transaction.get(CUSTOMER, id), () => transaction.delete(CUSTOMER, id))
  )

/** All pages of a search, the newest first. */
const searchAll = Effect.fnUntraced(function* <A extends Identified>(
  accounts: Accounts["Service"],
  account: string,
  {
    kind,
    limit,
    searched,
    wanted
  }: {
    readonly kind: Resource<A>
    readonly searched: SearchedBy<A>
    readonly wanted: SearchQuery
    readonly limit: number
  }
) {
  const found: Array<A> = []
  for (let page: string | null = ""; page !== null;) {
    const parameters = { query: print(wanted), limit, ...(page !== "" && { page }) }
    const json: string = yield* searchDocuments(
      { account, path: "/v1/x/search", query: parameters },
      kind,
      searched
    ).pipe(Effect.provideService(Accounts, accounts))
    const answer = JSON.parse(json) as SearchResultOf<A>
    assert.strictEqual(answer.has_more, answer.next_page !== null)
    assert.isTrue(answer.has_more ? answer.data.length === limit : answer.data.length <= limit)
    found.push(...answer.data)
    page = answer.next_page
  }
  return found
})

type Objects = Map<string, Customer | PaymentIntent | Product>

/** The fields of objects of all kinds that have words. */
interface Worded {
  readonly id: string
  readonly name?: string | null
  readonly email?: string | null
  readonly phone?: string | null
  readonly description?: string | null
  readonly charges?: PaymentIntent["charges"]
  readonly metadata: Readonly<Record<string, string>>
}

/** The texts of an object in their order. Payments are found by the beginnings of words, and by whole keys. */
const textsOf = (object: Worded): ReadonlyArray<readonly [text: string | null | undefined, reach: Reach]> => {
  const { charges, description, email, id, metadata, name, phone } = object
  const details = charges?.data[0]?.billing_details
  const reach = id.startsWith("pi_") ? "beginning" : "part"
  const entries = Object.entries(metadata).flatMap(([key, value]): ReturnType<typeof textsOf> => [
    [key, reach === "part" ? reach : "whole"],
    [value, reach]
  ])
  const own = [name, email, phone, phone?.replace(/[^0-9]/g, ""), details?.name, details?.email]
  return [...own.map((text) => [text, reach] as const), ...entries, [description, reach]]
}

const hasWords = (asked: ReadonlyArray<string>, object: Worded): boolean => {
  const words = textsOf(object).flatMap(([text, reach]) => wordsIn(text ?? "").map((text) => ({ text, reach })))
  return asked.every((word) => words.slice(0, WORDS_MAX).some((other) => finds(word, other)))
}

/** Returns words of texts, in full or the beginning or another part of them. */
const askedWords = (random: Random): ReadonlyArray<string> => {
  const words = wordsIn(random.pick([...TOKENS, ...TEXTS, ...PHRASES, ...PHONES, ...KEYS]))
  const asked = Array.from({ length: random.integer(1, 2) }, () => {
    const word = words.length === 0 ? "none" : random.pick(words)
    const from = random.chance(0.7) ? 0 : random.below(word.length)
    return random.chance(0.4) ? word : word.slice(from, from + 1 + random.below(word.length))
  })
  // A part of a folded word may be folded further, as that of a combined character.
  return asked.flatMap((word) => wordsIn(word))
}

const agreeOnWords = Effect.fnUntraced(function* (
  random: Random,
  accounts: Accounts["Service"],
  account: string,
  all: Objects
) {
  const check = Effect.fnUntraced(function* <A extends Identified>(kind: Resource<A>, searched: SearchedBy<A>) {
    const asked = askedWords(random)
    const expected = [...all.values()]
      .filter((object) => object.id.startsWith(`${kind.prefix}_`) && asked.length > 0)
      .filter((object) => hasWords(asked, object))
      .map(({ id }) => id)
    const found = yield* Harness.walk("older", random.integer(1, 6), ({ limit, ...cursor }) =>
      Effect.provideService(
        searchObjects(account, kind, wordsCondition(asked, searched), { cursor, limit }),
        Accounts,
        accounts
      )
    )
    assert.deepStrictEqual(
      found.map(({ id }) => id),
      expected.toSorted().toReversed(),
      asked.join(" ")
    )
  })
  yield* check(CUSTOMER, SEARCHED_CUSTOMER)
  yield* check(PAYMENTS, FILTERED_PAYMENT_INTENT)
  yield* check(PRODUCTS, SEARCHED_PRODUCT)
})

const agree = Effect.fnUntraced(function* (
  random: Random,
  accounts: Accounts["Service"],
  account: string,
  all: Objects
) {
  const check = Effect.fnUntraced(function* <A extends Identified>(kind: Resource<A>, searched: SearchedBy<A>) {
    const objects = [...all.values()].filter(({ id }) => id.startsWith(`${kind.prefix}_`))
    const ids = objects.slice(0, 3).map(({ id }) => id)
    const wanted = query(random, searched, ids)
    const { clauses, connective } = wanted
    const expected = objects
      .filter((object) => {
        const holds = clauses.map((clause) => says(object as never, clause))
        return connective === "AND" ? holds.every(Boolean) : holds.some(Boolean)
      })
      .toSorted((a, b) => (a.id < b.id ? 1 : -1))
    const limit = random.integer(1, 6)
    const found = yield* searchAll(accounts, account, { kind, searched, wanted, limit })
    assert.deepStrictEqual(found as ReadonlyArray<unknown>, JSON.parse(JSON.stringify(expected)), print(wanted))
  })
  yield* check(CUSTOMER, SEARCHED_CUSTOMER)
  yield* check(PAYMENTS, random.pick([SEARCHED_PAYMENT_INTENT, FILTERED_PAYMENT_INTENT]))
  yield* agreeOnWords(random, accounts, account, all)
})

const run = Effect.fnUntraced(function* (seed: number, storage: Harness.Storage, steps: number) {
  const random = new Random(seed)
  const engine = yield* Harness.startEngine(storage, { kinds: KINDS })
  yield* Effect.addFinalizer(() => engine.kill)
  const { accounts } = engine
  const objects = new Map(ACCOUNTS.map((account): [string, Objects] => [account, new Map()]))
  for (let step = 0; step < steps; step++) {
    const account = random.pick(ACCOUNTS)
    const all = objects.get(account)!
    const known = random.chance(0.4) ? [...all.values()][random.below(all.size)] : undefined
    if (random.chance(0.02)) {
      yield* accounts.run(
        account,
        Effect.map(Transaction, (transaction) => transaction.wipe())
      )
      all.clear()
    } else if (known?.id.startsWith("cus_") && random.chance(0.4)) {
      yield* accounts.run(account, remove(known.id))
      all.delete(known.id)
    } else {
      const puts: Readonly<Record<string, Effect.Effect<Customer | PaymentIntent | Product, never, Transaction>>> = {
        cus: put(CUSTOMER, (id, created) => customer(random, id, created), known),
        pi: put(PAYMENTS, (id, created) => paymentIntent(random, id, created), known),
        prod: put(PRODUCTS, (id, created) => product(random, id, created), known)
      }
      const made = puts[known?.id.split("_", 1)[0] ?? random.pick(["cus", "cus", "pi", "pi", "prod"])]!
      const value = yield* accounts.run(account, made)
      all.set(value.id, value)
    }
    // Immediately after the change.
    if (random.chance(0.5)) yield* agree(random, accounts, account, all)
  }
  yield* engine.projector.drained
  yield* Harness.verified(storage, KINDS)
  yield* engine.stop
  yield* Harness.rebuilt(storage, KINDS)
  yield* Harness.verified(storage, KINDS)
  const again = yield* Harness.startEngine(storage, { kinds: KINDS })
  yield* Effect.addFinalizer(() => again.kill)
  for (const account of ACCOUNTS) {
    for (let round = 0; round < 5; round++) yield* agree(random, again.accounts, account, objects.get(account)!)
  }
})

const onPostgres: Effect.Effect<Harness.Storage, never, Scope.Scope> = Effect.flatMap(
  PostgresStorage.make,
  (database) => database.connect("search")
)

describe("search.fields, search.matching: a search", () => {
  it.live.prop(
    "finds the objects that a filter over all objects selects, in memory",
    [Seed],
    ([seed]) => Effect.scoped(Effect.flatMap(Harness.storageInMemory, (storage) => run(seed, storage, 60))),
    { arbitrary: { runs: 12, maxShrinks: 5 } }
  )

  it.live.prop(
    "finds the objects that a filter over all objects selects, on Postgres",
    [Seed],
    ([seed]) => Effect.scoped(Effect.flatMap(onPostgres, (storage) => run(seed, storage, 80))),
    { arbitrary: { runs: 4, maxShrinks: 3 } }
  )
})

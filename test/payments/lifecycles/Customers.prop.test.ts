/** Customers: the changes of an update, its event, and the remains of a deleted customer. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { UpdateCustomer } from "../../../src/domain/Customer.ts"
import { unsettable } from "../../../src/domain/Text.ts"
import { parseJson } from "../../../src/json/JsonParse.ts"
import { CUSTOMER } from "../../../src/payments/shared/Documents.ts"
import * as Customers from "../../../src/payments/lifecycles/Customers.ts"
import { findCustomer } from "../../../src/payments/shared/Documents.ts"
import { MemoryAccount } from "../../support/MemoryAccount.ts"

const word = Schema.optionalKey(Schema.NullOr(Schema.Literals(["", "one", "two"])))
const metadata = Schema.Record(Schema.Literals(["a", "__proto__"]), Schema.NullOr(Schema.Literals(["", "x", "y"])))
const texts = { email: word, name: word, phone: word, description: word }
const creation = Schema.Struct({ ...texts, metadata: Schema.optionalKey(Schema.NullOr(metadata)) })
const change = Schema.Struct({ ...texts, metadata: Schema.optionalKey(unsettable(metadata)) })

const FIELDS = ["email", "name", "phone", "description"] as const

describe("Customers", () => {
  it.effect.prop(
    "an update sets the sent fields, unsets with null and the empty string, and emits the changes",
    { created: creation, updates: Schema.Array(change).check(Schema.isMaxLength(5)) },
    ({ created, updates }) =>
      Effect.gen(function* () {
        const account = new MemoryAccount()
        let customer = yield* account.run(Customers.create(created))
        for (const field of FIELDS) assert.strictEqual(customer[field], created[field] || null)
        for (const update of updates) {
          const events = account.events.length
          const before = customer
          customer = yield* account.run(Customers.update(before.id, update))
          assert.deepStrictEqual(account.value(CUSTOMER, before.id), customer)
          for (const field of FIELDS) {
            assert.strictEqual(customer[field], update[field] === undefined ? before[field] : update[field] || null)
          }
          const changed = JSON.stringify(before) !== JSON.stringify(customer)
          assert.lengthOf(account.events, events + (changed ? 1 : 0))
          if (!changed) continue
          const event = account.events.at(-1)!
          assert.strictEqual(event.type, "customer.updated")
          assert.strictEqual(event.object, JSON.stringify(customer))
          // The previous attributes undo the update, and contain no unchanged field.
          const previous = parseJson(JSON.stringify(event.previous)) as Record<string, unknown>
          for (const [field, old] of Object.entries(previous)) {
            assert.notDeepEqual(JSON.stringify(customer[field as "name"]), JSON.stringify(old))
          }
          const undone = yield* new MemoryCopy(account).undo(customer.id, previous)
          assert.deepStrictEqual(undone, { ...before, metadata: undone.metadata })
          assert.deepStrictEqual(new Map(Object.entries(undone.metadata)), new Map(Object.entries(before.metadata)))
        }
      }),
    { arbitrary: { runs: 300 } }
  )

  it.effect("a deletion leaves the id, which no request can refer to", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount()
      const customer = yield* account.run(Customers.create({ email: "jo@example.com", name: "Jo" }))
      const stub = yield* account.run(Customers.remove(customer.id))
      assert.deepStrictEqual(stub, { id: customer.id, object: "customer", deleted: true, livemode: false })
      assert.deepStrictEqual(
        account.events.map(({ type }) => type),
        ["customer.created", "customer.deleted"]
      )
      assert.strictEqual(account.events[1]!.object, JSON.stringify(customer))
      assert.isTrue(account.documents.get(customer.id)!.deleted)
      const update = yield* Effect.flip(account.run(Customers.update(customer.id, {})))
      const deletion = yield* Effect.flip(account.run(Customers.remove(customer.id)))
      const reference = yield* Effect.flip(account.run(findCustomer(customer.id, "customer")))
      for (const error of [update, deletion, reference]) assert.strictEqual(error._tag, "ResourceMissing")
      assert.deepStrictEqual([update.param, deletion.param, reference.param], ["id", "id", "customer"])
    })
  )
})

/** A copy of an account, for a trial. */
class MemoryCopy extends MemoryAccount {
  constructor({ documents, now }: MemoryAccount) {
    super()
    this.documents = new Map(documents)
    this.now = now
  }

  undo(id: string, previous: Record<string, unknown>) {
    return this.run(Customers.update(id, previous as UpdateCustomer))
  }
}

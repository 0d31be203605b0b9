/** The people of a merchant, over any sequence of operations (semantics dashboard.people). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Role } from "../../../src/domain/Person.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import * as Merchants from "../../../src/payments/merchants/Merchants.ts"
import * as People from "../../../src/payments/team/People.ts"
import { MemoryAccount } from "../../support/MemoryAccount.ts"

/** Few addresses, so that they collide, one of them in two spellings. */
const ADDRESSES = ["ana@example.com", "ANA@example.com", "bo@example.com", "cy@example.com"] as const

const who = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4 }))
const merchant = Schema.Literals([0, 1])
const email = Schema.Literals(ADDRESSES)
const Step = Schema.Union([
  Schema.TaggedStruct("Owner", { merchant }),
  Schema.TaggedStruct("Add", { merchant, email, role: Role }),
  Schema.TaggedStruct("SetCredentials", { merchant, who, email }),
  Schema.TaggedStruct("SetRole", { merchant, who, role: Role }),
  Schema.TaggedStruct("Remove", { merchant, who })
])

const stepOf = (step: typeof Step.Type, merchantId: string, id: string) => {
  switch (step._tag) {
    case "Owner":
      return People.ensureOwner(merchantId)
    case "Add":
      return People.add(merchantId, step)
    case "SetCredentials":
      return People.setCredentials(merchantId, id, { email: step.email, password: "kept" })
    case "SetRole":
      return People.setRole(merchantId, id, step.role)
    case "Remove":
      return People.remove(merchantId, id)
  }
}

describe("People", () => {
  it.effect.prop(
    "include an owner, have addresses that are unique within the merchant, and belong to no other merchant",
    { steps: Schema.Array(Step).check(Schema.isMaxLength(30)) },
    ({ steps }) =>
      Effect.gen(function* () {
        const account = new MemoryAccount(INSTALLATION)
        const merchants = [yield* account.run(Merchants.create("One")), yield* account.run(Merchants.create("Two"))]
        const hadOwner = new Set<string>()
        for (const step of steps) {
          const everybody = account.all(People.PERSON)
          const merchantId = merchants[step.merchant]!.id
          const person = everybody["who" in step ? step.who : 0]
          const before = account.text
          const outcome = yield* Effect.result(account.run(stepOf(step, merchantId, person?.id ?? "per_none")))
          if (outcome._tag === "Failure") {
            assert.strictEqual(account.text, before)
            const isOthers = "who" in step && person?.value.merchant_id !== merchantId
            assert.strictEqual(outcome.failure._tag, isOthers ? "ResourceMissing" : "ParameterInvalid")
          } else assert.strictEqual(outcome.success.merchant_id, merchantId)

          const people = account.all(People.PERSON).map(({ value }) => value)
          for (const { id } of merchants) {
            const own = people.filter(({ merchant_id }) => merchant_id === id)
            assert.sameMembers(
              [...(account.value(People.TEAM, People.teamId(id))?.people ?? [])],
              own.map(({ id }) => id)
            )
            const hasOwner = own.some(({ role }) => role === "owner")
            assert.isTrue(hasOwner || !hadOwner.has(id), "the last owner was removed")
            if (hasOwner) hadOwner.add(id)
          }
          const taken = people.flatMap(({ email, id, merchant_id }) =>
            email === null ? [] : [[People.personEmailId(email), merchant_id, id]]
          )
          const entries = account
            .all(People.PERSON_EMAIL)
            .flatMap(({ id, value }) => Object.entries(value.people).map((entry) => [id, ...entry]))
          assert.sameDeepMembers(entries, taken)
        }
      }),
    { arbitrary: { runs: 300 } }
  )
})

/**
 * Second factors (semantics dashboard.two_step): each code counts at most once, whatever is entered when, and by
 * simultaneous requests; the secret and the recovery codes are in no record.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Redacted, Schema } from "effect"
import * as Totp from "../../../src/domain/Totp.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import * as Sessions from "../../../src/payments/team/DashboardSessions.ts"
import * as Merchants from "../../../src/payments/merchants/Merchants.ts"
import * as People from "../../../src/payments/team/People.ts"
import * as SecondFactors from "../../../src/payments/team/SecondFactors.ts"
import { MemoryAccount } from "../../support/MemoryAccount.ts"

const origin = { address: "192.0.2.7", agent: "A browser" }
const STEP_MILLIS = 30_000

const begin = Effect.gen(function* () {
  const account = new MemoryAccount(INSTALLATION)
  const merchant = yield* account.run(Merchants.create("One"))
  const person = yield* account.run(People.ensureOwner(merchant.id))
  const { sealed, secret } = SecondFactors.makeSecret(account.config, person.id)
  const codeNow = (steps = 0) => Totp.codeOf(secret, Totp.stepAt(account.now / 1000) + steps)
  const turnOn = Effect.map(
    account.run(SecondFactors.turnOn(account.config, person.id, { sealed, code: codeNow() })),
    ({ codes }) => Redacted.value(codes)
  )
  const factor = () => account.all(SecondFactors.SECOND_FACTOR)[0]!
  const match = (code: string) =>
    SecondFactors.match(account.config, person.id, factor(), code, Math.floor(account.now / 1000))
  return { account, merchant, person, sealed, secret, codeNow, turnOn, factor, match }
})

const Attempt = Schema.Union([
  Schema.TaggedStruct("App", { steps: Schema.Int.check(Schema.isBetween({ minimum: -3, maximum: 3 })) }),
  Schema.TaggedStruct("Recovery", {
    index: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 })),
    isUpper: Schema.Boolean
  }),
  Schema.TaggedStruct("Wait", { steps: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4 })) })
])

describe("a second factor", () => {
  it.effect.prop(
    "accepts each code once, within a step of the clock, and no older code of the app after a newer one",
    { attempts: Schema.Array(Attempt).check(Schema.isMaxLength(40)) },
    ({ attempts }) =>
      Effect.gen(function* () {
        const { account, factor, match, person, secret, turnOn } = yield* begin
        const recovery = yield* turnOn
        let last = Totp.stepAt(account.now / 1000)
        const unused = new Set(recovery)
        for (const attempt of attempts) {
          if (attempt._tag === "Wait") {
            account.now += attempt.steps * STEP_MILLIS
            continue
          }
          const now = Totp.stepAt(account.now / 1000)
          const step = attempt._tag === "App" ? now + attempt.steps : 0
          const plain = attempt._tag === "App" ? Totp.codeOf(secret, step) : recovery[attempt.index]!
          const code = attempt._tag === "Recovery" && attempt.isUpper ? ` ${plain.toUpperCase()}` : plain
          const proof = match(code)
          const used = proof && (yield* Effect.exit(account.run(SecondFactors.useUp(person.id, proof))))
          const isGood = used !== undefined && Exit.isSuccess(used)
          if (attempt._tag === "Recovery") {
            assert.strictEqual(isGood, unused.delete(plain))
            continue
          }
          assert.strictEqual(isGood, Math.abs(attempt.steps) <= 1 && step > last)
          if (isGood) last = step
        }
        assert.strictEqual(factor().value.recovery_codes_left, unused.size)
      }),
    { arbitrary: { runs: 200 } }
  )

  it.effect("accepts a code of two simultaneous requests once", () =>
    Effect.gen(function* () {
      const { account, codeNow, match, person, turnOn } = yield* begin
      const [recovery] = yield* turnOn
      for (const code of [codeNow(1), recovery!]) {
        // Both are compared before one of them is used.
        const proofs = [match(code), match(code)]
        const used = yield* Effect.forEach(proofs, (proof) =>
          Effect.exit(account.run(SecondFactors.useUp(person.id, proof!)))
        )
        assert.deepStrictEqual(used.map(Exit.isSuccess), [true, false])
      }
    })
  )

  it.effect("accepts no proof of another factor, of another person or after it was replaced", () =>
    Effect.gen(function* () {
      const { account, codeNow, match, merchant, person, sealed, turnOn } = yield* begin
      const [recovery] = yield* turnOn
      const proofs = [match(codeNow(1))!, match(recovery!)!]
      const other = yield* account.run(People.add(merchant.id, { email: "bo@example.com", role: "support" }))
      assert.isUndefined(SecondFactors.openSecret(account.config, other.id, sealed))
      const own = SecondFactors.makeSecret(account.config, other.id)
      const code = Totp.codeOf(own.secret, Totp.stepAt(account.now / 1000))
      yield* account.run(SecondFactors.turnOn(account.config, other.id, { sealed: own.sealed, code }))
      const refused = (id: string, proof: SecondFactors.Proof) =>
        Effect.map(Effect.flip(account.run(SecondFactors.useUp(id, proof))), ({ _tag }) => _tag)
      for (const proof of proofs) assert.strictEqual(yield* refused(other.id, proof), "CodeUsed")
      yield* account.run(SecondFactors.turnOff(person.id))
      const anew = SecondFactors.makeSecret(account.config, person.id)
      const first = Totp.codeOf(anew.secret, Totp.stepAt(account.now / 1000))
      yield* account.run(SecondFactors.turnOn(account.config, person.id, { sealed: anew.sealed, code: first }))
      for (const proof of proofs) assert.strictEqual(yield* refused(person.id, proof), "CodeUsed")
      // New recovery codes replace the old ones.
      const [old] = yield* Effect.map(account.run(SecondFactors.renewCodes(person.id)), ({ codes }) =>
        Redacted.value(codes)
      )
      yield* account.run(SecondFactors.renewCodes(person.id))
      assert.isUndefined(
        SecondFactors.match(
          account.config,
          person.id,
          account.all(SecondFactors.SECOND_FACTOR).find(({ id }) => id.endsWith(person.id))!,
          old!,
          account.now / 1000
        )
      )
    })
  )

  it.effect("is needed for every way to sign in, and a link stays until a right code", () =>
    Effect.gen(function* () {
      const { account, codeNow, match, person, turnOn } = yield* begin
      yield* turnOn
      const document = () => account.all(People.PERSON)[0]!
      const byPassword = Sessions.open(document(), "password", origin)
      assert.strictEqual((yield* Effect.flip(account.run(byPassword)))._tag, "CodeNeeded")
      const link = Redacted.value(yield* account.run(Sessions.makeLink(person)))
      assert.strictEqual((yield* Effect.flip(account.run(Sessions.openByLink(link, origin))))._tag, "CodeNeeded")
      const proof = match(codeNow(1))!
      const { session } = yield* account.run(Sessions.openByLink(link, origin, proof))
      assert.strictEqual(account.all(Sessions.SIGN_IN).at(-1)!.value.second_means, "app")
      assert.strictEqual(
        (yield* Effect.flip(account.run(Sessions.openByLink(link, origin, proof))))._tag,
        "ResourceMissing"
      )
      assert.strictEqual((yield* Effect.flip(account.run(Sessions.confirm(session.id, null))))._tag, "CodeNeeded")
      assert.strictEqual((yield* Effect.flip(account.run(Sessions.confirm(session.id, proof))))._tag, "CodeUsed")
      account.now += STEP_MILLIS
      yield* account.run(Sessions.confirm(session.id, match(codeNow(1))!))
    })
  )

  it.effect("is turned on by a code of the app only, once, and goes with its person", () =>
    Effect.gen(function* () {
      const { account, codeNow, merchant, person, sealed, turnOn } = yield* begin
      for (const code of ["", "12345x", codeNow(2)]) {
        const wrong = yield* Effect.flip(account.run(SecondFactors.turnOn(account.config, person.id, { sealed, code })))
        assert.strictEqual(wrong.param, "code")
      }
      yield* turnOn
      const again = SecondFactors.turnOn(account.config, person.id, { sealed, code: codeNow() })
      assert.isNull((yield* Effect.flip(account.run(again))).param)
      yield* account.run(People.add(merchant.id, { email: "bo@example.com", role: "owner" }))
      yield* account.run(People.remove(merchant.id, person.id))
      assert.deepStrictEqual(account.all(SecondFactors.SECOND_FACTOR), [])
      assert.isNull((yield* Effect.flip(account.run(SecondFactors.turnOff(person.id)))).param)
    })
  )

  it.effect("is stored sealed, with hashes of the recovery codes", () =>
    Effect.gen(function* () {
      const { account, secret, turnOn } = yield* begin
      const recovery = yield* turnOn
      assert.strictEqual(new Set(recovery).size, SecondFactors.RECOVERY_CODES)
      for (const code of recovery) assert.match(code, /^(?:[a-z2-7]{4}-){3}[a-z2-7]{4}$/)
      const stored = JSON.stringify([...account.documents.values()])
      const bytes = Buffer.from(secret)
      const forms = [Totp.base32(secret), bytes.toString("hex"), bytes.toString("base64url"), bytes.toString("base64")]
      for (const text of [...recovery, ...forms]) {
        assert.notInclude(stored, text)
        assert.notInclude(stored, text.replaceAll("-", ""))
      }
    })
  )
})

/** Sessions in the dashboard: opened by a link or a password, ended in every way, and kept by hashes only. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { INSTALLATION } from "../../src/payments/AccountIds.ts"
import * as Audit from "../../src/payments/Audit.ts"
import * as Sessions from "../../src/payments/DashboardSessions.ts"
import * as Merchants from "../../src/payments/Merchants.ts"
import { Passwords } from "../../src/payments/Passwords.ts"
import { PaymentsConfig } from "../../src/payments/PaymentsConfig.ts"
import * as People from "../../src/payments/People.ts"
import { MemoryAccount } from "../support/MemoryAccount.ts"
import { paymentsConfig } from "../support/PaymentsConfig.ts"

const origin = { address: "192.0.2.7", agent: "A browser" }

const begin = Effect.gen(function* () {
  const account = new MemoryAccount(INSTALLATION)
  const merchant = yield* account.run(Merchants.create("One"))
  const person = yield* account.run(People.ensureOwner(merchant.id))
  const open = Effect.gen(function* () {
    const link = Redacted.value(yield* account.run(Sessions.makeLink(person)))
    return yield* account.run(Sessions.openByLink(link, origin))
  })
  const isGood = (session: string, secret: string) => {
    const kept = account.all(Sessions.DASHBOARD_SESSION).find(({ id }) => id === session)
    const whose = account.all(People.PERSON).find(({ id }) => id === person.id)
    return kept !== undefined && whose !== undefined && Sessions.isGood(kept, whose, secret, account.now)
  }
  return { account, merchant, person, open, isGood }
})

describe("A link", () => {
  it.effect("opens one session, once, and is kept nowhere", () =>
    Effect.gen(function* () {
      const { account, isGood, person } = yield* begin
      const link = Redacted.value(yield* account.run(Sessions.makeLink(person)))
      const { secret, session } = yield* account.run(Sessions.openByLink(link, origin))
      assert.include(session, { person: person.id, means: "link", ...origin })
      assert.isTrue(isGood(session.id, Redacted.value(secret)))
      assert.isFalse(isGood(session.id, `${Redacted.value(secret).slice(1)}x`))
      assert.notInclude(account.text, link)
      assert.notInclude(account.text, Redacted.value(secret))
      const again = yield* Effect.flip(account.run(Sessions.openByLink(link, origin)))
      assert.strictEqual(again._tag, "ResourceMissing")
    })
  )

  it.effect("is of no use after ten minutes, nor once its person has gone", () =>
    Effect.gen(function* () {
      const { account, merchant, person } = yield* begin
      const late = Redacted.value(yield* account.run(Sessions.makeLink(person)))
      yield* account.advance(Sessions.LINK_SECONDS * 1000 - 1)
      const other = yield* account.run(People.add(merchant.id, { email: "bo@example.com", role: "owner" }))
      const ofOther = Redacted.value(yield* account.run(Sessions.makeLink(other)))
      yield* account.run(People.remove(merchant.id, other.id))
      yield* account.advance(1)
      for (const link of [late, ofOther, "", "nonsense"]) {
        const failure = yield* Effect.flip(account.run(Sessions.openByLink(link, origin)))
        assert.strictEqual(failure._tag, "ResourceMissing")
      }
      assert.lengthOf(account.all(Sessions.DASHBOARD_SESSION), 0)
    })
  )
})

describe("A session", () => {
  it.effect("ends after twelve hours by itself, and leaves no timer", () =>
    Effect.gen(function* () {
      const { account, isGood, open } = yield* begin
      const { secret, session } = yield* open
      yield* account.advance(Sessions.SESSION_SECONDS * 1000 - 1001)
      assert.isTrue(isGood(session.id, Redacted.value(secret)))
      yield* account.advance(1001)
      assert.isFalse(isGood(session.id, Redacted.value(secret)))
      assert.lengthOf(account.all(Sessions.DASHBOARD_SESSION), 0)
      assert.strictEqual(account.timers.size, 0)
    })
  )

  it.effect("ends with a sign-out, another password, and its person, and for no other merchant", () =>
    Effect.gen(function* () {
      const { account, isGood, merchant, open, person } = yield* begin
      const [first, second, third] = [yield* open, yield* open, yield* open]
      const good = () => [first, second, third].map(({ secret, session }) => isGood(session.id, Redacted.value(secret)))
      yield* Effect.flip(account.run(Sessions.end(first.session.id, "mer_other")))
      assert.deepStrictEqual(good(), [true, true, true])
      yield* account.run(Sessions.end(first.session.id, merchant.id))
      assert.deepStrictEqual(good(), [false, true, true])
      yield* account.run(People.setCredentials(merchant.id, person.id, { email: "ana@example.com", password: "kept" }))
      assert.deepStrictEqual(good(), [false, false, false])
      const fourth = yield* open
      yield* account.run(People.add(merchant.id, { email: "bo@example.com", role: "owner" }))
      yield* account.run(People.remove(merchant.id, person.id))
      assert.isFalse(isGood(fourth.session.id, Redacted.value(fourth.secret)))
    })
  )

  it.effect("counts as confirmed for ten minutes, and again once it is confirmed", () =>
    Effect.gen(function* () {
      const { account, open } = yield* begin
      const { session } = yield* open
      const isConfirmed = () =>
        Sessions.isConfirmed(account.value(Sessions.DASHBOARD_SESSION, session.id)!, account.now)
      assert.isTrue(isConfirmed())
      yield* account.advance(Sessions.CONFIRMED_SECONDS * 1000)
      assert.isFalse(isConfirmed())
      yield* account.run(Sessions.confirm(session.id))
      assert.isTrue(isConfirmed())
    })
  )
})

describe("An audit entry", () => {
  it.effect("is in the record of what it is about, or nowhere", () =>
    Effect.gen(function* () {
      const { account, merchant, person } = yield* begin
      const change = (fails: boolean) =>
        Effect.gen(function* () {
          yield* Merchants.show(merchant.id, { name: "Another" })
          yield* Audit.record(person, { action: "merchant.rename", subject: merchant.id, detail: "Another" })
          if (fails) return yield* Effect.fail("no")
        })
      yield* Effect.flip(account.run(change(true)))
      assert.lengthOf(account.all(Audit.AUDIT_ENTRY), 0)
      const version = account.version
      yield* account.run(change(false))
      assert.strictEqual(account.version, version + 1)
      const [entry] = account.all(Audit.AUDIT_ENTRY)
      assert.include(entry!.value, {
        action: "merchant.rename",
        subject: merchant.id,
        person: person.id,
        merchant_id: merchant.id,
        request: "req_000000000000000000000000"
      })
    })
  )
})

describe("A password", () => {
  const passwords = Passwords.layer().pipe(Layer.provide(Layer.succeed(PaymentsConfig, paymentsConfig())))

  it.live("is kept as a sealed hash, and told from every other", () =>
    Effect.gen(function* () {
      const { hash, verify } = yield* Passwords
      const [one, other] = yield* Effect.all([hash("correct horse"), hash("correct horse")], { concurrency: 2 })
      assert.notStrictEqual(one, other)
      assert.notInclude(one, "correct")
      assert.notInclude(one, "$")
      const found = yield* Effect.all(
        [
          verify("correct horse", one),
          verify("correct horsf", one),
          verify("", one),
          verify("correct horse", null),
          // The same letter, in two ways.
          Effect.flatMap(hash("caf\u00e9 caf\u00e9"), (kept) => verify("cafe\u0301 cafe\u0301", kept))
        ],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(found, [true, false, false, false, true])
    }).pipe(Effect.provide(passwords))
  )

  it.live("is not hashed while too many wait, and is again then", () =>
    Effect.gen(function* () {
      const { verify } = yield* Passwords
      const flood = Array.from({ length: 20 }, () => Effect.result(verify("x", null)))
      const results = yield* Effect.all(flood, { concurrency: "unbounded" })
      assert.deepStrictEqual(
        results.flatMap((result) => (result._tag === "Failure" ? [result.failure._tag] : [])),
        ["Unavailable", "Unavailable"]
      )
      assert.deepStrictEqual(yield* verify("x", null), false)
    }).pipe(Effect.provide(passwords))
  )
})

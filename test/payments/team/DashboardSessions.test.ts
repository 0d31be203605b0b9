/**
 * Dashboard sessions (semantics dashboard.links, dashboard.sessions): opened by a link or a password, ended in every
 * way, and stored as hashes only.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import type { Role } from "../../../src/domain/Person.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import * as Audit from "../../../src/payments/team/Audit.ts"
import * as Sessions from "../../../src/payments/team/DashboardSessions.ts"
import * as Merchants from "../../../src/payments/merchants/Merchants.ts"
import { Passwords } from "../../../src/payments/team/Passwords.ts"
import { PaymentsConfig } from "../../../src/payments/shared/PaymentsConfig.ts"
import * as People from "../../../src/payments/team/People.ts"
import { MemoryAccount } from "../../support/MemoryAccount.ts"
import { paymentsConfig } from "../../support/PaymentsConfig.ts"

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
  it.effect("opens one session, once, and is stored nowhere", () =>
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

  it.effect("ends with another password or role of its person, for good, and with no other change", () =>
    Effect.gen(function* () {
      const { account, merchant, person } = yield* begin
      yield* account.run(People.add(merchant.id, { email: null, role: "owner" }))
      const role = (role: Role) => People.setRole(merchant.id, person.id, role)
      const email = "ana@example.com"
      const changes = [
        Effect.andThen(role("support"), role("owner")),
        role("developer"),
        People.setCredentials(merchant.id, person.id, { email, password: "kept" }),
        // The same password again.
        People.setCredentials(merchant.id, person.id, { email, password: "kept" })
      ]
      for (const change of changes) {
        const [dead, alive] = [
          Redacted.value(yield* account.run(Sessions.makeLink(person))),
          Effect.map(account.run(Sessions.makeLink(person)), Redacted.value)
        ]
        yield* account.run(change)
        assert.strictEqual((yield* Effect.flip(account.run(Sessions.openByLink(dead, origin))))._tag, "ResourceMissing")
        assert.strictEqual((yield* account.run(Sessions.openByLink(yield* alive, origin))).session.person, person.id)
      }
      const link = Redacted.value(yield* account.run(Sessions.makeLink(person)))
      yield* account.run(role("developer"))
      yield* account.run(Merchants.changeAppearance(merchant.id, { name: "Another" }))
      yield* account.run(Sessions.openByLink(link, origin))
    })
  )

  it.effect("leaves no data if it expires unused", () =>
    Effect.gen(function* () {
      const { account, open, person } = yield* begin
      yield* account.run(Sessions.makeLink(person))
      yield* open
      assert.strictEqual(account.timers.size, 2)
      yield* account.advance(Sessions.LINK_SECONDS * 1000)
      assert.lengthOf(account.all(Sessions.DASHBOARD_LINK), 0)
      assert.strictEqual(account.timers.size, 1)
    })
  )

  it.effect("does not work after ten minutes, nor after its person was removed", () =>
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

  it.effect("ends if it is the person's oldest and a new one exceeds the maximum", () =>
    Effect.gen(function* () {
      const { account, isGood, merchant, open } = yield* begin
      const other = yield* account.run(People.add(merchant.id, { email: "bo@example.com", role: "owner" }))
      const theirs = Redacted.value(yield* account.run(Sessions.makeLink(other)))
      yield* account.run(Sessions.openByLink(theirs, origin))
      const opened = yield* Effect.replicateEffect(open, Sessions.SESSIONS_MAX)
      const good = () => opened.map(({ secret, session }) => isGood(session.id, Redacted.value(secret)))
      assert.notInclude(good(), false)
      yield* account.run(Sessions.end(opened[3]!.session.id))
      yield* open
      assert.deepStrictEqual(good(), [true, true, true, false, ...Array<boolean>(16).fill(true)])
      yield* open
      yield* open
      assert.deepStrictEqual(good(), [false, false, true, false, ...Array<boolean>(16).fill(true)])
      assert.lengthOf(account.all(Sessions.DASHBOARD_SESSION), Sessions.SESSIONS_MAX + 1)
      yield* account.advance(Sessions.SESSION_SECONDS * 1000)
      assert.lengthOf(account.all(Sessions.SESSIONS_OF), 0)
    })
  )

  it.effect("is not opened for a password that was changed during its check", () =>
    Effect.gen(function* () {
      const { account, merchant, person } = yield* begin
      const [before] = account.all(People.PERSON)
      yield* account.run(People.setCredentials(merchant.id, person.id, { email: "ana@example.com", password: "new" }))
      const failure = yield* Effect.flip(account.run(Sessions.open(before!, "password", origin)))
      assert.strictEqual(failure._tag, "ResourceMissing")
      assert.lengthOf(account.all(Sessions.DASHBOARD_SESSION), 0)
      const [after] = account.all(People.PERSON)
      const { session } = yield* account.run(Sessions.open(after!, "password", origin))
      assert.strictEqual(session.person, person.id)
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

  it.effect("notes its last use every ten minutes at most, with the address", () =>
    Effect.gen(function* () {
      const { account, open } = yield* begin
      const { session } = yield* open
      const used = () => account.value(Sessions.DASHBOARD_SESSION, session.id)!.last_used
      const use = (address: string) => account.run(Sessions.noteUse(session.id, address))
      yield* use("192.0.2.8")
      assert.isUndefined(used())
      yield* account.advance(Sessions.USE_SECONDS * 1000)
      const at = account.now / 1000
      yield* use("192.0.2.8")
      assert.deepStrictEqual(used(), { at, address: "192.0.2.8" })
      yield* account.advance(Sessions.USE_SECONDS * 1000 - 1)
      yield* use("192.0.2.9")
      assert.deepStrictEqual(used(), { at, address: "192.0.2.8" })
      yield* account.advance(1)
      yield* use("192.0.2.9")
      assert.deepStrictEqual(used(), { at: at + Sessions.USE_SECONDS, address: "192.0.2.9" })
      yield* account.run(Sessions.end(session.id))
      yield* use("192.0.2.9")
      assert.deepStrictEqual(account.all(Sessions.DASHBOARD_SESSION), [])
    })
  )

  it.effect("ends with all others of its person but one", () =>
    Effect.gen(function* () {
      const { account, merchant, open, person } = yield* begin
      const sessions = [yield* open, yield* open, yield* open]
      const other = yield* account.run(People.add(merchant.id, { email: "bo@example.com", role: "support" }))
      const link = Redacted.value(yield* account.run(Sessions.makeLink(other)))
      const theirs = yield* account.run(Sessions.openByLink(link, origin))
      yield* account.run(Sessions.endOthers(person, sessions[1]!.session.id))
      assert.deepStrictEqual(
        account.all(Sessions.DASHBOARD_SESSION).map(({ id }) => id),
        [sessions[1]!.session.id, theirs.session.id]
      )
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
      yield* account.run(Sessions.confirm(session.id, null))
      assert.isTrue(isConfirmed())
    })
  )
})

describe("An audit entry", () => {
  it.effect("is in the record of its command, or nowhere", () =>
    Effect.gen(function* () {
      const { account, merchant, person } = yield* begin
      const change = (fails: boolean) =>
        Effect.gen(function* () {
          yield* Merchants.changeAppearance(merchant.id, { name: "Another" })
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

  const ana = { person: "per_1", email: "ana@example.com" }
  const candidate = (password: string | null, id: string = ana.person) => ({ id, hidden: { password } })

  it.live("is stored as a hash encrypted for its person, and distinguished from every other", () =>
    Effect.gen(function* () {
      const { hash, ownersOf } = yield* Passwords
      const [one, again] = yield* Effect.all([hash(ana, "correct horse"), hash(ana, "correct horse")])
      assert.notStrictEqual(one, again)
      assert.notInclude(one, "correct")
      assert.notInclude(one, "$")
      const isRight = (password: string, kept: string | null, { email, person } = ana) =>
        Effect.map(ownersOf(email, password, [candidate(kept, person)]), ({ length }) => length === 1)
      const found = yield* Effect.all(
        [
          isRight("correct horse", one),
          isRight("correct horse", one, { ...ana, email: "ANA@Example.com" }),
          isRight("correct horsf", one),
          isRight("", one),
          isRight("correct horse", null),
          // Simulates the move of a hash to another person in the database.
          isRight("correct horse", one, { ...ana, person: "per_2" }),
          isRight("correct horse", one, { ...ana, email: "bo@example.com" }),
          // The same letter in two Unicode forms.
          Effect.flatMap(hash(ana, "caf\u00e9 caf\u00e9"), (kept) => isRight("cafe\u0301 cafe\u0301", kept))
        ],
        { concurrency: 4 }
      )
      assert.deepStrictEqual(found, [true, true, false, false, false, false, false, true])
    }).pipe(Effect.provide(passwords))
  )

  it.live("is compared with all people of an address by one hash, also if there are none", () =>
    Effect.gen(function* () {
      const { hash, ownersOf } = yield* Passwords
      const people = yield* Effect.forEach(Array.from({ length: 12 }), (_, i) =>
        Effect.map(hash({ ...ana, person: `per_${i}` }, `password ${i % 3}`), (kept) => candidate(kept, `per_${i}`))
      )
      const cpuOf = (of: typeof people) =>
        Effect.gen(function* () {
          const before = process.cpuUsage()
          const found = yield* ownersOf(ana.email, "password 1", of)
          const { system, user } = process.cpuUsage(before)
          return { found: found.map(({ id }) => id), micros: system + user }
        })
      yield* cpuOf(people)
      const [all, nobody] = [yield* cpuOf(people), yield* cpuOf([])]
      assert.deepStrictEqual(all.found, ["per_1", "per_4", "per_7", "per_10"])
      assert.deepStrictEqual(nobody.found, [])
      assert.isBelow(all.micros, 3 * nobody.micros)
      assert.isBelow(nobody.micros, 3 * all.micros)
    }).pipe(Effect.provide(passwords))
  )

  it.live("is not hashed while too many wait, and is hashed again afterwards", () =>
    Effect.gen(function* () {
      const { ownersOf } = yield* Passwords
      const attempt = ownersOf(ana.email, "x", [])
      const flood = Array.from({ length: 20 }, () => Effect.result(attempt))
      const results = yield* Effect.all(flood, { concurrency: "unbounded" })
      assert.deepStrictEqual(
        results.flatMap((result) => (result._tag === "Failure" ? [result.failure._tag] : [])),
        ["Unavailable", "Unavailable"]
      )
      assert.deepStrictEqual(yield* attempt, [])
    }).pipe(Effect.provide(passwords))
  )
})

/**
 * The life of a mail (semantics mail.attempts): under any outcomes, losses and pauses it is attempted at its times and
 * at most seven times, ends once, and keeps no secret after its end.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import { handleTimer } from "../../../src/payments/Timers.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import * as Mails from "../../../src/payments/mail/Mails.ts"
import { MemoryAccount } from "../../support/MemoryAccount.ts"
import { paymentsConfig } from "../../support/PaymentsConfig.ts"

const step = Schema.Literals(["accepted", "deferred", "refused", "lost", "full", "held"])

const SECRET = "a-secret-of-a-link-0123456789abc"

const LINK_MILLIS = 7 * 24 * 3600 * 1000

/** An account with a mail, and an outbox that notes what it is offered. */
const begin = Effect.fnUntraced(function* (expiresAt = Infinity) {
  const config = paymentsConfig({ sendsMail: true })
  const account = new MemoryAccount(INSTALLATION, config)
  const offered: Array<Mails.BegunAttempt & { readonly at: number }> = []
  let answer: ReturnType<Mails.OutboxShape["offer"]> = "taken"
  const outbox: Mails.OutboxShape = {
    offer: (attempt) => {
      if (answer === "taken") offered.push({ ...attempt, at: account.now })
      return answer
    }
  }
  const link = {
    secret: Redacted.make(SECRET),
    expiresAt: Math.min(account.now + LINK_MILLIS, expiresAt),
    sealing: config
  }
  const mail = yield* account.run(
    Effect.map(Transaction, (transaction) =>
      Mails.queue(transaction, {
        purpose: "invitation",
        subject: "per_1",
        merchantId: "mer_1",
        to: "a@example.com",
        link
      })
    )
  )
  const fire = Effect.suspend(() => {
    const due = [...account.timers.values()].toSorted((a, b) => a.dueAt - b.dueAt)[0]
    if (due === undefined) return Effect.succeed(false)
    account.now = Math.max(account.now, due.dueAt)
    const fired = Effect.gen(function* () {
      const transaction = yield* Transaction
      transaction.clearTimer(due.id)
      yield* handleTimer(due)
    })
    return account.run(fired, null).pipe(
      Effect.as(true),
      Effect.catchTag("Postponed", () => Effect.sync(() => ((account.now += 60_000), true))),
      Effect.provideService(Mails.Outbox, outbox)
    )
  })
  return {
    account,
    config,
    mail,
    offered,
    fire,
    answer: (next: typeof answer) => void (answer = next),
    now: () => account.all(Mails.MAIL)[0]!
  }
})

describe("a mail", () => {
  it.effect.prop(
    "is attempted at its times, at most seven times, and ends once, without its secret",
    { steps: Schema.Array(step).check(Schema.isMaxLength(20)) },
    ({ steps }) =>
      Effect.gen(function* () {
        const { account, answer, config, fire, mail, now, offered } = yield* begin()
        assert.notInclude(account.text, SECRET)
        let due = account.now
        let attempts = 0
        let end: "sent" | "failed" | null = null
        for (const next of steps) {
          answer(next === "full" || next === "held" ? next : "taken")
          const before = offered.length
          const fired = yield* fire
          assert.strictEqual(fired, end === null)
          if (end !== null) break
          if (attempts === Mails.ATTEMPTS_MAX || account.now >= now().hidden.expiresAt!) {
            end = "failed"
          } else if (next === "full") {
            assert.strictEqual(offered.length, before)
            // The time of the retry is the engine's.
            due = account.now
          } else if (next === "held") {
            assert.strictEqual(offered.length, before)
            due = account.now + Mails.LEASE_MILLIS
          } else {
            attempts++
            const { at, ...attempt } = offered.at(-1)!
            assert.deepStrictEqual(attempt, { account: INSTALLATION, id: mail.id, attempt: attempts })
            assert.isAtLeast(at, due)
            assert.strictEqual(Mails.secretOf(config, INSTALLATION, now()), SECRET)
            due = at + Mails.LEASE_MILLIS
            if (next === "accepted") {
              yield* account.run(Mails.conclude(mail.id, { _tag: "Accepted" }))
              end = "sent"
            } else if (next !== "lost") {
              const outcome = next === "deferred" ? "Deferred" : "Refused"
              yield* account.run(Mails.conclude(mail.id, { _tag: outcome, error: "for a reason" }))
              const pause = Mails.RETRY_AFTER_SECONDS[attempts - 1]
              if (next === "refused" || pause === undefined) end = "failed"
              else due = at + pause * 1000
            }
          }
          assert.deepInclude(now().value, { status: end ?? "pending", attempts })
          assert.strictEqual(now().hidden.sealedSecret === null, end !== null)
          assert.strictEqual(account.timers.size, end === null ? 1 : 0)
          if (end === null && next !== "full") assert.strictEqual([...account.timers.values()][0]!.dueAt, due)
        }
        if (end === null) return
        // A late outcome changes nothing.
        const ended = now().value
        for (const _tag of ["Accepted", "Refused"] as const) {
          yield* account.run(Mails.conclude(mail.id, { _tag, error: "late" }))
        }
        assert.deepStrictEqual(now().value, ended)
      })
  )

  it.effect("is not sent after the end of its link, and says so", () =>
    Effect.gen(function* () {
      const { account, fire, mail, now, offered } = yield* begin()
      yield* fire
      yield* account.run(Mails.conclude(mail.id, { _tag: "Deferred", error: "not now" }))
      account.now += LINK_MILLIS
      yield* fire
      assert.lengthOf(offered, 1)
      assert.deepInclude(now().value, { status: "failed", error: "Its link expired before it could be sent." })
    })
  )

  it.effect("that waits when mail is turned off has failed, and says why", () =>
    Effect.gen(function* () {
      const { account, now } = yield* begin()
      Object.assign(account.config, { sendsMail: false })
      yield* account.advance(1).pipe(Effect.orDie)
      assert.deepInclude(now().value, { status: "failed", error: "Mail was turned off before it could be sent." })
    })
  )

  it.effect("to a team becomes one to each address, once", () =>
    Effect.gen(function* () {
      const account = new MemoryAccount("mer_1:live", { sendsMail: true })
      const { id } = yield* account.run(
        Effect.map(Transaction, (transaction) =>
          Mails.queue(transaction, { purpose: "webhook_alert", subject: "we_1", merchantId: "mer_1", to: null })
        )
      )
      const addresses = ["a@example.com", "b@example.com", "a@example.com"]
      yield* account.run(Mails.addressTo(id, addresses))
      yield* account.run(Mails.addressTo(id, addresses))
      assert.deepStrictEqual(
        account.all(Mails.MAIL).map(({ value }) => value.to),
        ["a@example.com", "b@example.com"]
      )
      assert.strictEqual(account.timers.size, 2)
    })
  )
})

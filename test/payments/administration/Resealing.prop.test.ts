/**
 * A roll of the installation's secret (semantics operation.roll): whenever it happens, and however often the rewriting
 * process is killed, everything sealed stays readable, and in the end nothing is sealed with the old secret. The
 * documents' public parts stay as they were.
 *
 * To replay a failure, give the printed token to its property: `{ arbitrary: { replay: "…" } }`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Schema } from "effect"
import { Accounts } from "../../../src/engine/Accounts.ts"
import type { TimerHandler } from "../../../src/engine/actor/Timers.ts"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import type { AccountId, Document, Identified } from "../../../src/engine/log/Document.ts"
import type { Journal } from "../../../src/engine/log/Journal.ts"
import { Placement } from "../../../src/engine/process/Placement.ts"
import type { DocumentFormats } from "../../../src/engine/views/DocumentFormats.ts"
import type { Views } from "../../../src/engine/views/Views.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import { PROCESSOR } from "../../../src/payments/processing/ConfiguredProcessors.ts"
import { CUSTOMER, type Kept, OPERATION, WEBHOOK_ENDPOINT } from "../../../src/payments/shared/Documents.ts"
import * as Formats from "../../../src/payments/Formats.ts"
import type { KeyringShape } from "../../../src/payments/shared/Keyring.ts"
import { MAIL } from "../../../src/payments/mail/Mails.ts"
import { PERSON } from "../../../src/payments/team/People.ts"
import { countLeft, resealAll } from "../../../src/payments/administration/Resealing.ts"
import { open, seal } from "../../../src/payments/shared/Sealing.ts"
import { SECOND_FACTOR } from "../../../src/payments/team/SecondFactors.ts"
import { timer } from "../../../src/payments/shared/TimerNames.ts"
import * as Harness from "../../engine/Harness.ts"
import { keyringOf } from "../../support/PaymentsConfig.ts"
import { Random, Seed } from "../../support/Random.ts"

const OLD = 1
const NEW = 2
const HOUR_MILLIS = 3_600_000
const MERCHANTS = ["mer_1:test", "mer_1:live", "mer_2:test"]

type Hidden = Readonly<Record<string, unknown>>

/** A kind of sealed documents: its public part, and its hidden part with one or two sealed texts. */
interface Sort {
  readonly kind: Kept<Identified, unknown>
  readonly accounts: ReadonlyArray<AccountId>
  readonly value: object
  readonly hidden: (sealed: () => string) => Hidden
  readonly sealedIn: (hidden: Hidden) => ReadonlyArray<string>
  readonly purpose: (account: AccountId, id: string) => string
  readonly id?: (id: string) => string
}

const sortOf = (kind: unknown, sort: Omit<Sort, "kind">): Sort => ({ kind: kind as Sort["kind"], ...sort })

const pair = (hidden: Hidden): ReadonlyArray<string> => {
  const { previous, sealedSecret } = hidden as { sealedSecret: string; previous?: { sealedSecret: string } }
  return previous === undefined ? [sealedSecret] : [sealedSecret, previous.sealedSecret]
}

const single = (name: string) => (hidden: Hidden) => (hidden[name] === null ? [] : [hidden[name] as string])

const personOf = (id: string) => id.slice("second_factor:".length)

/** Documents with sealed texts, and others of the same kinds without. */
const SORTS: ReadonlyArray<Sort> = [
  sortOf(WEBHOOK_ENDPOINT, {
    accounts: MERCHANTS,
    value: { url: "https://shop.example" },
    hidden: (sealed) => ({ sealedSecret: sealed() }),
    sealedIn: pair,
    purpose: (account, id) => `webhook secret ${account}/${id}`
  }),
  sortOf(WEBHOOK_ENDPOINT, {
    accounts: MERCHANTS,
    value: { url: "https://rolled.example" },
    hidden: (sealed) => ({
      sealedSecret: sealed(),
      previous: { sealedSecret: sealed(), expiresAt: 1 },
      failingSince: 2
    }),
    sealedIn: pair,
    purpose: (account, id) => `webhook secret ${account}/${id}`
  }),
  ...(["waiting", "final"] as const).map((status) =>
    sortOf(OPERATION, {
      accounts: MERCHANTS,
      value: { kind: "authorize", status, payment_intent: "pi_1" },
      hidden: (sealed) => ({ sealedChallenge: status === "waiting" ? sealed() : null, evidence: [] }),
      sealedIn: single("sealedChallenge"),
      purpose: (_, id) => `challenge ${id}`
    })
  ),
  ...(["pending", "sent"] as const).map((status) =>
    sortOf(MAIL, {
      accounts: [INSTALLATION, ...MERCHANTS],
      value: { status, subject: "per_1" },
      hidden: (sealed) => ({ sealedSecret: status === "pending" ? sealed() : null, expiresAt: 3 }),
      sealedIn: single("sealedSecret"),
      purpose: (account, id) => `mail ${account}/${id}`
    })
  ),
  sortOf(PROCESSOR, {
    accounts: [INSTALLATION],
    value: { merchant_id: "mer_1", livemode: false },
    hidden: (sealed) => ({ sealedSecret: sealed(), previous: { sealedSecret: sealed(), expiresAt: 1 } }),
    sealedIn: pair,
    purpose: (_, id) => `processor ${id}`
  }),
  sortOf(SECOND_FACTOR, {
    accounts: [INSTALLATION],
    value: { created: 1 },
    hidden: (sealed) => ({ sealedSecret: sealed(), lastStep: 7, recoveryCodes: ["a"] }),
    sealedIn: single("sealedSecret"),
    purpose: (_, id) => `second factor ${personOf(id)}`,
    id: (id) => `second_factor:${id}`
  }),
  ...[true, false].map((hasPassword) =>
    sortOf(PERSON, {
      accounts: [INSTALLATION],
      value: { merchant_id: "mer_1" },
      hidden: (sealed) => ({ password: hasPassword ? sealed() : null, epoch: 1, link_epoch: 2 }),
      sealedIn: single("password"),
      purpose: (_, id) => `password ${id}`
    })
  ),
  sortOf(CUSTOMER, {
    accounts: MERCHANTS,
    value: { email: null, name: null, description: null, phone: null, metadata: {} },
    hidden: () => ({}),
    sealedIn: () => [],
    purpose: () => ""
  })
]

interface Made {
  readonly sort: Sort
  readonly account: AccountId
  readonly id: string
  readonly texts: ReadonlyArray<string>
  readonly json: string
}

/** Mails keep their timers. */
const handler: TimerHandler["Service"] = ({ id, name }) =>
  Effect.map(Transaction, (transaction) => transaction.setTimer({ id, name, dueAt: transaction.now + HOUR_MILLIS }))

type Engine = Harness.RunningEngine

/** Makes a document, as a process with this keyring does. */
const make = Effect.fnUntraced(function* (engine: Engine, random: Random, keyring: KeyringShape, sort: Sort) {
  const account = random.pick(sort.accounts)
  return yield* engine.accounts.run(
    account,
    Effect.map(Transaction, (transaction): Made => {
      const fresh = transaction.newId(sort.kind.prefix ?? "per")
      const id = sort.id?.(fresh) ?? fresh
      const texts: Array<string> = []
      const hidden = sort.hidden(() => {
        texts.push(`text ${random.below(1_000_000)}`)
        return seal({ keyring, purpose: sort.purpose(account, id) }, texts.at(-1)!)
      })
      const value = { id, ...sort.value }
      transaction.put(sort.kind, value, hidden)
      if (sort.kind.name === "mail" && texts.length > 0) {
        transaction.setTimer(timer("mail.attempt", id, transaction.now + HOUR_MILLIS))
      }
      return { sort, account, id, texts, json: JSON.stringify(value) }
    })
  )
})

/** Checks that a process with this keyring reads everything as it was sealed. */
const reads = Effect.fnUntraced(function* (engine: Engine, keyring: KeyringShape, all: ReadonlyArray<Made>) {
  for (const { account, id, json, sort, texts } of all) {
    const { hidden, json: now } = (yield* engine.accounts.read(account, id)) as Document
    assert.strictEqual(now, json)
    const opened = sort
      .sealedIn(hidden as Hidden)
      .map((sealed) => open({ keyring, purpose: sort.purpose(account, id) }, sealed))
    assert.deepStrictEqual(opened, texts)
    const before = sort.hidden(() => "x")
    const strip = (part: Hidden) =>
      JSON.stringify(part, (_, value) => (sort.sealedIn(hidden as Hidden).includes(value) ? "x" : value))
    assert.strictEqual(strip(hidden as Hidden), JSON.stringify(before))
  }
})

const provided = (engine: Engine, storage: Harness.Storage) => {
  const services = storage.pipe(
    Context.add(Accounts, engine.accounts as Accounts["Service"]),
    Context.add(Placement, engine.placement)
  )
  return <A, E>(effect: Effect.Effect<A, E, Accounts | DocumentFormats | Journal | Placement | Views>) =>
    Effect.provide(Effect.provideContext(effect, services), Formats.layer)
}

const Plan = Schema.Struct({
  seed: Seed,
  /** Documents before the roll, and those that a process makes which has not noticed it. */
  before: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 })),
  late: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10 })),
  /** Visits of the storage after which each process dies. */
  kills: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 60 }))).check(Schema.isMaxLength(4))
})

describe("operation.roll: a roll of the secret", () => {
  it.effect.prop(
    "loses nothing and leaves nothing under the old secret, however often its process is killed",
    { plan: Plan },
    Effect.fnUntraced(function* ({ plan }) {
      yield* Harness.startClock
      yield* Harness.flowingTime
      const random = new Random(plan.seed)
      const storage = yield* Harness.storageInMemory
      const all: Array<Made> = []
      const options = { kinds: Formats.KINDS, handler, schedulers: 0 } as const
      const [before, after, alone] = [keyringOf(NEW, OLD), keyringOf(NEW, OLD), keyringOf(NEW)]
      before.follow(`print ${OLD}`)
      const first = yield* Harness.startEngine(storage, options)
      for (let i = 0; i < plan.before; i++) all.push(yield* make(first, random, before, random.pick(SORTS)))
      yield* first.projector.drained
      yield* first.kill

      // Processes that die while they rewrite, each after some visits of the storage.
      for (const visitsMax of plan.kills) {
        let die: Effect.Effect<void> = Effect.void
        let visits = 0
        const faults = () => Effect.suspend(() => (++visits === visitsMax ? die : Effect.void))
        const engine = yield* Harness.startEngine(storage, { ...options, faults })
        die = engine.kill
        const work = provided(engine, storage)(resealAll({ keyring: after }, Effect.void))
        yield* Effect.timeoutOption(Effect.exit(work), 10_000)
        yield* engine.kill
        const reader = yield* Harness.startEngine(storage, options)
        yield* reads(reader, after, all)
        yield* reader.kill
      }

      const last = yield* Harness.startEngine(storage, options)
      const run = provided(last, storage)
      for (let i = 0; i < plan.late; i++) all.push(yield* make(last, random, before, random.pick(SORTS)))
      yield* reads(last, after, all)
      yield* last.projector.drained
      const left = yield* run(countLeft({ keyring: after }))
      const rewritten = yield* run(resealAll({ keyring: after }, Effect.void))
      assert.strictEqual(
        rewritten,
        Object.values(left).reduce((sum, count) => sum + count, 0)
      )
      yield* last.projector.drained
      assert.deepStrictEqual(yield* run(countLeft({ keyring: after })), {})
      assert.strictEqual(yield* run(resealAll({ keyring: after }, Effect.void)), 0)
      yield* reads(last, alone, all)
      yield* last.stop
      yield* Harness.verified(storage, Formats.KINDS)
    }),
    { arbitrary: { runs: 30, maxShrinks: 10 } }
  )
})

/**
 * Carries out erasures that commands have begun (`CustomerErasure.ts`, `PersonErasure.ts`), in the process that serves
 * the account.
 *
 * - A record that sets an erasure's timer begins the work. It begins again after a start, and when a partition arrives.
 * - Payments that were never paid are ended. While another one is in progress the erasure waits.
 * - It ends with a command, after everything else is done.
 */
import { type Cause, Context, Effect, Layer, Semaphore } from "effect"
import type { Charge } from "../../domain/Charge.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { Accounts, type Unavailable } from "../../engine/Accounts.ts"
import * as Erasures from "../../engine/Erasures.ts"
import { type ErasedPerson, ErasureStore } from "../../engine/Erasures.ts"
import type { AccountId, Document } from "../../engine/log/Document.ts"
import { ErasureKey } from "../../engine/log/Erased.ts"
import type { Journal, StorageFailure } from "../../engine/log/Journal.ts"
import type { JournalCorrupt } from "../../engine/log/Record.ts"
import { logOf } from "../../engine/process/Log.ts"
import { CommitFeed, type SetTimer } from "../../engine/views/CommitFeed.ts"
import type { DocumentFormats } from "../../engine/views/DocumentFormats.ts"
import { INSTALLATION } from "../shared/AccountIds.ts"
import * as CustomerErasure from "./CustomerErasure.ts"
import {
  CHARGE,
  HELD_PAYMENT_METHODS,
  type HeldPaymentMethods,
  heldPaymentMethodsId,
  PAYMENT_METHOD
} from "../shared/Documents.ts"
import { PersonalData } from "./PersonalData.ts"
import * as PersonErasure from "./PersonErasure.ts"
import { Processors } from "../processing/Processor.ts"
import { readDocument } from "../shared/ReadDocument.ts"
import { subjectOf, type TimerName } from "../shared/TimerNames.ts"

const log = logOf("payments")

const ERASE: TimerName = "data.erase"
const PAGE = 100
/** Pause before an erasure begins again that failed, or that a payment in progress stood against. */
const AGAIN_MILLIS = 5 * 60_000
/** The log of requests is written within this time. */
const LOGGED_MILLIS = 1000

export interface Options {
  /** Makes the pauses of one erasure. */
  readonly pauses: () => Effect.Effect<void>
  /** Called before the work of each erasure. */
  readonly onBegin: (person: Pick<ErasedPerson, "account" | "id">) => Effect.Effect<void>
}

type Failure = Unavailable | StorageFailure | JournalCorrupt

export interface EraserShape {
  /** Notes that an erasure was begun, perhaps once more. */
  readonly noteBegun: (account: AccountId, id: string) => Effect.Effect<void, Failure>
  /** Returns whether the erasure of a person has come to its end. */
  readonly isDone: (account: AccountId, id: string) => Effect.Effect<boolean, Failure>
}

/** Null in a process that erases nothing. */
export const Eraser = Context.Reference<EraserShape | null>("till/payments/Eraser", { defaultValue: () => null })

type Needs = Accounts | DocumentFormats | ErasureStore | Journal | Processors

/** Makes the function that carries out one erasure. It returns false if a payment in progress stands against it. */
export const make = Effect.fnUntraced(function* (key: ErasureKey, options: Options) {
  const ofCustomer = yield* makeOfCustomer(key, options)
  const ofPerson = yield* makeOfPerson(key, options)
  return (account: AccountId, id: string): Effect.Effect<boolean, Failure> =>
    isOfTeam(id) ? Effect.as(ofPerson(account, id), true) : ofCustomer(account, id)
})

/** Whether an id is that of a person of a team, and not a customer's. */
export const isOfTeam = (id: string): boolean => id.startsWith(`${PREFIXES.person}_`)

const makeOfCustomer = Effect.fnUntraced(function* (key: ErasureKey, options: Options) {
  const accounts = yield* Accounts
  const store = yield* ErasureStore
  const processors = yield* Processors
  const rewrite = yield* Erasures.make(key)

  /** Ends open payments. Returns whether others are in progress. */
  const endPayments = Effect.fnUntraced(function* (account: AccountId, customer: string) {
    const open: Array<string> = []
    yield* CustomerErasure.forEachPayment(account, customer, ({ value }) => {
      if (CustomerErasure.isOpen(value)) open.push(value.id)
    })
    for (const id of open) {
      const command = CustomerErasure.giveUp(customer, id)
      yield* accounts.run(account, Effect.provideService(command, Processors, processors))
    }
    return (yield* CustomerErasure.standingOf(account, customer)).payment !== null
  })

  return Effect.fnUntraced(
    function* (account: AccountId, customer: string): Effect.fn.Return<boolean, Failure, Accounts> {
      const person = { account, id: customer }
      yield* options.onBegin(person)
      yield* store.note({ ...person, isDone: false })
      if (yield* endPayments(account, customer)) return false
      const personal = new PersonalData(customer, yield* idsOf(account, customer))
      const pause = options.pauses()
      const deleteRequests = Effect.suspend(() =>
        store.deleteRequests(account, {
          ids: [customer, ...personal.found],
          texts: [...personal.texts],
          searched: [...personal.searched]
        })
      )
      // First of all: after a crash no record has the texts by which some of the requests are recognized.
      yield* rewrite(account, { mayConcern: personal.mayConcern, without: personal.lookAt, pause })
      yield* deleteRequests
      const count = yield* rewrite(account, { mayConcern: personal.mayConcern, without: personal.without, pause })
      yield* Effect.sleep(LOGGED_MILLIS)
      yield* deleteRequests
      yield* accounts.run(account, CustomerErasure.conclude(customer))
      yield* store.note({ ...person, isDone: true })
      yield* log.info(`The data of customer ${customer} was erased from ${count} records`, undefined, {
        cause: "erased"
      })
      return true
    },
    Effect.provideService(Accounts, accounts)
  )
})

/** Makes the function that carries out the erasure of a person who was in a team, in one account. */
const makeOfPerson = Effect.fnUntraced(function* (key: ErasureKey, { onBegin, pauses }: Options) {
  const accounts = yield* Accounts
  const store = yield* ErasureStore
  const rewrite = yield* Erasures.make(key)
  return Effect.fnUntraced(
    function* (account: AccountId, id: string): Effect.fn.Return<void, Failure, Accounts> {
      yield* onBegin({ account, id })
      yield* store.note({ account, id, isDone: false })
      const emails = yield* PersonErasure.emailsOf(id)
      const data = new PersonErasure.MemberData(id, emails)
      yield* store.deleteRequests(account, { ids: [id], texts: emails, searched: [] })
      let count = yield* rewrite(account, { without: data.withoutOthers, pause: pauses() })
      if (account === INSTALLATION) {
        count += yield* rewrite(account, { without: data.without, pause: pauses(), atOnce: true })
      }
      yield* accounts.run(account, PersonErasure.conclude(id))
      yield* store.note({ account, id, isDone: true })
      const text = `The data of ${id} was erased from ${count} records of account ${account}`
      yield* log.info(text, undefined, { cause: "erased" })
    },
    Effect.provideService(Accounts, accounts)
  )
})

/** Returns the ids of a customer's payments, and of payment methods that no longer name the customer. */
const idsOf = Effect.fnUntraced(function* (
  account: AccountId,
  customer: string
): Effect.fn.Return<ReadonlySet<string>, Unavailable, Accounts> {
  const ids = new Set<string>()
  const cards = new Set<string>()
  yield* CustomerErasure.forEachPayment(account, customer, ({ hidden, value }) => {
    ids.add(value.id)
    if (hidden?.checkoutSession !== undefined) ids.add(hidden.checkoutSession)
    if (value.payment_method !== null) cards.add(value.payment_method)
  })
  yield* forEachCharge(account, customer, ({ payment_method }) => cards.add(payment_method))
  for (const card of yield* everHeld(account, customer)) ids.add(card)
  for (const card of cards) {
    // A card that another customer has is theirs.
    const holder = (yield* readDocument(account, PAYMENT_METHOD, card))?.value.customer
    if (holder === null || holder === customer) ids.add(card)
  }
  return ids
})

const forEachCharge = Effect.fnUntraced(function* (
  account: AccountId,
  customer: string,
  use: (charge: Charge) => void
): Effect.fn.Return<void, Unavailable, Accounts> {
  const accounts = yield* Accounts
  const query = { kind: CHARGE.name, prefix: CHARGE.prefix, labels: { customer }, limit: PAGE }
  let last: string | undefined
  for (;;) {
    const cursor = last === undefined ? {} : { olderThan: last }
    const { documents, hasMore } = yield* accounts.list(account, { ...query, ...cursor })
    for (const document of documents) use((document as Document<Charge>).value)
    if (!hasMore) return
    last = documents.at(-1)!.id
  }
})

/** Returns all payment methods that were ever attached to a customer, from the history of the entry that names them. */
const everHeld = Effect.fnUntraced(function* (
  account: AccountId,
  customer: string
): Effect.fn.Return<ReadonlySet<string>, Unavailable, Accounts> {
  const accounts = yield* Accounts
  const query = { ids: [heldPaymentMethodsId(customer)], limit: PAGE }
  const held = new Set<string>()
  let last: string | undefined
  for (;;) {
    const { entries, hasMore } = yield* accounts.history(account, {
      ...query,
      ...(last !== undefined && { olderThan: last })
    })
    for (const entry of entries.flatMap(({ documents }) => documents)) {
      if (entry.deleted || entry.kind !== HELD_PAYMENT_METHODS.name) continue
      for (const card of (entry as Document<HeldPaymentMethods>).value.data) held.add(card)
    }
    if (!hasMore) return held
    last = entries.at(-1)!.id
  }
})

/** Carries out erasures as long as the layer lives. */
export const layer = (options: Options): Layer.Layer<never, never, Needs | CommitFeed> =>
  Layer.effect(
    Eraser,
    Effect.gen(function* () {
      const key = yield* ErasureKey
      if (key === null) return null
      yield* (yield* CommitFeed).follow({
        name: ERASE,
        aheadMillis: CustomerErasure.LEASE_MILLIS,
        onSet: yield* makeOnSet(yield* make(key, options))
      })
      const { note, people } = yield* ErasureStore
      return {
        noteBegun: (account, id) => note({ account, id, isDone: false }),
        isDone: (account, id) =>
          Effect.map(people, (all) => all.some((one) => one.account === account && one.id === id && one.isDone))
      }
    })
  )

/** Makes the function that carries out the erasure of a timer, beside the caller. */
const makeOnSet = Effect.fnUntraced(function* (erase: Effect.Success<ReturnType<typeof make>>) {
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  // One after the other: each reads all records of its account.
  const turn = Semaphore.makeUnsafe(1)
  /** The erasures that are under way, and whether they were begun once more since. */
  const running = new Map<string, boolean>()
  const onSet = ({ account, id }: Pick<SetTimer, "account" | "id">): void => {
    const name = `${account} ${id}`
    if (running.has(name)) return void running.set(name, true)
    running.set(name, false)
    const failed = (cause: Cause.Cause<unknown>) =>
      log.error(`The erasure ${id} of account ${account} did not come to its end; it will begin again`, cause, {
        cause: "erasure"
      })
    const isMoved = (failure: Failure) => failure._tag === "Unavailable" && failure.isElsewhere
    const work = turn
      .withPermits(1)(erase(account, subjectOf(id)))
      .pipe(
        // Another process serves the account now, and goes on with it.
        Effect.catchIf(isMoved, () => Effect.succeed(true)),
        Effect.catchCause((cause) => Effect.as(failed(cause), false))
      )
    const carriedOut = Effect.flatMap(work, (isDone) => {
      const isAgain = running.get(name) === true
      running.delete(name)
      const again = Effect.sync(() => onSet({ account, id }))
      return isAgain ? again : isDone ? Effect.void : Effect.delay(again, AGAIN_MILLIS)
    })
    runFork(Effect.forkIn(carriedOut, scope))
  }
  return onSet
})

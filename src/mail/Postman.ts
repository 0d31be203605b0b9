/**
 * Sends the mails of the accounts that this process owns: takes recorded attempts from the outbox, and carries each
 * outcome back into the journal (semantics mail.attempts).
 *
 * - The outbox is bounded: an attempt that finds no room stays with its timer, in the journal. So any number of mails
 *   can wait without memory.
 * - An attempt begins only once its record is durable, and only where its account is served now.
 * - A mail is in the outbox once. While it is, its timer begins no further attempt.
 * - On close, and for a partition that leaves, no attempt begins, and running ones get a short time. The outcome of an
 *   attempt that was cut off is unknown; its next one follows after the lease.
 */
import { Effect, Layer, Queue, Schedule } from "effect"
import { Accounts } from "../engine/Accounts.ts"
import { Condition } from "../engine/process/Condition.ts"
import * as Loop from "../engine/process/Loop.ts"
import { type Partition, partitionOf, Placement } from "../engine/process/Placement.ts"
import { logOf } from "../engine/process/Log.ts"
import { INSTALLATION } from "../payments/shared/AccountIds.ts"
import { type BegunAttempt, MAIL, type MailDocument, type MailOutcome, Outbox } from "../payments/mail/Mails.ts"
import * as Mails from "../payments/mail/Mails.ts"
import { PaymentsConfig } from "../payments/shared/PaymentsConfig.ts"
import * as People from "../payments/team/People.ts"
import { readDocument } from "../payments/shared/ReadDocument.ts"
import { compose } from "./Letters.ts"
import * as Smtp from "./Smtp.ts"

const log = logOf("mail")

/** Connections to the mail server at the same time. */
const SENDERS = 4
/** Attempts that wait for a sender or are under way, at most. */
const OUTBOX_MAX = 2048
/** Pause after an outcome could not be written. */
const RETRY_MILLIS = 250
/** Time for running attempts when closing or leaving a partition. */
const GRACE_MILLIS = 2000

/** An outbox that the timers fill and the postman empties. */
class Tray {
  readonly queue = Effect.runSync(Queue.unbounded<BegunAttempt>())
  readonly #held = new Map<string, BegunAttempt>()
  readonly #released = new Condition()
  /** Partitions that have left this process, or are leaving it. */
  readonly #left = new Set<Partition>()
  #isClosed = false

  offer(attempt: BegunAttempt): "taken" | "held" | "full" {
    const key = keyOf(attempt)
    if (this.#held.has(key)) return "held"
    if (this.#held.size >= OUTBOX_MAX || !this.mayBegin(attempt)) return "full"
    this.#held.set(key, attempt)
    Queue.offerUnsafe(this.queue, attempt)
    return "taken"
  }

  release(attempt: BegunAttempt): void {
    this.#held.delete(keyOf(attempt))
    this.#released.signal()
  }

  mayBegin({ account }: BegunAttempt): boolean {
    return !this.#isClosed && !this.#left.has(partitionOf(account))
  }

  arrive(partition: Partition): void {
    this.#left.delete(partition)
  }

  readonly leave = (partition: Partition): Effect.Effect<void> =>
    Effect.suspend(() => {
      this.#left.add(partition)
      return this.#without(({ account }) => partitionOf(account) === partition)
    })

  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    this.#isClosed = true
    return this.#without(() => true)
  })

  /** Waits a short time until none of the chosen attempts is held. */
  #without(isChosen: (attempt: BegunAttempt) => boolean): Effect.Effect<void> {
    const isDone = () => !this.#held.values().some(isChosen) || undefined
    return Effect.asVoid(Effect.timeoutOption(this.#released.waitFor(isDone), GRACE_MILLIS))
  }
}

const keyOf = ({ account, id }: BegunAttempt): string => `${account} ${id}`

/** The addresses of the people who look after webhooks. A person who has not accepted an invitation gets no alerts. */
const teamOf = Effect.fnUntraced(function* (merchantId: string) {
  const team = yield* readDocument(INSTALLATION, People.TEAM, People.teamId(merchantId))
  const people = yield* Effect.forEach(team?.value.people ?? [], (id) => readDocument(INSTALLATION, People.PERSON, id))
  return people.flatMap((person) => {
    if (person === undefined) return []
    const { email, has_password, role } = person.value
    return role !== "support" && has_password && email !== null ? [email] : []
  })
})

/** Logs an attempt without its address. */
const logAttempt = ({ account, attempt, id }: BegunAttempt, { value }: MailDocument, outcome: MailOutcome) =>
  (outcome._tag === "Accepted" ? log.debug("A mail was sent") : log.warning("A mail was not sent", outcome.error)).pipe(
    Effect.annotateLogs({ account, mail: id, purpose: value.purpose, attempt, outcome: outcome._tag })
  )

const OUTDATED: MailOutcome = { _tag: "Refused", error: "Its object was deleted, or its link no longer works." }

const makeCarry = Effect.fnUntraced(function* (options: Smtp.SmtpOptions) {
  const accounts = yield* Accounts
  const { isHere } = yield* Placement

  const attemptAt = Effect.fnUntraced(function* (begun: BegunAttempt, mail: MailDocument, to: string) {
    const letter = yield* compose(begun.account, mail)
    const { created } = mail.value
    const outcome: MailOutcome =
      letter === undefined ? OUTDATED : yield* Smtp.send(options, { id: mail.id, to, created, letter })
    yield* logAttempt(begun, mail, outcome)
    return Mails.conclude(begun.id, outcome)
  })

  /** Carries out an attempt; does nothing if its record was not written, or the mail has ended. */
  return Effect.fnUntraced(function* (begun: BegunAttempt) {
    const { account, attempt, id } = begun
    if (!isHere(account)) return
    const mail = yield* readDocument(account, MAIL, id)
    if (mail === undefined || mail.value.status !== "pending" || mail.value.attempts < attempt) return
    const { merchant_id, to } = mail.value
    const outcome = to === null ? Mails.addressTo(id, yield* teamOf(merchant_id)) : yield* attemptAt(begun, mail, to)
    yield* accounts.run(account, outcome).pipe(
      Effect.tapError((error) =>
        log.warning("The outcome of a mail could not be written yet", error, { isOfWrite: true })
      ),
      Effect.retry({ schedule: Schedule.spaced(RETRY_MILLIS), while: () => isHere(account) })
    )
  })
})

/** Provides the outbox; `layer` empties it. */
export const layerTray: Layer.Layer<never> = Layer.sync(Outbox, () => new Tray())

export const layer = (options: Smtp.SmtpOptions): Layer.Layer<never, never, Accounts | PaymentsConfig | Placement> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const tray = (yield* Outbox) as Tray
      const placement = yield* Placement
      const carry = yield* makeCarry(options)
      const step = Effect.flatMap(Queue.take(tray.queue), (begun) =>
        Effect.suspend(() => (tray.mayBegin(begun) ? carry(begun) : Effect.void)).pipe(
          // The attempt is repeated after its lease.
          Effect.catchCause((cause) => log.error("A mail could not be attempted", cause)),
          Effect.ensuring(Effect.sync(() => tray.release(begun)))
        )
      )
      for (let sender = 0; sender < SENDERS; sender++) yield* Effect.forkScoped(Loop.forever("sending of mail", step))
      yield* Effect.addFinalizer(() => tray.close)
      yield* placement.listen({
        onAcquired: (partition) => Effect.sync(() => tray.arrive(partition)),
        onLeaving: tray.leave
      })
    })
  )

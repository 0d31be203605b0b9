/**
 * The dispatcher of operations (semantics operations.*): calls processors outside of accounts, in the process that
 * serves the account, and has each word applied by a command.
 *
 * - A record that sets an operation's timer wakes the dispatcher. After a start, and when a partition arrives, every
 *   operation that a request may still wait for is attended to at once; it may have been sent before.
 * - When a processor that was out of order answers again, all its doubtful operations are looked at.
 * - Every call of an operation has the operation's id as its key, so that two processes may call at the same time.
 * - "Not executed" is only believed of the very first call. Later it says nothing about the calls before it: the
 *   processor is asked, and the call repeated; or a fence makes sure that it never will be executed.
 * - The process dies, or the account moves, at any point: the timer finds the operation.
 * - A restored installation may have forgotten what came of an operation: until it is reconciled with the processor,
 *   the operation is looked at, and nothing is called or given up (`Reconciliation.ts`).
 */
import { Clock, Effect, Layer, Schedule, type Scope } from "effect"
import { ANSWER_MILLIS, type OperationResolvedBy } from "../domain/Operation.ts"
import { Accounts, type Unavailable } from "../engine/Accounts.ts"
import type { AccountId } from "../engine/log/Document.ts"
import { logOf } from "../engine/process/Log.ts"
import * as Metrics from "../engine/process/Metrics.ts"
import { type Partition, partitionOf, Placement } from "../engine/process/Placement.ts"
import { CommitFeed } from "../engine/views/CommitFeed.ts"
import { Views } from "../engine/views/Views.ts"
import { AnswerWriter } from "../payments/shared/AnswerWriter.ts"
import { OPERATION, PAYMENT_INTENT } from "../payments/shared/Documents.ts"
import { OperationDispatcher, type OperationDispatcherShape } from "../payments/lifecycles/OperationDispatcher.ts"
import * as OperationOutcomes from "../payments/lifecycles/OperationOutcomes.ts"
import { type OperationDocument, requestOf } from "../payments/lifecycles/Operations.ts"
import { PaymentsConfig } from "../payments/shared/PaymentsConfig.ts"
import { Processors } from "../payments/processing/Processor.ts"
import { isDocumentOf } from "../payments/shared/ReadDocument.ts"
import type { Outcome, RemoteProcessor } from "../payments/processing/RemoteProcessor.ts"
import { subjectOf, type TimerName } from "../payments/shared/TimerNames.ts"
import * as Adoption from "./Adoption.ts"
import * as Reconciliation from "./Reconciliation.ts"

/** Pauses between the calls of an operation that a request waits for, in milliseconds. */
const PAUSES_MILLIS = [1000, 3000, 6000]
/** A call is repeated under its key only this long before the processor forgets the key, in milliseconds. */
const KEY_MARGIN_MILLIS = 3_600_000
/** Pause between two attempts to write an outcome, in milliseconds. */
const WRITE_MILLIS = 500
/** Time for the calls of a leaving partition, and the interval of looks whether they have ended, in milliseconds. */
const GRACE_MILLIS = 2000
const GRACE_STEP_MILLIS = 20
/** Looks at the operations of a processor that is back. */
const LOOKS_AT_ONCE = 16

const log = logOf("processors")

const ATTEND: TimerName = "operation.attend"

type Needs = Accounts | AnswerWriter | CommitFeed | PaymentsConfig | Placement | Processors | Views

/** Runs the dispatcher as long as the layer lives. */
export const layer: Layer.Layer<OperationDispatcher, never, Needs> = Layer.effect(
  OperationDispatcher,
  Effect.gen(function* () {
    const attending = yield* makeAttending
    const feed = yield* CommitFeed
    yield* feed.follow({
      name: ATTEND,
      aheadMillis: ANSWER_MILLIS,
      onSet: ({ account, id, isNew }) => attending.attend(account, subjectOf(id), isNew)
    })
    yield* Effect.forkScoped(attendAll(attending.attend))
    yield* lookAgain(attending.look)
    return { look: attending.look, adopt: attending.adopt, reconcile: attending.reconcile }
  })
)

/** Attends to the operations that were begun before this process. */
const attendAll = (attend: Attend) =>
  Effect.gen(function* () {
    const { held } = yield* Placement
    const views = yield* Views
    const before = (yield* Clock.currentTimeMillis) + ANSWER_MILLIS
    for (const { account, id } of yield* views.timersNamed(ATTEND, held(), before))
      attend(account, subjectOf(id), false)
  }).pipe(
    Effect.tapError((failure) => log.error("The operations without an outcome could not be read", failure.message)),
    Effect.retry({ schedule: Schedule.spaced(WRITE_MILLIS) }),
    Effect.ignore
  )

/** Looks at once at the doubtful operations of a processor that is back: their next looks may be a day away. */
const lookAgain = Effect.fnUntraced(function* (look: OperationDispatcherShape["look"]) {
  const accounts = yield* Accounts
  const { held } = yield* Placement
  const { onBack } = yield* Processors
  const views = yield* Views
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const lookAtAll = Effect.fnUntraced(function* (processor: string) {
    const timers = yield* views.timersNamed(ATTEND, held(), Number.MAX_SAFE_INTEGER)
    const lookIfDoubtful = Effect.fnUntraced(function* ({ account, id }: (typeof timers)[number]) {
      const operation = yield* accounts.read(account, subjectOf(id))
      if (!isDocumentOf(operation, OPERATION)) return
      const { processor: asked, status } = operation.value
      // A final one that is looked at was decided by a person, and is to be confirmed.
      const isDoubtful = status === "unresolved" || status === "decide" || status === "final"
      if (isDoubtful && asked === processor) yield* look(account, operation.id, "look")
    })
    yield* Effect.forEach(timers, (timer) => Effect.ignore(lookIfDoubtful(timer)), { concurrency: LOOKS_AT_ONCE })
  })
  onBack?.((processor) => {
    const looked = Effect.catchCause(lookAtAll(processor), (cause) =>
      log.error(`The operations of ${processor}, which is back, could not be looked at`, cause, { cause: "back" })
    )
    runFork(Effect.forkIn(looked, scope))
  })
})

/** An operation that is attended to. */
interface Running {
  readonly account: AccountId
  /** Whether it has to be attended to once more. */
  isAgain: boolean
  /** Whether no process but this one can have called the processor for it. */
  isOnly: boolean
}

const OPEN = {
  name: "till_operations_open",
  description: "Operations that this process calls a payment processor for."
}

/** `isNew` is true if no earlier process or turn can have called the processor. */
type Attend = (account: AccountId, id: string, isNew: boolean) => void

const makeAttending: Effect.Effect<{ readonly attend: Attend } & OperationDispatcherShape, never, Needs | Scope.Scope> =
  Effect.gen(function* () {
    const runFork = Effect.runForkWith(yield* Effect.context<never>())
    const scope = yield* Effect.scope
    const work = yield* makeWork
    const running = new Map<string, Running>()
    const attend: Attend = (account, id, isNew) => {
      const known = running.get(id)
      if (known !== undefined) {
        known.isAgain = true
        return
      }
      const now: Running = { account, isAgain: false, isOnly: isNew }
      running.set(id, now)
      const attended = Effect.catchCause(
        work.attend(account, id, () => now.isOnly),
        (cause) =>
          log.error(`The operation ${id} of account ${account} could not be attended to`, cause, {
            cause: "attend"
          })
      )
      const done = Effect.sync(() => {
        running.delete(id)
        if (now.isAgain) attend(account, id, false)
      })
      runFork(Effect.forkIn(Effect.andThen(attended, done), scope))
    }
    yield* Metrics.observeGauge(OPEN, () => running.size)
    const ended = (partition: Partition): Effect.Effect<void> =>
      Effect.suspend(() =>
        [...running.values()].some(({ account }) => partitionOf(account) === partition)
          ? Effect.delay(ended(partition), GRACE_STEP_MILLIS)
          : Effect.void
      )
    const share = (isShared: (account: AccountId) => boolean) => {
      for (const one of running.values()) if (isShared(one.account)) one.isOnly = false
    }
    yield* (yield* Placement).listen({
      // The partition's next owner asks about the calls that take longer. It may give the partition back.
      onLeaving: (partition) =>
        Effect.asVoid(Effect.timeoutOption(ended(partition), GRACE_MILLIS)).pipe(
          Effect.tap(() => Effect.sync(() => share((account) => partitionOf(account) === partition)))
        ),
      onUnconfirmed: () => share(() => true)
    })
    return { ...work, attend }
  })

/** The accounts and processors of an operation, and the writing of its words. */
const makeAccess = Effect.gen(function* () {
  const accounts = yield* Accounts
  const processors = yield* Processors
  const config = yield* PaymentsConfig
  const answers = yield* AnswerWriter

  const find = (account: AccountId, id: string): Effect.Effect<OperationDocument | undefined, Unavailable> =>
    Effect.map(accounts.read(account, id), (entry) => (isDocumentOf(entry, OPERATION) ? entry : undefined))

  /** Finds an operation with its processor. */
  const findBoth = (account: AccountId, id: string) =>
    Effect.map(find(account, id), (operation) => {
      const processor = operation && processors.byId(operation.value.processor)
      return operation === undefined || processor == null ? undefined : { operation, processor }
    })

  /** Runs a command. After a failed write it is unknown whether it ran, and running it again changes nothing. */
  const written = <A>(account: AccountId, command: Effect.Effect<A, never, OperationOutcomes.OutcomeServices>) => {
    const provided = command.pipe(
      Effect.provideService(PaymentsConfig, config),
      Effect.provideService(Processors, processors),
      Effect.provideService(AnswerWriter, answers)
    )
    return Effect.retry(accounts.run(account, provided), {
      schedule: Schedule.spaced(WRITE_MILLIS),
      while: ({ isElsewhere }) => !isElsewhere
    })
  }

  const conclude = (account: AccountId, id: string, outcome: Outcome, by: OperationResolvedBy) =>
    written(account, OperationOutcomes.conclude(id, outcome, by))

  return { accounts, processors, find, findBoth, written, conclude }
})

const makeWork = Effect.gen(function* () {
  const { isHere } = yield* Placement
  const access = yield* makeAccess
  const { accounts, conclude, findBoth } = access

  /** Returns the authorization whose payer, or whose outcome, the payment waits for. */
  const waitingOf = (account: AccountId, { value }: OperationDocument) =>
    Effect.map(accounts.read(account, value.payment_intent), (payment) =>
      isDocumentOf(payment, PAYMENT_INTENT) ? (payment.hidden?.remote?.waiting ?? null) : null
    )

  /** Asks about the authorization whose payer has authenticated before the processor could give it up. */
  const askFirst = Effect.fnUntraced(function* (account: AccountId, operation: OperationDocument) {
    const waiting = yield* waitingOf(account, operation)
    if (waiting !== null) yield* look(account, waiting, "look")
  })

  /** Asks about an operation, and has the processor end a challenge without which the payment has gone on. */
  const askOrEnd = Effect.fnUntraced(function* (
    account: AccountId,
    processor: RemoteProcessor,
    operation: OperationDocument
  ) {
    const found = yield* ask(processor, operation)
    const { id, status } = operation.value
    if (found.kind !== "challenge" || status !== "waiting" || processor.onlyLooks) return found
    const isWanted = (yield* waitingOf(account, operation)) === id
    return isWanted ? found : yield* processor.fence(requestOf(operation))
  })

  const look: OperationDispatcherShape["look"] = Effect.fnUntraced(function* (account, id, by) {
    const both = yield* findBoth(account, id)
    if (both === undefined) return false
    const { operation, processor } = both
    // An operation that a request waits for is being called; its word comes from there, or from the processor now.
    const found =
      operation.value.status === "open"
        ? withoutDenial(yield* processor.look(requestOf(operation)))
        : yield* askOrEnd(account, processor, operation)
    yield* conclude(account, id, found, by)
    return isWord(found)
  })

  /** Asks about an operation. After a restore, the processor gives up what it has not carried out. */
  const settle = Effect.fnUntraced(function* (account: AccountId, id: string) {
    const both = yield* findBoth(account, id)
    if (both?.processor.onlyLooks !== true) return yield* look(account, id, "look")
    const found = yield* ask(both.processor, both.operation, true)
    yield* conclude(account, id, found, "look")
    return isWord(found)
  })

  const attend = Effect.fnUntraced(
    function* (account: AccountId, id: string, isOnly: () => boolean) {
      if (!isHere(account)) return
      const both = yield* findBoth(account, id)
      if (both === undefined) return
      const { operation, processor } = both
      const { status } = operation.value
      if (status === "open" && !processor.onlyLooks) {
        const outcome = yield* execute(processor, operation, { isHere: () => isHere(account), isOnly })
        if (!isWord(outcome)) return
        const isTooLate = operation.value.kind === "void" && outcome.kind === "too_late"
        if (isTooLate && outcome.now === "succeeded") yield* askFirst(account, operation)
        return yield* conclude(account, id, outcome, "answer")
      }
      if (status === "open" || operation.hidden.asks) yield* Effect.asVoid(look(account, id, "look"))
    },
    // The timer finds the operation again, here or in the process that serves the account now.
    Effect.catchTag("Unavailable", () => Effect.void)
  )
  const adopt = Adoption.make(access)
  return { attend, look, adopt, reconcile: Reconciliation.make({ ...access, settle, adopt }) }
})

/** Asks the processor about an operation, and does what its answer asks for. */
const ask = Effect.fnUntraced(function* (
  processor: RemoteProcessor,
  operation: OperationDocument,
  isReconciling = false
): Effect.fn.Return<Outcome> {
  const request = requestOf(operation)
  const found = yield* processor.look(request)
  const age = (yield* Clock.currentTimeMillis) - request.begunAt
  const isRepeatable = !isReconciling && age < processor.keyMillis - KEY_MARGIN_MILLIS
  const onlyLooks = processor.onlyLooks && !isReconciling
  switch (nextStepOf(operation, found, { isReconciling, isRepeatable, onlyLooks })) {
    case "believe":
      return found
    case "wait":
      return withoutDenial(found)
    case "fence":
      return yield* processor.fence(request)
    case "repeat":
      return withoutDenial(yield* processor.perform(request))
  }
})

interface Asking {
  /** After a restore, what was not executed is given up. */
  readonly isReconciling: boolean
  /** The call can be repeated: the processor still knows its key, and no restore has forgotten its outcome. */
  readonly isRepeatable: boolean
  /** After a restore, before the reconciliation. */
  readonly onlyLooks: boolean
}

/**
 * Decides what the answer to a look asks for. The first row that matches counts.
 *
 * | Operation                               | Answer                  | Next step                                |
 * | --------------------------------------- | ----------------------- | ---------------------------------------- |
 * | after a restore, not reconciled         | any                     | wait: nothing is given up                |
 * | to be decided (1)                       | any                     | wait: a person decides                   |
 * | made at the processor itself            | any                     | believe                                  |
 * | not happened, as a person has said      | not executed, challenge | fence: it never will                     |
 * | any other that is final                 | any                     | believe                                  |
 * | authorization that is unresolved        | challenge               | fence: no payer is there to authenticate |
 * | authorization                           | not executed            | fence: no payer is there to pay          |
 * | capture, void, refund                   | not executed            | repeat, or fence if that cannot be       |
 * | any other                               | any other               | believe                                  |
 *
 * (1) Unless only because the restore has taken a day: the reconciliation goes on with it.
 */
const nextStepOf = (
  { hidden: { asks, cause }, value: { kind, outcome, status } }: OperationDocument,
  { kind: found }: Outcome,
  { isReconciling, isRepeatable, onlyLooks }: Asking
): "believe" | "wait" | "fence" | "repeat" => {
  if (onlyLooks) return "wait"
  if (status === "decide" && !(isReconciling && outcome?.kind === "unknown")) return "wait"
  if (cause === "processor") return "believe"
  const isNotExecuted = found === "not_executed"
  const isChallenge = found === "challenge"
  const isDeniedByPerson = asks && outcome?.kind === "not_executed"
  if (status === "final") return isDeniedByPerson && (isNotExecuted || isChallenge) ? "fence" : "believe"
  if (kind === "authorize") return isNotExecuted || (isChallenge && status === "unresolved") ? "fence" : "believe"
  if (!isNotExecuted) return "believe"
  return isRepeatable ? "repeat" : "fence"
}

/** Calls the processor for a request that waits, until there is a word or the time of the request is nearly over. */
const execute = Effect.fnUntraced(function* (
  processor: RemoteProcessor,
  operation: OperationDocument,
  { isHere, isOnly }: { readonly isHere: () => boolean; readonly isOnly: () => boolean }
): Effect.fn.Return<Outcome> {
  const request = requestOf(operation)
  const first = yield* processor.perform(request)
  let outcome = isOnly() ? first : withoutDenial(first)
  for (const pause of PAUSES_MILLIS) {
    if (isWord(outcome) || !isHere()) break
    yield* Effect.sleep(pause)
    const found = yield* processor.look(request)
    outcome = isWord(withoutDenial(found)) ? found : withoutDenial(yield* processor.perform(request))
  }
  return outcome
})

const isWord = ({ kind }: Outcome): boolean => kind !== "unknown" && kind !== "in_progress"

/** "Not executed" about one call says nothing about the calls before it. */
const withoutDenial = (outcome: Outcome): Outcome =>
  outcome.kind === "not_executed" ? { kind: "unknown", why: outcome.why } : outcome

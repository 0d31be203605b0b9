/**
 * A virtual gateway and its faults by a plan, in the time of a simulation. The simulation of one service and that of
 * several runners share it, with their merchants (`Shop.ts`) and their checks (`LedgerChecks.ts`).
 *
 * World time is the test clock and the jumps over hours and days, in which nothing but the wall clock moves: an idle
 * service costs nothing. Processes notice a jump as they notice a wall clock that was set.
 */
import { Effect, Exit, Fiber, Schema } from "effect"
import type { ProcessorsShape } from "../../src/payments/processing/Processor.ts"
import {
  type Call,
  type Caller,
  type Fault,
  FAULTS,
  type Message,
  type Mistake,
  VirtualProcessor,
  withMistake,
  WRONG
} from "../models/Operations.ts"
import type { Random } from "../support/Random.ts"
import { advance } from "./VirtualTime.ts"

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

export const GatewayPlan = Schema.Struct({
  /** Probability of a fault of a call. */
  faults: Schema.Literals([0, 0.2, 0.5]),
  /** Whether some answers are wrong, so that a person decides. */
  wrong: Schema.Boolean,
  /** Whether the clocks of processes and accounts are moved, and hours pass. */
  clocks: Schema.Boolean,
  /** Whether operations end in doubt, one after the other, and a person decides while the next ones begin. */
  doubts: Schema.Boolean,
  /** Whether the gateway forgets the keys of operations after a day. */
  forgets: Schema.Boolean,
  payments: Schema.Int.check(Schema.isBetween({ minimum: 2, maximum: 5 }))
})
export type GatewayPlan = typeof GatewayPlan.Type

const LATENESS = [SECOND, 15 * SECOND, MINUTE, HOUR, 25 * HOUR] as const
const SKEWS = [-2 * HOUR, 0, 2 * HOUR] as const

/** The longest time that the test clock passes for an action; later ones wait for a jump. */
const SLEEP_MILLIS_MAX = 2 * MINUTE

/** The time for which a process looks at an operation because of a message or a payer, in milliseconds. */
const LOOK_MILLIS = 10_000

/** The longest time that merchants take until they have all answers, or give up, in milliseconds. */
const BUSY_MILLIS_MAX = DAY

/** Another runner has called for an operation. */
export const MOVED = "operation moved"

export const POINTS_OF_CALLS = ["call.before", "call.after"] as const

/** The fates of the gateway's messages. */
export const FATES: ReadonlyArray<string> = ["early", "twice", "shuffled", "lost"].map((fate) => `message ${fate}`)

/** Everything that can happen in a simulation of one service. */
export const HAPPENINGS: ReadonlyArray<string> = [
  ...FAULTS,
  ...WRONG,
  ...LATENESS.map((millis) => `late by ${millis / SECOND} s`),
  ...FATES,
  "clock ahead",
  "clock behind",
  "test clock moved",
  "hours passed",
  "payer authenticated",
  "payer refused",
  "person decided that it happened",
  "person decided that it did not",
  "person decided among others"
]

/** Counts what has happened in all runs. */
export class Happened {
  readonly counts = new Map<string, number>()

  readonly note = (what: string, times: number = 1): void => {
    this.counts.set(what, (this.counts.get(what) ?? 0) + times)
  }

  missing(happenings: ReadonlyArray<string>): ReadonlyArray<string> {
    return happenings.filter((what) => !this.counts.has(what))
  }
}

export interface WorldOptions {
  readonly plan: GatewayPlan
  readonly random: Random
  readonly happened: Happened
  /** The time of the test clock, in milliseconds. */
  readonly clock: () => number
  readonly run: <A>(effect: Effect.Effect<A>) => Promise<A>
  readonly mistake?: Mistake | undefined
}

export class GatewayWorld {
  readonly gateway: VirtualProcessor
  readonly random: Random
  readonly plan: GatewayPlan
  readonly happened: Happened
  /** Hands a message to Till. Returns false if Till wants it once more. */
  deliver: (message: Message, operation: string) => Promise<boolean> = async () => true
  /** Counts what processes and clients do, so that time passes quickly while they wait. */
  activity = 0
  isOver = false
  /** Whether `pass` advances the time at present, and `flowing` does not. */
  isPassing = false
  readonly #options: WorldOptions
  #ahead = 0
  /** A fault of all calls until a time of the test clock. */
  #lasting: { readonly fault: Fault; readonly until: number } = { fault: "none", until: 0 }
  readonly #skews = new Map<string, number>()
  #waiting: Array<{ readonly at: number; readonly action: () => void }> = []
  /** Numbers of messages on their way. */
  readonly #under = new Set<number>()
  #messages = 0
  #busyMillis = 0
  readonly #overdue = Promise.withResolvers<never>()
  /** The process that has called last, by operation. */
  readonly #callers = new Map<string, string>()

  constructor(options: WorldOptions) {
    const { happened, plan, random } = options
    this.#options = options
    this.plan = plan
    this.random = random
    this.happened = happened
    this.#overdue.promise.catch(() => {})
    this.gateway = new VirtualProcessor({
      fault: (call) => this.#fault(call),
      delay: () => (this.isOver ? 0 : random.pick([0, 0, 0, 5, 50, 500, 8000, 25_000])),
      lateness: () => {
        const lateness = random.pick(LATENESS)
        happened.note(`late by ${lateness / SECOND} s`)
        return lateness
      },
      later: this.later,
      now: this.now,
      onChange: this.#send,
      holdMillis: () => (random.chance(0.5) ? Infinity : 3 * DAY)
    })
  }

  readonly now = (): number => this.#options.clock() + this.#ahead

  /** The wall clock of a process, in milliseconds. */
  wallNow(process: string): number {
    return this.now() + (this.#skews.get(process) ?? 0)
  }

  /** Sets the clock of a process for a while, as a machine's clock is set wrongly, and then rightly. */
  stepClock(process: string): void {
    const skew = this.random.pick(SKEWS)
    this.#skews.set(process, skew)
    if (skew !== 0) this.happened.note(skew > 0 ? "clock ahead" : "clock behind")
    void this.sleep(this.random.pick([SECOND, 30 * SECOND])).then(() => this.#skews.delete(process))
  }

  readonly sleep = (millis: number): Promise<void> => this.#options.run(Effect.sleep(millis))

  readonly later = (millis: number, action: () => void): void => {
    const acting = () => {
      this.activity++
      action()
    }
    if (millis === 0) acting()
    else if (millis > SLEEP_MILLIS_MAX) this.#waiting.push({ at: this.now() + millis, action: acting })
    else void this.sleep(millis).then(acting)
  }

  /** Sets the wall clock of everybody ahead, and lets what waits for that time happen. */
  jump(millis: number): void {
    this.#ahead += millis
    const due = this.#waiting.filter(({ at }) => at <= this.now()).toSorted((a, b) => a.at - b.at)
    this.#waiting = this.#waiting.filter((one) => !due.includes(one))
    for (const { action } of due) action()
  }

  /** The processors of a process. The effect waits while the process may not run. */
  processorsOf(alive: Effect.Effect<void>, visit: Caller["visit"], process: string): ProcessorsShape {
    const { mistake, plan } = this.#options
    const remote = this.gateway.remoteOf({
      visit: (point) =>
        Effect.suspend(() => {
          this.activity++
          return alive.pipe(Effect.andThen(visit(point)), Effect.andThen(alive))
        })
    })
    const called = mistake === undefined ? remote : withMistake(remote, mistake)
    return this.gateway.processorsOf({
      ...called,
      keyMillis: plan.forgets ? DAY : called.keyMillis,
      perform: (request) => {
        const before = this.#callers.get(request.id) ?? process
        if (before !== process) this.happened.note(MOVED)
        this.#callers.set(request.id, process)
        return called.perform(request)
      }
    })
  }

  /**
   * Waits for a process that looks at an operation. Returns whether there is a word; undefined if it cannot look. A
   * process that dies never ends what it has begun.
   */
  async looked(look: Effect.Effect<boolean, unknown>): Promise<boolean | undefined> {
    const joined = Effect.flatMap(Effect.forkDetach(look), Fiber.join)
    const heard = await this.#options.run(Effect.exit(Effect.timeoutOption(joined, LOOK_MILLIS)))
    return Exit.isSuccess(heard) ? heard.value._tag === "Some" && heard.value.value : undefined
  }

  /** Whether the wall clock moves while requests wait. */
  get mayJump(): boolean {
    return this.plan.clocks || this.plan.doubts
  }

  /** Waits for the merchants. Fails if they wait for something that never comes. */
  busy<A>(work: Promise<A>): Promise<A> {
    return Promise.race([work, this.#overdue.promise])
  }

  /** The time passes by itself. */
  readonly passed = (millis: number): void => {
    this.#busyMillis += millis
    if (this.#busyMillis > BUSY_MILLIS_MAX) this.#overdue.reject(new Error("Something is waited for that never comes"))
  }

  /** Ends all faults. */
  end(): void {
    this.isOver = true
    this.#skews.clear()
    this.gateway.mend()
  }

  #fault(call: Call): Fault {
    const { plan, random } = this
    const now = this.#options.clock()
    const isLasting = now < this.#lasting.until
    if (this.isOver || (!isLasting && !random.chance(plan.faults))) return "none"
    const fault = isLasting ? this.#lasting.fault : random.pick(plan.wrong && random.chance(0.3) ? WRONG : FAULTS)
    // A fault that lasts hits the repetitions of a call, too.
    if (!isLasting && random.chance(plan.doubts ? 0.6 : 0.2)) {
      this.#lasting = {
        fault,
        until: now + random.pick(plan.doubts ? [40 * SECOND, 5 * MINUTE] : [5 * SECOND, 40 * SECOND])
      }
    }
    // A conflict about a key is the answer to a call with the key.
    if (fault === "409 mismatch" && call !== "perform") return "none"
    this.happened.note(fault)
    return fault
  }

  readonly #send = (operation: string, isAnswering: boolean): void => {
    const { happened, isOver, random } = this
    if (!isOver && random.chance(0.3)) return happened.note("message lost")
    const copies = !isOver && random.chance(0.3) ? 2 : 1
    if (copies > 1) happened.note("message twice")
    for (let copy = 0; copy < copies; copy++) {
      const delay = random.pick([0, 0, 20, 2000, 30_000, HOUR])
      if (isAnswering && delay === 0) happened.note("message early")
      const number = this.#messages++
      this.#under.add(number)
      // The state is in the gateway once the message leaves.
      queueMicrotask(() => this.later(isOver ? 1 : delay, () => void this.#hand(operation, number)))
    }
  }

  async #hand(operation: string, number: number): Promise<void> {
    this.#under.delete(number)
    if ([...this.#under].some((other) => other < number)) this.happened.note("message shuffled")
    for (let attempt = 0; attempt < 5; attempt++) {
      if (await this.deliver(this.gateway.messageOf(operation), operation)) return
      await this.sleep(2 ** attempt * SECOND)
    }
  }
}

/** Turns of the event loop without any activity after which everything waits for time. */
const QUIET_TURNS = 8
const STEP_MILLIS = 5

/** Advances time for ever, in small steps while something happens and in longer ones while everything waits. */
export const flowing = (world: GatewayWorld, stepMillisMax: number): Effect.Effect<never> =>
  Effect.gen(function* () {
    let [step, seen, quiet] = [STEP_MILLIS, world.activity, 0]
    for (;;) {
      if (!world.isPassing) {
        yield* advance(step)
        world.passed(step)
      }
      yield* Effect.yieldNow
      const isQuiet = seen === world.activity
      seen = world.activity
      quiet = isQuiet ? quiet + 1 : 0
      step = quiet < QUIET_TURNS ? STEP_MILLIS : Math.min(step * 2, stepMillisMax)
    }
  })

/** Lets everything run that needs no time. */
const settled = (world: GatewayWorld): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let quiet = 0, seen = world.activity; quiet < QUIET_TURNS; quiet++) {
      yield* Effect.yieldNow
      if (seen !== world.activity) quiet = 0
      seen = world.activity
    }
  })

/** Lets time pass at once. */
export const pass = (world: GatewayWorld, millis: number): Effect.Effect<void> =>
  Effect.gen(function* () {
    world.isPassing = true
    yield* settled(world)
    yield* advance(millis)
    yield* settled(world)
    world.isPassing = false
  })

/** The longest time until a process notices that its wall clock was set, in milliseconds. */
export const NOTICED_MILLIS = 31_000

const jumps = (world: GatewayWorld, all: ReadonlyArray<number>): Effect.Effect<void> =>
  Effect.forEach(
    all,
    (millis) =>
      Effect.suspend(() => {
        world.jump(millis)
        return pass(world, NOTICED_MILLIS)
      }),
    { discard: true }
  )

/** The time in which everything happens that a decision has made possible. */
export const anHour = (world: GatewayWorld): Effect.Effect<void> => jumps(world, [0, 2 * MINUTE, 57 * MINUTE])

/** Thirty days without a fault, with the decisions of banks and without those of payers. */
export const thirtyDays = (world: GatewayWorld): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { gateway, random } = world
    // Late requests arrive.
    yield* jumps(world, [0, MINUTE, MINUTE, 5 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 8 * HOUR, 15 * HOUR])
    for (const [payment, { status }] of gateway.entries) {
      if (status === "pending") gateway.answer(payment, random.chance(0.5))
    }
    yield* jumps(world, [0, HOUR, 6 * HOUR, ...Array.from({ length: 29 }, () => DAY)])
  })

/**
 * Programs of operations on an object, checked by its state table. A program is data: a creation and the operations
 * after it. A driver runs it, against an account in memory or over HTTP; the table determines the result of every step:
 * the response, the order of events, and the visible state.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"

/** The result of a step of the table. */
export interface Step<Model> {
  readonly after: Model
  readonly answer: string
  readonly events: ReadonlyArray<string>
}

/** The result of a refused creation, which writes nothing. */
export interface Refused {
  readonly after: null
  readonly answer: string
}

/** Elapsed time, in milliseconds. */
export interface Wait {
  readonly op: "wait"
  readonly millis: number
}

export interface Program<Creation, Command> {
  readonly creation: Creation
  readonly steps: ReadonlyArray<Command | Wait>
}

/** A state table, as a model. Times are in milliseconds of the account's clock. */
export interface Table<Creation, Command, Model extends object, Seen> {
  readonly create: (creation: Creation, now: number) => Step<Model> | Refused
  readonly apply: (before: Model, command: Command, now: number, creation: Creation) => Step<Model>
  /** Returns the next timed step until a time, if there is one. */
  readonly timePasses: (before: Model, until: number, creation: Creation) => Step<Model> | undefined
  readonly expected: (model: Model, creation: Creation) => Seen
  /** Returns whether a command has an object to act on; if not, it is skipped. */
  readonly applies?: (model: Model, command: Command) => boolean
  /** Returns the name of a state in the report of visited cells. */
  readonly nameOf: (model: Model) => string
}

/** Runs the operations of a program. */
export interface Driver<Creation, Command, Seen> {
  readonly now: () => number
  /** Returns the response, in the terms of the tables. */
  readonly create: (creation: Creation) => Effect.Effect<string>
  readonly run: (command: Command) => Effect.Effect<string>
  readonly wait: (millis: number) => Effect.Effect<void>
  readonly seen: Effect.Effect<Seen>
  /** Types of the events since the creation began, oldest first. */
  readonly events: Effect.Effect<ReadonlyArray<string>>
  /** Checks further invariants after every step. */
  readonly sound?: () => void
  /** Returns a value that stays the same object while nothing is written. */
  readonly written?: () => unknown
}

/** An error in a response. */
export interface ClientError {
  readonly code: string
  readonly param: string | null
  readonly message: string
  readonly decline_code?: string
}

/** Returns an error in the terms of the tables. */
export const wordsOf = ({ code, decline_code, message, param }: ClientError): string => {
  if (code === "card_declined") return `declined ${decline_code}`
  if (code.endsWith("_unexpected_state")) {
    const status = /'s status is `(\w+)`/.exec(message)?.[1]
    return status === undefined ? `${code} ${param}` : `${code} ${status}`
  }
  if (code === "amount_too_large") return [code, param, /at most (\d+)/.exec(message)?.[1]].filter(Boolean).join(" ")
  return param === null ? code : `${code} ${param}`
}

export const isRefusal = (answer: string): boolean => answer !== "ok" && !answer.startsWith("declined")

const isWait = (step: object): step is Wait => "op" in step && step.op === "wait"

/** Runs a program and compares after every step. Adds the visited cells of the table to `visited`. */
export const follow = Effect.fnUntraced(function* <
  Creation,
  Command extends { readonly op: string },
  Model extends object,
  Seen
>(
  table: Table<Creation, Command, Model, Seen>,
  driver: Driver<Creation, Command, Seen>,
  { creation, steps }: Program<Creation, Command>,
  visited: Set<string> = new Set()
): Effect.fn.Return<Set<string>> {
  const created = table.create(creation, driver.now())
  const untouched = driver.written?.()
  assert.strictEqual(yield* driver.create(creation), created.answer, "create")
  if (!("events" in created)) {
    assert.strictEqual(driver.written?.(), untouched, "a refusal leaves nothing")
    assert.deepStrictEqual(yield* driver.events, [])
    return visited
  }
  let model = created.after
  let events = [...created.events]
  const check = Effect.fnUntraced(function* (label: string) {
    assert.deepStrictEqual<unknown>(yield* driver.seen, table.expected(model, creation), label)
    assert.deepStrictEqual(yield* driver.events, events, label)
    driver.sound?.()
  })
  yield* check("create")
  for (const step of steps) {
    const from = table.nameOf(model)
    const label = `${JSON.stringify(step)} in ${from}`
    if (isWait(step)) {
      const until = driver.now() + step.millis
      yield* driver.wait(step.millis)
      for (;;) {
        const next = table.timePasses(model, until, creation)
        if (next === undefined) break
        visited.add(`${table.nameOf(model)} time ${table.nameOf(next.after)}`)
        events = [...events, ...next.events]
        model = next.after
      }
    } else {
      if (table.applies?.(model, step) === false) continue
      const written = driver.written?.()
      const { after, answer, events: emitted } = table.apply(model, step, driver.now(), creation)
      assert.strictEqual(yield* driver.run(step), answer, label)
      if (isRefusal(answer)) assert.strictEqual(driver.written?.(), written, "a refusal leaves nothing")
      visited.add(`${from} ${step.op} ${answer.split(" ")[0]} ${table.nameOf(after)}`)
      events = [...events, ...emitted]
      model = after
    }
    yield* check(label)
  }
  return visited
})

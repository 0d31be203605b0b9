/** `till processors` configures the processors of merchants (semantics processors.cli). */
import { Clock, Console, Effect, Option, Redacted, Schema } from "effect"
import * as app from "../app.ts"
import { columns, timeOf } from "./Columns.ts"
import { readSecret } from "./Credentials.ts"
import { timeFrom } from "./Time.ts"
import { WrongArguments } from "./WrongArguments.ts"

type Processor = NonNullable<app.Administered["processors"]>[number]

const HEADS = ["ID", "MERCHANT", "MODE", "KIND", "STATUS", "CREATED", "URL"]
const modeOf = ({ livemode }: Processor) => (livemode ? "live" : "test")
const cells = (processor: Processor) => {
  const { created, id, kind, merchant_id, status, url } = processor
  return [id, merchant_id, modeOf(processor), kind, status, timeOf(created), url]
}

const factsOf = (processor: Processor): string => {
  const { created, id, kind, merchant_id, profile, restored_at, status, url } = processor
  return columns([
    ["processor", id],
    ["merchant", merchant_id],
    ["mode", modeOf(processor)],
    ["kind", kind],
    ["status", status],
    ["url", url],
    ["created", timeOf(created)],
    ["name", profile?.name ?? "-"],
    ["currencies", profile?.currencies?.join(", ") ?? (profile === null ? "-" : "any")],
    ["fields", profile?.fields_url ?? "-"],
    ...(restored_at === undefined ? [] : [["restored", `to ${timeOf(restored_at)}, to be reconciled`] as const])
  ])
}

const LINES = {
  list: (processors: ReadonlyArray<Processor>) => columns([HEADS, ...processors.map(cells)]),
  one: (processors: ReadonlyArray<Processor>) => processors.map(factsOf).join("\n")
}

/** Runs a command on the installation, and prints its processors as lines or as JSON. */
export const administer = Effect.fnUntraced(function* (
  command: app.OperatorCommand,
  lines: keyof typeof LINES,
  json: boolean
) {
  const carriedOut = app.Administration.use(({ carryOut }) => carryOut(command))
  const { processors = [] } = yield* Effect.provide(carriedOut, app.administration)
  yield* Console.log(json ? JSON.stringify({ processors }, null, 2) : LINES[lines](processors))
})

const decodeCredentials = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ secret: Schema.String })))

/** Reads `{"secret": "whsec_…"}`. No message repeats any of it. */
const secretFrom = Effect.fnUntraced(function* (source: string) {
  const credentials = decodeCredentials(Redacted.value(yield* readSecret("--credentials", source)))
  if (Option.isSome(credentials)) return credentials.value.secret
  return yield* new WrongArguments({ message: 'the credentials must be JSON: {"secret": "whsec_…"}' })
})

export interface AddFlags {
  readonly merchant: string
  readonly mode: "live" | "test"
  readonly kind: "http"
  readonly url: string
  readonly credentials: string
  readonly json: boolean
}

export const add = Effect.fnUntraced(function* ({ credentials, json, kind, merchant, mode, url }: AddFlags) {
  const secret = yield* secretFrom(credentials)
  const livemode = mode === "live"
  yield* administer({ _tag: "AddProcessor", merchant, livemode, kind, url, secret }, "one", json)
})

export interface UpdateFlags {
  readonly processor: string
  readonly url: Option.Option<string>
  readonly credentials: Option.Option<string>
  readonly expiresIn: number
  readonly json: boolean
}

export const update = Effect.fnUntraced(function* ({ credentials, expiresIn, json, processor, url }: UpdateFlags) {
  if (Option.isNone(url) && Option.isNone(credentials)) {
    return yield* new WrongArguments({ message: "there is nothing to change: give --url or --credentials" })
  }
  const secret = Option.isSome(credentials) ? { secret: yield* secretFrom(credentials.value) } : {}
  const address = Option.isSome(url) ? { url: url.value } : {}
  yield* administer({ _tag: "UpdateProcessor", processor, expiresIn, ...address, ...secret }, "one", json)
})

export interface ReconcileFlags {
  readonly processor: string
  readonly since: Option.Option<string>
  readonly json: boolean
}

type Page = NonNullable<app.Administered["reconciled"]>
type Discrepancy = Page["discrepancies"][number]

/** Clocks differ, and a call takes its time: operations of the hour before the backup are compared, too. */
const MARGIN_SECONDS = 3600
const DAY_SECONDS = 86_400
const PARTS = ["list", "open", "unresolved", "waiting", "decide"] as const

const RESULTS: Readonly<Record<Discrepancy["result"], string>> = {
  taken_in: "taken in",
  unknown_payment: "payment unknown",
  unknown_operation: "operation unknown",
  differs: "has another outcome here",
  unanswered: "no answer",
  decide: "to decide"
}
const DISCREPANCY_HEADS = ["OPERATION", "RESULT", "KIND", "AT THE PROCESSOR", "AMOUNT", "PAYMENT", "REFERENCE"]
const discrepancyCells = ({ amount, currency, id, kind, payment, reference, result, status }: Discrepancy) => [
  id,
  RESULTS[result],
  kind ?? "-",
  status ?? "-",
  amount === null ? "-" : `${amount} ${currency ?? ""}`,
  payment ?? "-",
  reference ?? "-"
]

const carryOut = (command: app.OperatorCommand) => app.Administration.use(({ carryOut }) => carryOut(command))

const sinceOf = Effect.fnUntraced(function* ({ since }: ReconcileFlags, { restored_at }: Processor) {
  if (Option.isNone(since)) {
    const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
    return restored_at === undefined ? now - DAY_SECONDS : restored_at - MARGIN_SECONDS
  }
  const millis = timeFrom(since.value)
  if (millis !== undefined) return Math.floor(millis / 1000)
  return yield* new WrongArguments({ message: "--since must be a time such as 2026-11-24T22:00:00Z, or Unix seconds" })
})

/** Compares all pages of all parts. Fails if the processor does not give one. */
const compareAll = Effect.fnUntraced(function* (processor: Processor, since: number) {
  const found = { compared: 0, discrepancies: [] as Array<Discrepancy> }
  const { id, livemode, merchant_id: merchant } = processor
  for (const part of PARTS) {
    const seen = new Set<string>()
    let after: string | null = null
    do {
      const command = { _tag: "ReconcileProcessor", processor: id, merchant, livemode, since, part, after } as const
      const { reconciled }: app.Administered = yield* carryOut(command)
      const page: Page = reconciled!
      found.compared += page.compared
      found.discrepancies.push(...page.discrepancies)
      if (page.next !== null && seen.size === seen.add(page.next).size) {
        return yield* new WrongArguments({ message: "the processor's list of operations repeats a page" })
      }
      after = page.next
    } while (after !== null)
  }
  return found
})

/**
 * Compares the installation with a processor, and releases a processor that was held since a restore, unless there are
 * operations about which it gave no word. Exits with 1 if something is left for a person.
 */
export const reconcile = Effect.fnUntraced(function* (flags: ReconcileFlags) {
  const work = Effect.gen(function* () {
    const { processors } = yield* carryOut({ _tag: "ShowProcessor", processor: flags.processor })
    const processor = processors![0]!
    const since = yield* sinceOf(flags, processor)
    const { compared, discrepancies } = yield* compareAll(processor, since)
    const isComplete = !discrepancies.some(({ result }) => result === "unanswered")
    const isHeld = processor.restored_at !== undefined
    if (isHeld && isComplete) yield* carryOut({ _tag: "ReleaseProcessor", processor: processor.id })
    return { processor, since, compared, discrepancies, isComplete, isHeld }
  })
  const done = yield* Effect.provide(work, app.administration)
  const { compared, discrepancies, isComplete, processor, since } = done
  yield* Console.log(
    flags.json
      ? JSON.stringify({ processor: processor.id, since, compared, complete: isComplete, discrepancies }, null, 2)
      : [
          ...(discrepancies.length === 0 ? [] : [columns([DISCREPANCY_HEADS, ...discrepancies.map(discrepancyCells)])]),
          `Compared ${compared} operations since ${timeOf(since)}.`,
          ...nextOf(done)
        ].join("\n")
  )
  if (discrepancies.some(({ result }) => result !== "taken_in")) process.exitCode = 1
})

const nextOf = ({
  isComplete,
  isHeld,
  processor: { id, status }
}: {
  readonly isComplete: boolean
  readonly isHeld: boolean
  readonly processor: Processor
}): ReadonlyArray<string> => {
  if (!isComplete) return ["The processor has not answered about every operation: run this command again later."]
  if (!isHeld) return []
  return status === "paused" ? [`Reconciled. Resume it: till processors resume ${id}`] : ["Reconciled."]
}

/** `till operations`: operations at processors, and a person's decision about one (semantics operations.cli). */
import { Console, Effect, Option, Redacted, Schema } from "effect"
import * as app from "../app.ts"
import { columns, timeOf } from "./Columns.ts"
import { readSecret } from "./Credentials.ts"
import { WrongArguments } from "./WrongArguments.ts"

type Operation = NonNullable<app.Administered["operations"]>[number]

const HEADS = ["ID", "MERCHANT", "MODE", "KIND", "STATUS", "AMOUNT", "PAYMENT", "CREATED"]
const modeOf = ({ livemode }: Operation) => (livemode ? "live" : "test")
/** In minor units, as the API has it. */
const amountOf = ({ amount, currency }: Operation) => `${amount} ${currency}`
const cells = (operation: Operation) => {
  const { created, id, kind, merchant_id, payment_intent, status } = operation
  return [id, merchant_id, modeOf(operation), kind, status, amountOf(operation), payment_intent, timeOf(created)]
}

const outcomeOf = ({ outcome, resolved_by }: Operation): string =>
  outcome === null
    ? "-"
    : [
        outcome.kind,
        ...(outcome.code === null ? [] : [outcome.code]),
        ...(resolved_by === null ? [] : [`by ${resolved_by}`]),
        ...(outcome.message === null ? [] : [`- ${outcome.message}`])
      ].join(" ")

const factsOf = (operation: Operation): string => {
  const { created, evidence, id, kind, merchant_id, next_look, payment_intent, processor, reference, refund, status } =
    operation
  const words = evidence.map(
    ({ at, by, detail, outcome }) =>
      ["heard", [timeOf(at), outcome, `by ${by}`, ...(detail === null ? [] : [detail])].join("  ")] as const
  )
  return columns([
    ["operation", id],
    ["merchant", merchant_id],
    ["mode", modeOf(operation)],
    ["kind", kind],
    ["status", status],
    ["outcome", outcomeOf(operation)],
    ["amount", amountOf(operation)],
    ["payment", payment_intent],
    ...(refund === null ? [] : [["refund", refund]]),
    ["processor", processor],
    ["reference", reference ?? "-"],
    ["created", timeOf(created)],
    ["updated", timeOf(operation.updated)],
    ["next look", next_look === null ? "-" : timeOf(next_look)],
    ...words
  ])
}

const administered = (command: app.OperatorCommand) =>
  Effect.provide(
    app.Administration.use(({ carryOut }) => carryOut(command)),
    app.administration
  )

const print = (operations: ReadonlyArray<Operation>, json: boolean, lines: () => string) =>
  Console.log(json ? JSON.stringify({ operations }, null, 2) : lines())

/** Runs a command on one operation, and prints it. */
const runOnOne = Effect.fnUntraced(function* (command: app.OperatorCommand, json: boolean) {
  const { operations = [] } = yield* administered(command)
  yield* print(operations, json, () => operations.map(factsOf).join("\n"))
  return operations[0]!
})

export interface ListFlags {
  readonly merchant: Option.Option<string>
  readonly mode: Option.Option<"live" | "test">
  readonly status: Option.Option<Operation["status"]>
  readonly limit: number
  readonly json: boolean
}

/** Lists the operations of all merchants or of one: those without an outcome, or those in a status. */
export const list = Effect.fnUntraced(function* ({ json, limit, merchant, mode, status }: ListFlags) {
  const { merchants } = yield* administered({ _tag: "ListMerchants" })
  const ids = merchants.map(({ id }) => id)
  const unknown = Option.filter(merchant, (id) => !ids.includes(id))
  if (Option.isSome(unknown)) return yield* new WrongArguments({ message: `There is no merchant ${unknown.value}.` })
  const modes = Option.match(mode, { onNone: () => ["live", "test"] as const, onSome: (mode) => [mode] })
  const commands = Option.match(merchant, { onNone: () => ids, onSome: (id) => [id] }).flatMap((merchant) =>
    modes.map((mode) => {
      const livemode = mode === "live"
      return { _tag: "ListOperations", merchant, livemode, status: Option.getOrNull(status), limit } as const
    })
  )
  const pages = yield* Effect.forEach(commands, administered, { concurrency: AT_ONCE })
  const found = pages.flatMap(({ operations = [] }) => operations)
  const newest = found.toSorted((one, other) => (one.id < other.id ? 1 : -1)).slice(0, limit)
  yield* print(newest, json, () => columns([HEADS, ...newest.map(cells)]))
  if (newest.length === limit) yield* Console.error(`Only the newest ${limit} are shown: --limit shows more.`)
})

/** Accounts that are read at the same time. */
const AT_ONCE = 4

export const show = (operation: string, json: boolean) => runOnOne({ _tag: "ShowOperation", operation }, json)

/** Has the processor asked now. */
export const check = Effect.fnUntraced(function* (operation: string, json: boolean) {
  const { next_look, status } = yield* runOnOne({ _tag: "CheckOperation", operation }, json)
  if (status === "final") return
  const next = next_look === null ? "never by itself" : `at ${timeOf(next_look)}`
  yield* Console.error(`The processor has given no outcome. Till asks again ${next}.`)
})

const decodeCredentials = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({ email: Schema.String, password: Schema.String, code: Schema.optionalKey(Schema.String) })
  )
)

export interface DecideFlags {
  readonly operation: string
  readonly outcome: "happened" | "did-not-happen"
  readonly reference: Option.Option<string>
  readonly reason: string
  readonly credentials: string
  readonly json: boolean
}

/** Decides about an operation as an owner, whose email and password come on standard input or from a file. */
export const decide = Effect.fnUntraced(function* (flags: DecideFlags) {
  const { json, operation, outcome, reason, reference } = flags
  if (outcome === "happened" && Option.isNone(reference)) {
    return yield* new WrongArguments({ message: "--outcome happened needs the processor's reference: --reference" })
  }
  if (outcome === "did-not-happen" && Option.isSome(reference)) {
    return yield* new WrongArguments({ message: "--reference is only for --outcome happened" })
  }
  const credentials = decodeCredentials(Redacted.value(yield* readSecret("--credentials", flags.credentials)))
  if (Option.isNone(credentials)) {
    return yield* new WrongArguments({
      message: 'the credentials must be JSON: {"email": "…", "password": "…"}, and "code" with two-step verification'
    })
  }
  const decision = { operation, reference: Option.getOrNull(reference), reason }
  yield* runOnOne({ _tag: "DecideOperation", ...decision, code: null, ...credentials.value }, json)
})

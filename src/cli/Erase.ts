/** `till erase` erases a person's data for good; `till purge` removes its remains from the database's files. */
import { Console, Effect } from "effect"
import * as app from "../app.ts"
import * as Interruption from "./Interruption.ts"
import { WrongArguments } from "./WrongArguments.ts"

const PAUSE = "500 millis"

export interface EraseFlags {
  /** `cus_…` or `per_…` */
  readonly id: string
  /** `mer_…`; undefined for the only merchant. */
  readonly merchant: string | undefined
  readonly mode: "live" | "test"
  readonly json: boolean
}

const administer = (command: app.OperatorCommand) =>
  Effect.provide(
    app.Administration.use(({ carryOut }) => carryOut(command)),
    app.administration
  )

const onlyMerchant = Effect.gen(function* () {
  const { merchants } = yield* administer({ _tag: "ListMerchants" })
  if (merchants.length === 1) return merchants[0]!.id
  return yield* new WrongArguments({
    message: "there are several merchants: give --merchant, see till merchants list"
  })
})

/** Runs a command again until it reports the end of the erasure that its first run begins. */
const finished = Effect.fnUntraced(function* (command: Erasing) {
  let { erasure } = yield* administer({ ...command, begins: true })
  while (erasure !== "completed") {
    yield* Effect.sleep(PAUSE)
    ;({ erasure } = yield* administer({ ...command, begins: false }))
  }
})

type Erasing = Extract<app.OperatorCommand, { readonly begins: boolean }>

/** The account of the team comes last: it names what is erased in the others. */
const PARTS = ["test", "live", "team"] as const

/** Begins an erasure and waits for its end. An interruption ends the wait alone. */
export const erase = Effect.fnUntraced(function* ({ id, json, merchant: given, mode }: EraseFlags) {
  const merchant = given ?? (yield* onlyMerchant)
  const commands: ReadonlyArray<Erasing> = id.startsWith("per_")
    ? PARTS.map((part) => ({ _tag: "ErasePerson", merchant, person: id, part, begins: true }))
    : [{ _tag: "EraseCustomer", merchant, livemode: mode === "live", customer: id, begins: true }]
  yield* Interruption.failing(Effect.forEach(commands, finished, { discard: true }))
  yield* Console.log(
    json
      ? JSON.stringify({ id, merchant, erasure: "completed" })
      : `The data of ${id} is erased. Older backups still have it. \`till purge\` removes its remains from the files of ` +
          "the database."
  )
})

export const purge = Effect.fnUntraced(function* (json: boolean) {
  const { isEmbedded } = yield* Interruption.failing(app.purge)
  yield* Console.log(
    json
      ? JSON.stringify({ purged: true, embedded: isEmbedded })
      : isEmbedded
        ? "The files of the database hold no erased data."
        : "The tables hold no erased data. The server's log and its archives of it may: they belong to its operator."
  )
})

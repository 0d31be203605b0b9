/**
 * Deliberate mistakes, each a changed line of the sources under a fault that must reveal it. The findings of a judge
 * mean something only if it sees these mistakes.
 */
import * as Path from "node:path"
import type { Finding } from "./Finding.ts"
import { mutated, type Mutation } from "./Checkout.ts"
import { amountEdits } from "./parts/Corruption.ts"
import { powerCuts } from "./parts/Disks.ts"
import { kills } from "./parts/Kills.ts"
import { faultyNetwork } from "./parts/Processor.ts"
import { delayedFlushes, freezes } from "./parts/Runners.ts"
import { type ControlResult, findingLines } from "./Report.ts"
import type { Context, Row } from "./Scene.ts"

export interface Control {
  readonly name: string
  readonly mutation: Mutation
  /** Description of the change. */
  readonly change: string
  readonly fault: string
  /** Returns true for a finding that reveals the mistake. */
  readonly isSeenBy: (finding: Finding) => boolean
  readonly run: (context: Context) => Promise<Row>
}

const isLost = ({ kind }: Finding) => kind === "lost"
const isDoubled = ({ kind }: Finding) => kind === "doubled"

export const CONTROLS: ReadonlyArray<Control> = [
  {
    name: "fsync off",
    mutation: {
      file: "src/postgres/embedded/EmbeddedPostgres.ts",
      find: "    max_connections: String(connections),\n",
      replace: '    max_connections: String(connections),\n    fsync: "off",\n'
    },
    change: "the embedded Postgres runs without fsync",
    fault: "power cut",
    // Postgres may find a torn page in its own log.
    isSeenBy: ({ kind, text }) => kind === "lost" || /^broke off in round \d+: Till does not start: /.test(text),
    run: (context) => powerCuts(context, 2)
  },
  {
    name: "no fence",
    mutation: {
      file: "src/postgres/JournalPostgres.ts",
      find: "    WHERE NOT EXISTS (SELECT FROM ${missing})`\n",
      replace: "    ON CONFLICT (account, version) DO UPDATE SET hash = excluded.hash, record = excluded.record`\n"
    },
    change: "a record takes the place of another runner's record",
    fault: "a runner's flush that Postgres gets late",
    // The missing record's successor is found.
    isSeenBy: ({ text }) => /^till verify: .*Record \d+ of account \S+ is not what was written/s.test(text),
    run: (context) => delayedFlushes(context, 3)
  },
  {
    name: "served unconfirmed",
    mutation: {
      file: "src/engine/process/Placement.ts",
      find: "return this.#now() - this.#confirmedAt < CONFIRMED_MILLIS",
      replace: "return true"
    },
    change: "what a runner owned counts however long ago that was confirmed",
    fault: "SIGSTOP of a runner",
    isSeenBy: ({ text }) => text.includes("is not linearizable"),
    run: (context) => freezes(context, 3)
  },
  {
    name: "acknowledged before the flush",
    mutation: {
      file: "src/engine/actor/GroupCommit.ts",
      find: "      const durable = yield* append(batch)\n",
      replace:
        "      for (const { actor, sealed, settle } of batch) (actor.markDurable(sealed.record.version), settle(Exit.void))\n" +
        "      const durable = yield* append(batch)\n"
    },
    change: "the group commit settles a batch before it appends it",
    fault: "kill -9 of Postgres",
    isSeenBy: isLost,
    run: (context) => kills(context, "kill -9 of Postgres", "postgres", 4)
  },
  {
    name: "no idempotency record",
    mutation: {
      file: "src/engine/actor/Idempotency.ts",
      find: "responseOf: hasKey ? answerToKeep : nothingToKeep",
      replace: "responseOf: nothingToKeep"
    },
    change: "the response is not kept in the record",
    fault: "kill -9 of Till",
    isSeenBy: isDoubled,
    run: (context) => kills(context, "kill -9 of Till", "till", 1)
  },
  {
    name: "webhook before commit",
    // The projector is not told either: views of records that the journal does not have would block every reader.
    mutation: {
      file: "src/engine/actor/Actors.ts",
      find: "makeServices(options, active, commit)), lose,",
      replace:
        "makeServices(options, active, commit)), append: ((actor, sealed, settle) => " +
        "(feed.publish(sealed.record), commit.append(actor, sealed, settle))) as GroupCommit.GroupCommit['append'], lose,"
    },
    change: "the feed is told of a record before it is appended",
    fault: "kill -9 of Postgres",
    isSeenBy: ({ text }) => text.endsWith("was delivered, and there is none"),
    run: (context) => kills(context, "kill -9 of Postgres", "postgres", 4)
  },
  {
    name: "retries with a new key",
    mutation: {
      file: "src/processors/protocol/HttpProcessor.ts",
      find: "  perform: (request) =>\n    Effect.map(",
      replace:
        "  perform: (given, request = { ...given, id: given.id.slice(0, -6) + crypto.randomUUID().slice(0, 6) }) =>\n" +
        "    Effect.map("
    },
    change: "each call of an operation has an idempotency key of its own",
    fault: "a gateway's answers lost, late and forged",
    isSeenBy: ({ kind, text }) => kind === "doubled" && text.includes("at the gateway"),
    run: (context) => faultyNetwork(context, 1)
  },
  {
    name: "hash unchecked on read",
    mutation: {
      file: "src/engine/log/Record.ts",
      find: 'if (hash("sha256", Buffer.concat([Buffer.from(front), row.bytes]), "hex") !== row.hash) throw corrupt("hash")',
      replace: 'if (front === row.hash) throw corrupt("hash")'
    },
    change: "a record that is read is not checked against its hash",
    fault: "a digit of an amount in a record is changed",
    isSeenBy: ({ text }) => /^journal\.record, [^:]+: (GET|the key of) /.test(text),
    run: (context) => amountEdits(context, 4)
  }
]

/** A fault shows a mistake by chance: a control runs so often at most. */
const RUNS_MAX = 3

/** Runs a control until it shows the mistake, each time with other choices. */
export const runControl = async (control: Control, context: Context): Promise<ControlResult> => {
  for (let runs = 1; ; runs++) {
    const folder = Path.join(context.folder, `run-${runs}`)
    const result = await runOnce(control, { ...context, folder, seed: context.seed + runs - 1 })
    const isOver = result.seen !== undefined || result.skipped !== undefined || runs === RUNS_MAX
    if (isOver) return { ...result, runs }
  }
}

const runOnce = async (control: Control, context: Context): Promise<Omit<ControlResult, "runs">> => {
  const { change, fault, mutation, name, run } = control
  const checkout = mutated(context.checkout, Path.join(context.folder, "checkout"), mutation)
  const row = await run({ ...context, checkout, log: () => {} })
  const first = row.findings.all.find(control.isSeenBy)
  const result = { name, mutation: `${change} (${mutation.file})`, fault }
  if (row.skipped !== undefined) return { ...result, seen: undefined, skipped: row.skipped }
  if (first === undefined) context.log([`${name}: ${row.remark ?? ""}`, ...findingLines(row)].join("\n"))
  return { ...result, seen: first === undefined ? undefined : `${first.kind}: ${first.text.slice(0, 300)}` }
}

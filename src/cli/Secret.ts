/** `till secret` rolls the installation's secret, step by step (semantics operation.roll). */
import { Console, Effect } from "effect"
import * as app from "../app.ts"

const counted = new Intl.NumberFormat("en-US")

const leftOf = ({ left }: app.SecretState): string =>
  Object.entries(left)
    .map(([kind, count]) => `${counted.format(count)} × ${kind}`)
    .join(", ")

const HOUR_MILLIS = 3_600_000

/** The last line, which names the next step. */
const nextOf = (state: app.SecretState): string => {
  const since = state.rolledAt === null ? "" : ` since ${new Date(state.rolledAt).toISOString()}`
  switch (state.stage) {
    case "settled":
      return "One secret is in force, and nothing is sealed with another one."
    case "prepared":
      return (
        "The file has a new secret, which is not in force yet. Copy the file to every machine, restart every process " +
        "one after the other, then run `till secret roll` again." +
        (state.isEverywhere ? "" : "\nA process that runs has not read the new secret.")
      )
    case "rewriting":
      return (
        `The new secret is in force${since}. Sealed with the old one are ${leftOf(state)}; the running service seals ` +
        "them anew. `till secret status` shows how many are left."
      )
    case "waiting":
      return (
        `The new secret is in force${since}, and everything is sealed with it. Requests from before can be repeated ` +
        `for ${Math.ceil(state.answersEndIn / HOUR_MILLIS)} hours of running time, and some of their answers need the ` +
        "old secret. After that `till secret roll` removes it."
      )
    case "complete":
      return "The new secret is in force, and nothing needs the old one: `till secret roll` removes it from the file."
  }
}

const DONE = {
  added: "A new secret was added to the file.",
  rolled: "The new secret was put in force.",
  removed: "The old secret was removed from the file: copy the file to every machine. Backups from before contain it."
}

interface Report {
  readonly done: keyof typeof DONE | null
  readonly state: app.SecretState
}

const print = ({ done, state }: Report, json: boolean) => {
  const { answersEndIn, isEverywhere, left, rolledAt, stage } = state
  if (!json) return Console.log([...(done === null ? [] : [DONE[done]]), nextOf(state)].join("\n"))
  const report = {
    done,
    stage,
    rolled_at: rolledAt === null ? null : new Date(rolledAt).toISOString(),
    read_by_all: isEverywhere,
    left,
    answers_end_in_seconds: Math.ceil(answersEndIn / 1000)
  }
  return Console.log(JSON.stringify(report, null, 2))
}

export const status = (json: boolean) => Effect.flatMap(app.secretStatus, (report) => print(report, json))

/** Takes the next step of a roll, and prints what follows. A changed secret goes to `target`, if it is given. */
export const roll = (target: string | undefined, json: boolean) =>
  Effect.flatMap(app.rollSecret(target), (report) => print(report, json))

/**
 * When this installation was last backed up and its data last checked, from the marks in the data folder, and whether a
 * roll of its secret waits for a step.
 */
import type { Millis } from "../engine/log/Document.ts"
import { findMark } from "../postgres/embedded/Marks.ts"
import { count, duration, type Finding, ok, problem, warning } from "./Finding.ts"

const DAY_MILLIS = 86_400_000

export const backup = (dataFolder: string, now: Millis): Finding => {
  const check = "upkeep.backup"
  const remedy = "Run till backup FOLDER, best by a timer: docs/backups.md."
  const mark = findMark(dataFolder, "backup")
  if (mark === undefined) return warning(check, "No backup was made with this data folder", remedy)
  const text = `The newest backup is ${duration(now - mark.at)} old, in ${mark.folder}`
  return now - mark.at > DAY_MILLIS ? warning(check, text, remedy) : ok(check, text)
}

export const scrub = (dataFolder: string, scrubDays: number, now: Millis): Finding => {
  const check = "upkeep.scrub"
  const mark = findMark(dataFolder, "scrub")
  if (mark === undefined) {
    return ok(check, `The service has not yet checked all accounts once: that takes ${scrubDays} days`)
  }
  const text = `All ${count(mark.accounts)} accounts were checked until ${duration(now - mark.at)} ago`
  if (mark.problems > 0) {
    return problem(
      check,
      `${text}: ${mark.problems} are damaged`,
      "Run till verify, which names the damage, and keep all backups: till rebuild mends views, a backup the journal."
    )
  }
  return now - mark.at > (2 * scrubDays + 1) * DAY_MILLIS
    ? warning(check, text, `The service checks them every ${scrubDays} days: does it run for that long?`)
    : ok(check, `${text}, without damage`)
}

/** A roll of the secret; see `till secret`. */
export interface SecretRoll {
  readonly stage: "settled" | "prepared" | "rewriting" | "waiting" | "complete"
  readonly rolledAt: Millis | null
  readonly left: Readonly<Record<string, number>>
}

/** Sealing everything anew takes minutes, and answers can be repeated for a day of running time. */
const ROLL_WARNING_MILLIS = 3 * DAY_MILLIS

export const secretRoll = ({ left, rolledAt, stage }: SecretRoll, now: Millis): ReadonlyArray<Finding> => {
  const check = "upkeep.secret_roll"
  const next = "Run till secret roll, which takes the next step or names what it waits for: docs/secret.md."
  if (stage === "settled") return []
  if (stage === "prepared") return [warning(check, "A new secret is in its file, but not in force yet", next)]
  if (stage === "complete") return [warning(check, "The old secret is in its file, and nothing needs it", next)]
  const documents = Object.values(left).reduce((sum, found) => sum + found, 0)
  const age = now - (rolledAt ?? now)
  const rest = documents === 0 ? "some answers to requests" : `${count(documents)} stored secrets`
  const text = `The secret was rolled ${duration(age)} ago; ${rest} are under the old one`
  return [
    age > ROLL_WARNING_MILLIS
      ? warning(check, text, "The running service seals them anew: does it run, and does its log name a reason?")
      : ok(check, text)
  ]
}

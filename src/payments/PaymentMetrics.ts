/** Counts the outcomes of charges when their records become durable. */
import { Effect, Layer } from "effect"
import type { JournalRecord } from "../engine/log/Record.ts"
import * as Metrics from "../engine/process/Metrics.ts"
import { CommitFeed } from "../engine/views/CommitFeed.ts"
import type { Charge } from "../domain/Charge.ts"
import { DECLINE_MESSAGES } from "../domain/Cards.ts"
import { parseJson } from "../json/JsonParse.ts"
import { isLive } from "./shared/AccountIds.ts"
import { CHARGE } from "./shared/Documents.ts"

const CHARGES = {
  name: "till_charges_total",
  description: "Charges that were approved, and charges that were declined, by the reason.",
  labels: ["mode", "outcome", "code"]
}
const MODES = ["test", "live"]

/** The reason of a decline; all that are not Till's own count as one. */
const codeOf = ({ changes }: JournalRecord): string => {
  const text = changes.find(({ kind }) => kind === CHARGE.name)?.document
  const charge = text == null ? undefined : (parseJson(text) as Charge)
  const code = charge?.decline_code ?? charge?.failure_code ?? ""
  return Object.hasOwn(DECLINE_MESSAGES, code) ? code : "other"
}

export const layer: Layer.Layer<never, never, CommitFeed> = Layer.effectDiscard(
  Effect.gen(function* () {
    const feed = yield* CommitFeed
    const begun = MODES.map((mode) => [mode, "approved", ""])
    const count = yield* Metrics.counters(CHARGES, begun)
    yield* feed.observe((record) => {
      for (const { type } of record.events) {
        if (type !== "charge.succeeded" && type !== "charge.failed") continue
        const mode = isLive(record.account) ? "live" : "test"
        if (type === "charge.succeeded") count([mode, "approved", ""])
        else count([mode, "declined", codeOf(record)])
      }
    })
  })
)

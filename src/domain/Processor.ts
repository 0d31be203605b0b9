/** Processors behind a network, as an operator has configured them (semantics processors.*). */
import { Schema } from "effect"
import { stateTable } from "./StateTable.ts"

/** `http` is a gateway that speaks Till's protocol. */
export const ProcessorKind = Schema.Literals(["http"])
export type ProcessorKind = typeof ProcessorKind.Type

/**
 * `active`: takes new payments. `paused`: no operation begins, and those that have begun are looked at. `retiring`:
 * takes no new payments, and finishes its own.
 */
export const ProcessorStatus = Schema.Literals(["active", "paused", "retiring"])
export type ProcessorStatus = typeof ProcessorStatus.Type

/** The state table of processors (semantics processors.states). */
export const processorStates = stateTable<ProcessorStatus>()({
  pause: { active: ["paused"] },
  resume: { paused: ["active"], retiring: ["active"] },
  retire: { active: ["retiring"], paused: ["retiring"] }
})
export type ProcessorStep = "pause" | "resume" | "retire"

export const STATUS_AFTER: Readonly<Record<ProcessorStep, ProcessorStatus>> = {
  pause: "paused",
  resume: "active",
  retire: "retiring"
}

/** The longest grace period of replaced credentials, in seconds (semantics time.wall). */
export const CREDENTIALS_GRACE_SECONDS_MAX = 86_400

/** A gateway's description of itself, as far as Till keeps it. */
export const ProcessorProfile = Schema.Struct({
  name: Schema.String,
  /** In lower case; null for any. */
  currencies: Schema.NullOr(Schema.Array(Schema.String)),
  /** The page with the inputs of a card, for a frame; null without one. */
  fields_url: Schema.NullOr(Schema.String)
})
export type ProcessorProfile = typeof ProcessorProfile.Type

/** `created` is in Unix seconds. */
export const Processor = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("processor"),
  merchant_id: Schema.String,
  livemode: Schema.Boolean,
  kind: ProcessorKind,
  status: ProcessorStatus,
  url: Schema.String,
  /** The profile of the last check; null before the first one. */
  profile: Schema.NullOr(ProcessorProfile),
  created: Schema.Int,
  /**
   * The time of the backup from which the installation was restored, in Unix seconds, until the processor is
   * reconciled: it is only asked until then.
   */
  restored_at: Schema.optionalKey(Schema.Int)
})
export type Processor = typeof Processor.Type

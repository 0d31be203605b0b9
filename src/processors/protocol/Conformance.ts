/**
 * The check of a gateway: the protocol's promises as named rules (semantics gateways.rules). A rule that needs another
 * one is not tried after that one was broken, so that a fault has one name.
 */
import { Effect, type Redacted, type Scope } from "effect"
import { randomBytes } from "node:crypto"
import * as Exchange from "../Exchange.ts"
import { Broken, GatewayProbe } from "./GatewayProbe.ts"
import { type Rule, type RuleName, RULES } from "./Rules.ts"

export type RuleResult =
  | { readonly rule: RuleName; readonly result: "kept" }
  /** `why` is a sentence about the gateway's answers. */
  | { readonly rule: RuleName; readonly result: "broken" | "not_tried"; readonly why: string }

export interface ConformanceOptions {
  readonly url: string
  readonly secret: Redacted.Redacted
  /** Kills and restarts the gateway; returns once its command has ended. Null leaves that rule out. */
  readonly restart: Effect.Effect<void, Error> | null
  /** Called with each result as it is known. */
  readonly onResult?: (result: RuleResult) => void
}

/** Returns whether no rule is broken, and payments could be tried: a gateway without test tokens passes nothing. */
export const passes = (results: ReadonlyArray<RuleResult>): boolean =>
  results.every(({ result }) => result !== "broken") &&
  results.some(({ result, rule }) => rule === "authorize.approve" && result === "kept")

/** Tries all rules in order. Payments are made with the gateway's test tokens. */
export const conformance = Effect.fnUntraced(function* (
  options: ConformanceOptions
): Effect.fn.Return<ReadonlyArray<RuleResult>, never, Scope.Scope> {
  // The operator has typed the URL, so that it may lead into the operator's own network.
  const exchange = yield* Exchange.make({ hosts: { httpsOnly: true, besidePublic: "any" } })
  const run = randomBytes(6).toString("hex")
  const results = new Map<RuleName, RuleResult>()
  for (const rule of RULES) {
    const result = yield* resultOf(rule, new GatewayProbe({ ...options, exchange }, `${run}_${rule.name}`), results)
    results.set(rule.name, result)
    options.onResult?.(result)
  }
  return [...results.values()]
})

const resultOf = (
  rule: Rule,
  probe: GatewayProbe,
  results: ReadonlyMap<RuleName, RuleResult>
): Effect.Effect<RuleResult> => {
  const { name } = rule
  const missing = rule.needs.find((needed) => results.get(needed)?.result !== "kept")
  if (missing !== undefined) return Effect.succeed({ rule: name, result: "not_tried", why: `It needs ${missing}.` })
  return rule.try(probe).pipe(
    Effect.match({
      onFailure: (failure): RuleResult =>
        failure instanceof Broken
          ? { rule: name, result: "broken", why: failure.message }
          : { rule: name, result: "not_tried", why: failure.message },
      onSuccess: (): RuleResult => ({ rule: name, result: "kept" })
    })
  )
}

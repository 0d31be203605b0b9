/**
 * `till processor check` tries the rules of the gateways' protocol at a gateway, and names each that it breaks
 * (semantics gateways.check).
 */
import { Console, Effect, type Option, Redacted } from "effect"
import { spawn } from "node:child_process"
import { urlComplaint } from "../domain/GatewayUrl.ts"
import { isSecret } from "../domain/StandardWebhooks.ts"
import { conformance, passes, type RuleResult } from "../processors/protocol/Conformance.ts"
import { RULE_NAMES, RULES } from "../processors/protocol/Rules.ts"
import { readSecret } from "./Credentials.ts"
import { WrongArguments } from "./WrongArguments.ts"

export interface GatewayCheckFlags {
  readonly url: string
  readonly secretFile: string
  readonly restart: Option.Option<string>
  readonly json: boolean
}

const WIDTH = Math.max(...RULE_NAMES.map((name) => name.length))
const WORDS = { kept: "kept", broken: "BROKEN", not_tried: "not tried" } as const

/** The rule's line; that of a broken one has the promise and the reason. */
const lineOf = (result: RuleResult): string => {
  const line = `${result.rule.padEnd(WIDTH)}  ${WORDS[result.result]}`
  if (result.result === "kept") return line
  if (result.result === "not_tried") return `${line}: ${result.why}`
  const { text } = RULES.find(({ name }) => name === result.rule)!
  return `${line}: ${result.why}\n${" ".repeat(WIDTH + 2)}The rule: ${text}`
}

/** Runs a shell command, and waits for its end. Its output goes to standard error. */
const restartBy = (command: string): Effect.Effect<void, Error> =>
  Effect.callback<void, Error>((resume) => {
    const child = spawn(command, { shell: true, stdio: ["ignore", 2, 2] })
    child.once("error", (error) => resume(Effect.fail(error)))
    child.once("exit", (code) =>
      resume(code === 0 ? Effect.void : Effect.fail(new Error(`The command of --restart ended with ${code}.`)))
    )
    return Effect.sync(() => child.kill())
  })

const summaryOf = (results: ReadonlyArray<RuleResult>): string => {
  const count = (word: RuleResult["result"]) => results.filter(({ result }) => result === word).length
  const [kept, broken, notTried] = [count("kept"), count("broken"), count("not_tried")]
  return `${kept} rules kept, ${broken} broken, ${notTried} not tried.`
}

export const gatewayCheck = Effect.fnUntraced(function* ({ json, restart, secretFile, url }: GatewayCheckFlags) {
  const complaint = urlComplaint(url)
  if (complaint !== undefined) return yield* new WrongArguments({ message: `the URL ${complaint}` })
  const secret = yield* readSecret("--secret-file", secretFile)
  if (!isSecret(Redacted.value(secret))) {
    return yield* new WrongArguments({ message: "the secret must be whsec_ and the base64 of 24 to 64 bytes" })
  }
  const results = yield* Effect.scoped(
    conformance({
      url,
      secret,
      restart: restart._tag === "Some" ? restartBy(restart.value) : null,
      ...(!json && { onResult: (result: RuleResult) => console.log(lineOf(result)) })
    })
  )
  const passed = passes(results)
  yield* Console.log(json ? JSON.stringify({ passed, rules: results }, null, 2) : summaryOf(results))
  if (!passed) process.exitCode = 1
})

/**
 * Writes the answer to a command: the one that its record keeps for those who repeat the request (semantics I6), and
 * the one that only the first of them sees. All of it is pure, because it runs where the command does.
 *
 * The journal may not hold secrets. So an answer with a secret is sealed before it gets there, and opened on its way
 * out. A sealed answer is a JSON string; every other answer is an object, so the two cannot be taken for one another.
 */
import { Result } from "effect"
import type { CardDeclined } from "../domain/Errors.ts"
import type { Response } from "../engine/Accounts.ts"
import type { AccountId } from "../engine/log/Document.ts"
import { encode } from "../engine/log/Document.ts"
import { parseJson } from "../json/JsonParse.ts"
import type { PaymentsConfigShape } from "../payments/PaymentsConfig.ts"
import { open, seal } from "../payments/Sealing.ts"
import type { Failure } from "./ErrorTable.ts"
import { refusal } from "./ErrorTable.ts"
import type { Answered } from "./handlers/Handler.ts"
import { firstAnswer, Revealed } from "./OneTimeSecrets.ts"

/** The writer of an answer needs to know these. */
export interface Rendering {
  readonly account: AccountId
  readonly config: PaymentsConfigShape
  readonly docsUrl: string
  /** Makes an answer one of the request's version. The journal keeps it in that (semantics 9.22). */
  readonly inItsVersion: <A extends Pick<Response, "status" | "body">>(newest: A) => A
}

/** Reads what a command succeeded with. Nothing else looks into it. */
const outcomeOf = <A extends object>(answered: Answered<A>): Result.Result<A, CardDeclined> =>
  Result.isResult(answered) ? answered : Result.succeed(answered)

/** Writes the answer to a command that was carried out. */
export const answerOf = (result: Answered<object>, rendering: Rendering): Response => {
  const outcome = outcomeOf(result)
  if (Result.isFailure(outcome)) return refusedAs(outcome.failure, rendering)
  const { success } = outcome
  const first = firstAnswer(success)
  const answer: Response = { ...storedAnswer(rendering, success), stored: true }
  return first === undefined ? answer : { ...answer, shown: rendering.inItsVersion({ status: 200, body: first }).body }
}

/** Writes the answer to a command that was refused. */
export const refusedAs = (failure: Failure, { docsUrl, inItsVersion }: Rendering): Response =>
  inItsVersion(refusal(failure, docsUrl))

const sealingOf = ({ sealingKey }: PaymentsConfigShape, account: AccountId) => ({
  key: sealingKey,
  purpose: `answer ${account}`
})

/** Writes an answer as the journal may keep it. */
const storedAnswer = ({ account, config, inItsVersion }: Rendering, answer: object) => {
  const written = (body: string) => inItsVersion({ status: 200, body })
  if (!(answer instanceof Revealed)) return written(encode(answer))
  if (answer.repetition === "object") return written(encode(answer.value))
  const { body, status } = written(JSON.stringify(answer.shown))
  return { status, body: JSON.stringify(seal(sealingOf(config, account), body)) }
}

/** Gives a kept answer as the client gets it. */
export const openAnswer = (config: PaymentsConfigShape, account: AccountId, stored: string): string =>
  stored.startsWith('"') ? open(sealingOf(config, account), parseJson(stored) as string) : stored

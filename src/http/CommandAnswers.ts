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
import type { AccountId } from "../engine/Document.ts"
import { encode } from "../engine/Document.ts"
import type { PaymentsConfigShape } from "../payments/PaymentsConfig.ts"
import { open, seal } from "../payments/Sealing.ts"
import { refusal } from "./ErrorTable.ts"
import type { Answered } from "./handlers/Handler.ts"
import { firstAnswer, Revealed } from "./Revealed.ts"

/** The writer of an answer needs to know these. */
export interface Rendering {
  readonly account: AccountId
  readonly config: PaymentsConfigShape
  readonly docsUrl: string
}

/** Reads what a command succeeded with. Nothing else looks into it. */
const outcomeOf = <A extends object>(answered: Answered<A>): Result.Result<A, CardDeclined> =>
  Result.isResult(answered) ? answered : Result.succeed(answered)

/** Writes the answer to a command that was carried out. */
export const answerOf = (result: Answered<object>, { account, config, docsUrl }: Rendering): Response => {
  const outcome = outcomeOf(result)
  if (Result.isFailure(outcome)) return refusal(outcome.failure, docsUrl)
  const { success } = outcome
  const shown = firstAnswer(success)
  const body = storedAnswer(config, account, success)
  return shown === undefined ? { status: 200, body, stored: true } : { status: 200, body, shown, stored: true }
}

const sealingOf = ({ sealingKey }: PaymentsConfigShape, account: AccountId) => ({
  key: sealingKey,
  purpose: `answer ${account}`
})

/** Writes an answer as the journal may keep it. */
const storedAnswer = (config: PaymentsConfigShape, account: AccountId, answer: object): string => {
  if (!(answer instanceof Revealed)) return encode(answer)
  if (answer.repetition === "object") return encode(answer.value)
  return JSON.stringify(seal(sealingOf(config, account), JSON.stringify(answer.shown)))
}

/** Gives a kept answer as the client gets it. */
export const openAnswer = (config: PaymentsConfigShape, account: AccountId, stored: string): string =>
  stored.startsWith('"') ? open(sealingOf(config, account), JSON.parse(stored) as string) : stored

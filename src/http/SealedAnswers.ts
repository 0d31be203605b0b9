/**
 * Answers that show a secret. The journal keeps every answer for those who repeat the request (semantics I6), but it may
 * not hold secrets: such an answer is sealed before it gets there, and opened on its way out.
 *
 * A sealed answer is a JSON string; every other answer is an object, so the two cannot be taken for one another.
 */
import type { AccountId } from "../engine/Document.ts"
import { encode } from "../engine/Document.ts"
import type { PaymentsConfigShape } from "../payments/PaymentsConfig.ts"
import { open, seal } from "../payments/Sealing.ts"
import { Revealed } from "./Revealed.ts"

const sealingOf = ({ sealingKey }: PaymentsConfigShape, account: AccountId) => ({
  key: sealingKey,
  purpose: `answer ${account}`
})

/** The text of an answer, as the journal may keep it. */
export const storedAnswer = (config: PaymentsConfigShape, account: AccountId, answer: object): string => {
  if (!(answer instanceof Revealed)) return encode(answer)
  if (answer.repetition === "object") return encode(answer.value)
  return JSON.stringify(seal(sealingOf(config, account), JSON.stringify(answer.shown)))
}

/** The text of an answer, as the client gets it. */
export const openAnswer = (config: PaymentsConfigShape, account: AccountId, stored: string): string =>
  stored.startsWith('"') ? open(sealingOf(config, account), JSON.parse(stored) as string) : stored

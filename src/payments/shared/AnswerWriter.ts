/** Port: the answer to a request whose operation has an outcome, written as the API writes all answers. */
import { Context, type Result } from "effect"
import type { DomainError } from "../../domain/Errors.ts"
import type { StoredAnswer } from "../../engine/log/Record.ts"

/** The request to answer. */
export interface AnsweredRequest {
  readonly apiVersion: string
  /** The route of the API; null for a form. */
  readonly route: string | null
}

export class AnswerWriter extends Context.Service<
  AnswerWriter,
  (request: AnsweredRequest, outcome: Result.Result<object, DomainError>) => StoredAnswer
>()("till/payments/AnswerWriter") {}

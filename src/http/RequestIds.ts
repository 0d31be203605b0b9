/**
 * Ids of requests, `req_…`: one sequence for the process, whoever answers. In the order of their bytes, they are in the
 * order of arrival.
 */
import { PREFIXES } from "../domain/Identifiers.ts"
import { idOf, nextSequence } from "../engine/Identifiers.ts"

let sequence = 0

/** The id of the request that arrives now. */
export const nextRequestId = (): string => {
  sequence = nextSequence(sequence, Date.now())
  return idOf(PREFIXES.request, sequence)
}

/** All scenarios, in the order in which they run. */
import { create, createAndConfirm, createOneAtATime, createOnManyAccounts } from "./Create.ts"
import { list } from "./List.ts"
import { retrieve, retrieveOneAtATime } from "./Retrieve.ts"
import type { Scenario } from "./Scenario.ts"

export const scenarios: ReadonlyArray<Scenario> = [
  create,
  createAndConfirm,
  retrieve,
  list,
  createOnManyAccounts,
  createOneAtATime,
  retrieveOneAtATime
]

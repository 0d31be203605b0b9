/** All scenarios, in the order in which they run: reads first, because they warm a server up faster. */
import { createCheckoutSession, listPrices } from "./Catalog.ts"
import { create, createAndConfirm, createOneAtATime, createOnManyAccounts } from "./Create.ts"
import { list } from "./List.ts"
import { refund } from "./Refund.ts"
import { retrieve, retrieveOneAtATime } from "./Retrieve.ts"
import type { Scenario } from "./Scenario.ts"

export const scenarios: ReadonlyArray<Scenario> = [
  retrieve,
  list,
  create,
  createAndConfirm,
  createCheckoutSession,
  refund,
  listPrices,
  createOnManyAccounts,
  createOneAtATime,
  retrieveOneAtATime
]

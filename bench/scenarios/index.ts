/**
 * All scenarios, in the order in which they run. Till's code takes some 20,000 requests of a kind to get warm, so its
 * own comparison of accounts comes before the creates that are held against the baselines.
 */
import { confirmCheckoutSession, createCheckoutSession, listPrices } from "./Catalog.ts"
import { create, createAndConfirm, createOneAtATime, createOnManyAccounts } from "./Create.ts"
import { list } from "./List.ts"
import { refund } from "./Refund.ts"
import { retrieve, retrieveOneAtATime } from "./Retrieve.ts"
import type { Scenario } from "./Scenario.ts"
import { listCreated, search } from "./Search.ts"

export const scenarios: ReadonlyArray<Scenario> = [
  retrieve,
  list,
  createOnManyAccounts,
  create,
  createAndConfirm,
  createCheckoutSession,
  confirmCheckoutSession,
  refund,
  listPrices,
  createOneAtATime,
  retrieveOneAtATime,
  listCreated,
  search
]

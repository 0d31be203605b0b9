/** The lifecycle of customers: live, then deleted (semantics §1.10). */
import { Effect } from "effect"
import type { Customer, DeletedCustomer } from "../domain/Customer.ts"
import { PREFIXES } from "../domain/Identifiers.ts"
import type { MetadataParameter } from "../domain/Metadata.ts"
import { mergeMetadata, updateMetadata } from "../domain/Metadata.ts"
import { secondsOf } from "../domain/Time.ts"
import type { AccountId } from "../engine/Document.ts"
import { Transaction } from "../engine/Transaction.ts"
import { isLive, merchantIdOf } from "./AccountIds.ts"
import { CUSTOMER, findDocument } from "./Documents.ts"
import { emit } from "./Events.ts"
import { previousAttributes } from "./PreviousAttributes.ts"

/** Null and "" unset, or leave unset (semantics C4, 9.2). */
export interface CustomerParameters {
  readonly email?: string | null
  readonly name?: string | null
  readonly phone?: string | null
  readonly description?: string | null
  readonly metadata?: MetadataParameter | null | ""
}

const TEXT_FIELDS = ["email", "name", "phone", "description"] as const

/** Emits `customer.created`. */
export const create = Effect.fnUntraced(function* (parameters: CustomerParameters) {
  const transaction = yield* Transaction
  const metadata = mergeMetadata({}, parameters.metadata ?? null)
  const customer: Customer = {
    id: transaction.newId(PREFIXES.customer),
    object: "customer",
    livemode: isLive(transaction.account),
    created: secondsOf(transaction.now),
    merchant_id: merchantIdOf(transaction.account),
    email: parameters.email || null,
    name: parameters.name || null,
    phone: parameters.phone || null,
    description: parameters.description || null,
    metadata
  }
  transaction.put(CUSTOMER, customer)
  emit(transaction, "customer.created", customer.id)
  return customer
})

/** Emits `customer.updated` if anything changes. */
export const update = Effect.fnUntraced(function* (id: string, parameters: CustomerParameters) {
  const transaction = yield* Transaction
  const before = yield* find(id, "id")
  const metadata = yield* updateMetadata(before.metadata, parameters.metadata)
  const after: Customer = { ...before, ...changedTexts(parameters), metadata }
  const previous = previousAttributes(before, after)
  if (Object.keys(previous).length === 0) return before
  transaction.put(CUSTOMER, after)
  emit(transaction, "customer.updated", id, previous)
  return after
})

/** Emits `customer.deleted` with the customer's last state. PaymentIntents keep its id (semantics C3). */
export const remove = Effect.fnUntraced(function* (id: string) {
  const transaction = yield* Transaction
  yield* find(id, "id")
  emit(transaction, "customer.deleted", id)
  transaction.delete(CUSTOMER, id)
  return deletedCustomer(transaction.account, id)
})

/** The customer that a parameter refers to; a deleted one cannot be referred to any more. */
export const find = (id: string, param: "id" | "customer") =>
  Effect.map(findDocument(CUSTOMER, id, param), ({ value }) => value)

/** What a deleted customer's id still shows. */
export const deletedCustomer = (account: AccountId, id: string): DeletedCustomer => ({
  id,
  object: "customer",
  deleted: true,
  livemode: isLive(account)
})

const changedTexts = (parameters: CustomerParameters): Partial<Customer> =>
  Object.fromEntries(
    TEXT_FIELDS.filter((field) => parameters[field] !== undefined).map((field) => [field, parameters[field] || null])
  )

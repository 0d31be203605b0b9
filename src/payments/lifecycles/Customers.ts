/** The lifecycle of customers, which exist until they are deleted (semantics customers.*). */
import { Effect } from "effect"
import type { CreateCustomer, Customer, DeletedCustomer, UpdateCustomer } from "../../domain/Customer.ts"
import type { ParameterInvalid, ResourceMissing } from "../../domain/Errors.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { mergeMetadata, updateMetadata } from "../../domain/Metadata.ts"
import { secondsOf } from "../../domain/Time.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { isLive, merchantIdOf } from "../shared/AccountIds.ts"
import * as PaymentMethodAttachments from "./PaymentMethodAttachments.ts"
import { CUSTOMER, findCustomer, findDocument } from "../shared/Documents.ts"
import { emit, previousAttributes } from "../shared/Events.ts"

const TEXT_FIELDS = ["email", "name", "phone", "description"] as const

/** Creates a customer. Emits `customer.created`. */
export const create = Effect.fnUntraced(function* (
  parameters: CreateCustomer
): Effect.fn.Return<Customer, never, Transaction> {
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

/** Changes the sent fields of a customer (semantics customers.update). Emits `customer.updated` for a change. */
export const update = Effect.fnUntraced(function* (
  id: string,
  parameters: UpdateCustomer
): Effect.fn.Return<Customer, ResourceMissing | ParameterInvalid, Transaction> {
  const transaction = yield* Transaction
  const before = yield* findCustomer(id, "id")
  const metadata = yield* updateMetadata(before.metadata, parameters.metadata)
  const after: Customer = { ...before, ...changedTexts(parameters), metadata }
  const previous = previousAttributes(before, after)
  if (Object.keys(previous).length === 0) return before
  transaction.put(CUSTOMER, after)
  emit(transaction, "customer.updated", id, previous)
  return after
})

/**
 * Deletes a customer and detaches its payment methods: emits `payment_method.detached` for each, then
 * `customer.deleted` with the customer's last state. PaymentIntents keep the customer's id (semantics
 * customers.delete).
 */
export const remove = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<DeletedCustomer, ResourceMissing, Transaction> {
  const transaction = yield* Transaction
  yield* findDocument(CUSTOMER, id)
  yield* PaymentMethodAttachments.detachAll(id)
  emit(transaction, "customer.deleted", id)
  transaction.delete(CUSTOMER, id)
  return deletedCustomer(transaction.account, id)
})

/** Returns the object that the API shows for a deleted customer's id (semantics customers.delete). */
export const deletedCustomer = (account: AccountId, id: string): DeletedCustomer => ({
  id,
  object: "customer",
  deleted: true,
  livemode: isLive(account)
})

const changedTexts = (parameters: UpdateCustomer): Partial<Customer> =>
  Object.fromEntries(
    TEXT_FIELDS.filter((field) => parameters[field] !== undefined).map((field) => [field, parameters[field] || null])
  )

/** Customers (spec: Customer; semantics customers.*). */
import { Schema } from "effect"
import { Email, text, unsettable } from "./Text.ts"
import { CustomerId, MerchantId } from "./Identifiers.ts"
import { Metadata, MetadataParameter } from "./Metadata.ts"
import { Timestamp } from "./Time.ts"

export const CustomerEmail = Email
export const CustomerName = text(256)
export const CustomerPhone = text(64)
export const CustomerDescription = text(1000)

/** `completed` once the data is gone from all records. */
export const ErasureStatus = Schema.Literals(["in_progress", "completed"])
export type ErasureStatus = typeof ErasureStatus.Type

/** `created` is in Unix seconds. */
export const Customer = Schema.Struct({
  id: CustomerId,
  object: Schema.Literal("customer"),
  livemode: Schema.Boolean,
  created: Timestamp,
  merchant_id: MerchantId,
  email: Schema.NullOr(Schema.String),
  name: Schema.NullOr(Schema.String),
  phone: Schema.NullOr(Schema.String),
  description: Schema.NullOr(Schema.String),
  metadata: Metadata,
  /** Absent unless the customer's data is being erased, or was (semantics erasure.course). */
  erasure: Schema.optionalKey(ErasureStatus)
}).annotate({ identifier: "Customer" })
export type Customer = typeof Customer.Type

/** The object that the API shows for a deleted customer (semantics customers.delete). */
export const DeletedCustomer = Schema.Struct({
  id: CustomerId,
  object: Schema.Literal("customer"),
  deleted: Schema.Literal(true),
  livemode: Schema.Boolean
}).annotate({ identifier: "DeletedCustomer" })
export type DeletedCustomer = typeof DeletedCustomer.Type

/** Free texts; null and "" unset them (semantics customers.update, parameters.empty_text). */
const texts = {
  name: Schema.optionalKey(Schema.NullOr(CustomerName)),
  phone: Schema.optionalKey(Schema.NullOr(CustomerPhone)),
  description: Schema.optionalKey(Schema.NullOr(CustomerDescription))
}

/** The body of a creation. Null is the same as absent (semantics parameters.null). */
export const CreateCustomer = Schema.Struct({
  email: Schema.optionalKey(Schema.NullOr(CustomerEmail)),
  ...texts,
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter))
}).annotate({ identifier: "CreateCustomer" })
export type CreateCustomer = typeof CreateCustomer.Type

/** The body of an update. Null and "" unset a field (semantics customers.update, parameters.empty_text). */
export const UpdateCustomer = Schema.Struct({
  email: Schema.optionalKey(unsettable(CustomerEmail)),
  ...texts,
  metadata: Schema.optionalKey(unsettable(MetadataParameter))
}).annotate({ identifier: "UpdateCustomer" })
export type UpdateCustomer = typeof UpdateCustomer.Type

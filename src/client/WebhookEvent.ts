/**
 * Types of the events in webhooks: `type` determines the type of `data.object` (semantics events.types).
 *
 * `switch (event.type)` narrows the object. Keep a `default`: a newer Till may send types that are missing here.
 */
import type {
  Charge,
  CheckoutSession,
  Customer,
  Event,
  EventType,
  Operation,
  PaymentIntent,
  PaymentLink,
  PaymentMethod,
  Price,
  Product,
  Refund
} from "./Contract.ts"
import type { EMITTED_EVENT_TYPES, EmittedEventType } from "../domain/EventTypes.ts"

/** The objects of events, by their `object` field. */
interface ObjectsByName {
  readonly payment_intent: PaymentIntent
  readonly charge: Charge
  readonly refund: Refund
  readonly operation: Operation
  readonly "checkout.session": CheckoutSession
  readonly payment_link: PaymentLink
  readonly customer: Customer
  readonly payment_method: PaymentMethod
  readonly product: Product
  readonly price: Price
}

/** The changed fields of an object, before the change; of metadata only the changed keys, null for a new key. */
type PreviousAttributes<Object> = {
  readonly [Field in keyof Object]?: Field extends "metadata" ? Readonly<Record<string, string | null>> : Object[Field]
}

interface EventOf<Type extends EventType, Object> extends Omit<Event, "type" | "data"> {
  readonly type: Type
  readonly data: { readonly object: Object; readonly previous_attributes?: PreviousAttributes<Object> }
}

/** The event of a type. */
export type WebhookEventOf<Type extends EventType> = Type extends EmittedEventType
  ? EventOf<Type, ObjectsByName[(typeof EMITTED_EVENT_TYPES)[Type]]>
  : EventOf<Type, Readonly<Record<string, unknown>>>

/** Any event: a union discriminated by `type`. */
export type WebhookEvent = { [Type in EventType]: WebhookEventOf<Type> }[EventType]

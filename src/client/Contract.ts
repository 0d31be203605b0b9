/**
 * The types of the contract: the parameters and results of every endpoint, and the objects. The packed client has the
 * same types written out (pack/ContractTypes.ts), so that its users need neither Effect nor the contract's schemas.
 */
import type { HttpApi, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import type { Api } from "../api/Api.ts"

export type { ApiVersion } from "../domain/ApiVersion.ts"
export type { Charge } from "../domain/Charge.ts"
export type { CheckoutSession } from "../domain/CheckoutSession.ts"
export type { Customer } from "../domain/Customer.ts"
export type { Event, EventType } from "../domain/Event.ts"
export type { Operation } from "../domain/Operation.ts"
export type { PaymentIntent } from "../domain/PaymentIntent.ts"
export type { PaymentLink } from "../domain/PaymentLink.ts"
export type { PaymentMethod } from "../domain/PaymentMethod.ts"
export type { Price } from "../domain/Price.ts"
export type { Product } from "../domain/Product.ts"
export type { Refund } from "../domain/Refund.ts"

/** An endpoint of the contract, with its path. */
type Endpoint = HttpApiEndpoint.ConstraintRequest & { readonly path: string }

/** The parameters of an endpoint without any. */
type NoParameters = Readonly<Record<string, never>>

type OrNone<A> = [A] extends [never] ? NoParameters : A

/** The parameters of an endpoint: its body, or its query if it has no body. */
type ParametersOf<E extends Endpoint> = [E["~Payload"]["Type"]] extends [never]
  ? OrNone<E["~Query"]["Type"]>
  : E["~Payload"]["Type"]

type GroupsOf<A> = A extends HttpApi.HttpApi<infer _Id, infer Groups> ? Groups : never
type Groups = GroupsOf<typeof Api>
type EndpointsOf<Group> = Extract<HttpApiGroup.Endpoints<Group>, Endpoint>

/** The parameters and results by group and name. */
export type Contract = {
  readonly [Group in Groups as HttpApiGroup.Identifier<Group>]: {
    readonly [E in EndpointsOf<Group> as E["identifier"]]: {
      readonly parameters: ParametersOf<E>
      readonly result: E["~Success"]["Type"]
    }
  }
}

/** The paths by group and name. */
export type ContractPaths = {
  readonly [Group in Groups as HttpApiGroup.Identifier<Group>]: {
    readonly [E in EndpointsOf<Group> as E["identifier"]]: E["path"]
  }
}

/**
 * A handler implements an endpoint of the contract, and is typed by it: a group without one of its handlers, or a
 * handler that answers with another object than it should, does not compile.
 *
 * A POST or DELETE is a command: an effect over the account's `Transaction`, answered with the object that it returns.
 * A GET is a query: it answers with JSON text, because documents are kept as text.
 */
import { Context, Effect, type Result } from "effect"
import type { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import type { CardDeclined, DomainError } from "../../domain/Errors.ts"
import { Accounts, type Unavailable } from "../../engine/Accounts.ts"
import { type Document, encode } from "../../engine/log/Document.ts"
import type { Transaction } from "../../engine/actor/Transaction.ts"
import { PaymentsConfig } from "../../payments/shared/PaymentsConfig.ts"
import type { Begun } from "../../payments/lifecycles/Operations.ts"
import { Processors } from "../../payments/processing/Processor.ts"
import type { WithoutCardData } from "../../payments/lifecycles/PaymentMethods.ts"
import type { Caller } from "../Authentication.ts"
import type { Reveals } from "../OneTimeSecrets.ts"

/** JSON text of a value of type `A`. */
export type Json<A> = string & { readonly "~json"?: A }

/** Gives a value's JSON, encoded at most once. */
export const jsonOf = <A extends object>(value: A): Json<A> => encode(value)

/** Gives a document's JSON, as it lies in the journal. The contract vouches for the type of its kind. */
export const documentJson = <A>(document: Document): Json<A> => document.json

/** Commands may use these. */
export type CommandServices = Transaction | PaymentsConfig | Processors

/** Queries may use these. */
export type QueryServices = Accounts | PaymentsConfig

// Services are added to what is there, at once: merging contexts would copy all of a request's services, and providing
// one after the other takes twice the steps.

/** Gives a command what it may use besides its transaction. */
export const withCommandServices =
  (config: PaymentsConfig["Service"], processor: Processors["Service"]) =>
  <A, E>(command: Effect.Effect<A, E, CommandServices>): Effect.Effect<A, E, Transaction> =>
    Effect.updateContext(command, (context: Context.Context<Transaction>) =>
      Context.add(Context.add(context, PaymentsConfig, config), Processors, processor)
    )

/** Gives a query what it may use. */
export const withQueryServices =
  (config: PaymentsConfig["Service"], accounts: Accounts["Service"]) =>
  <A, E>(query: Effect.Effect<A, E, QueryServices>): Effect.Effect<A, E> =>
    Effect.updateContext(query, (context: Context.Context<never>) =>
      Context.add(Context.add(context, PaymentsConfig, config), Accounts, accounts)
    )

type Params<E> = HttpApiEndpoint.Params<E>["Type"]
type Payload<E> = WithoutCardData<HttpApiEndpoint.Payload<E>["Type"]>
type Query<E> = HttpApiEndpoint.Query<E>["Type"]
type Success<E> = HttpApiEndpoint.Success<E>["Type"]

export interface CommandInput<E> {
  readonly params: Params<E>
  readonly payload: Payload<E>
  readonly caller: Caller
}

export interface QueryInput<E> {
  readonly params: Params<E>
  readonly query: Query<E>
  readonly caller: Caller
  /** The request's path, without its query. */
  readonly path: string
}

/**
 * A command succeeds with the object. If it can be carried out and declined nevertheless, it succeeds with a `Result`,
 * whose failure is kept, with what led to it (semantics idempotency.stored). If a processor behind a network has to be
 * called, it has begun an operation, whose outcome brings the answer (semantics operations.*).
 */
export type Answered<A> = A | Result.Result<A, CardDeclined> | Begun

/** A failure that the effect fails with leaves nothing behind. */
export type CommandHandler<E> = (
  input: CommandInput<E>
) => Effect.Effect<Answered<Success<E>> | Reveals<Success<E>>, DomainError, CommandServices>

export type QueryHandler<E> = (
  input: QueryInput<E>
) => Effect.Effect<Json<Success<E>>, DomainError | Unavailable, QueryServices>

/**
 * A command that needs something that no transaction can get at, such as an event. It is read before the command gets
 * its turn, so it may be older than what the command sees: right for what never changes. The command is carried out, or
 * not, like any other.
 */
export interface PreparedCommandHandler<E> {
  readonly prepare: (
    input: Omit<CommandInput<E>, "payload">
  ) => Effect.Effect<CommandHandler<E>, Unavailable, QueryServices>
}

/** A command whose answer waits until what it has led to has happened as well, whatever becomes of that. */
export interface AwaitedCommandHandler<E> {
  readonly command: CommandHandler<E>
  readonly settled: (caller: Caller) => Effect.Effect<void, Unavailable, QueryServices>
}

export type Handler<E> = E extends { readonly method: "GET" }
  ? QueryHandler<E>
  : CommandHandler<E> | PreparedCommandHandler<E> | AwaitedCommandHandler<E>

/** One handler per endpoint of a group. */
export type GroupHandlers<Group extends HttpApiGroup.Constraint> = {
  readonly [Name in keyof Group["endpoints"]]: Handler<Group["endpoints"][Name]>
}

/** The handlers of a group of the contract. The group only lends its types. */
export const handlers = <Group extends HttpApiGroup.Constraint>(
  _group: Group,
  implementation: GroupHandlers<Group>
): GroupHandlers<Group> => implementation

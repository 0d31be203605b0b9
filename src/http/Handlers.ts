/**
 * Implementations of the contract's endpoints, typed by the contract: a group without one of its handlers, or a handler
 * that answers with another object than it should, does not compile.
 *
 * A POST or DELETE is a command: an effect over the account's `Transaction`, answered with the object that it returns.
 * A GET is a query: it answers with JSON text, because documents are kept as text.
 */
import type { Effect } from "effect"
import { Result } from "effect"
import type { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import type { CardDeclined, DomainError } from "../domain/Errors.ts"
import type { Accounts, Unavailable } from "../engine/Accounts.ts"
import type { Document } from "../engine/Document.ts"
import { encode } from "../engine/Document.ts"
import type { Transaction } from "../engine/Transaction.ts"
import type { PaymentsConfig } from "../payments/PaymentsConfig.ts"
import type { Processor } from "../payments/Processor.ts"
import type { WithoutCardData } from "../payments/Tokenization.ts"
import type { Caller } from "./Authentication.ts"

/** JSON text of a value of type `A`. */
export type Json<A> = string & { readonly "~json"?: A }

/** A value's JSON, encoded at most once. */
export const jsonOf = <A extends object>(value: A): Json<A> => encode(value)

/** A document's JSON, as it lies in the journal. The contract vouches for the type of its kind. */
export const documentJson = <A>(document: Document): Json<A> => document.json

const shown = new WeakMap<object, string>()

/**
 * Lets the first answer to a request show more than the object: secrets that are not kept. The journal gets the object
 * without them, and so does every repetition of the request.
 */
export const showOnce = <A extends object, B extends object>(value: A, secrets: B): A & Partial<B> => {
  shown.set(value, JSON.stringify({ ...value, ...secrets }))
  return value
}

/** What only the first answer shows of an object, if anything. */
export const shownOnce = (value: object): string | undefined => shown.get(value)

/** What commands may use. */
export type CommandServices = Transaction | PaymentsConfig | Processor

/** What queries may use. */
export type QueryServices = Accounts | PaymentsConfig

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

/** What a command answers with: the object, or, if it can be carried out and declined nevertheless, a `Result`. */
export type Answered<A> = A | Result.Result<A, CardDeclined>

/** What a command came to. A failure in it is kept, with what led to it (semantics 9.25). */
export const outcomeOf = <A extends object>(answered: Answered<A>): Result.Result<A, CardDeclined> =>
  Result.isResult(answered) ? answered : Result.succeed(answered)

/** A failure that the effect fails with leaves nothing behind. */
export type CommandHandler<E> = (
  input: CommandInput<E>
) => Effect.Effect<Answered<Success<E>>, DomainError, CommandServices>

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

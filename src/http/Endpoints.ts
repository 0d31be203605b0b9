/**
 * The contract with its handlers, compiled once at start: per request it only remains to find an endpoint and to call
 * the few functions that it consists of.
 */
import type { Effect } from "effect"
import { Context, Exit, Schema } from "effect"
import type { HttpApi, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { InstallationWide, PublishableKey, TestMode, WithoutClientSecret } from "../api/Access.ts"
import type { DomainError } from "../domain/Errors.ts"
import { ParameterInvalid, ParameterUnknown } from "../domain/Errors.ts"
import type { Unavailable } from "../engine/Accounts.ts"
import type { Caller } from "./Authentication.ts"
import type { Answered, AwaitedCommandHandler, CommandServices, GroupHandlers, QueryServices } from "./Handlers.ts"
import type { Parsed } from "./JsonBody.ts"
import { pathOfUnstorableText, STORABLE_RULE, withoutUnstorableText } from "./JsonBody.ts"
import type { ParameterError } from "./ParameterErrors.ts"
import { parameterErrorOf } from "./ParameterErrors.ts"
import { parameterPath } from "./ParameterPath.ts"
import type { Query, QueryDecoder } from "./QueryString.ts"
import { makeQueryDecoder } from "./QueryString.ts"

interface Common {
  readonly method: string
  /** As in the contract: `/v1/customers/:id`. */
  readonly path: string
  /** Whether publishable keys may call it, with the object's `client_secret`. */
  readonly publishableKey: boolean
  /** Whether publishable keys may call it as it is. */
  readonly withoutClientSecret: boolean
  readonly testMode: boolean
  /** Whether its commands run in the installation's account. */
  readonly installationWide: boolean
  readonly decodeQuery: QueryDecoder
}

export type RunCommand = (input: {
  readonly params: Readonly<Record<string, string>>
  readonly payload: unknown
  readonly caller: Caller
}) => Effect.Effect<Answered<object>, DomainError, CommandServices>

interface PreparedCommand {
  readonly prepare: (input: {
    readonly params: Readonly<Record<string, string>>
    readonly caller: Caller
  }) => Effect.Effect<RunCommand, Unavailable, QueryServices>
}

interface AwaitedCommand extends Pick<Required<CommandEndpoint>, "settled"> {
  readonly command: RunCommand
}

export interface CommandEndpoint extends Common {
  readonly kind: "command"
  readonly decodePayload: (body: Parsed) => Exit.Exit<unknown, ParameterError>
  /** What a success waits for. */
  readonly settled?: AwaitedCommandHandler<never>["settled"]
  /** The command, or what has to be read before there is one. */
  readonly run: RunCommand | PreparedCommand
}

export interface QueryEndpoint extends Common {
  readonly kind: "query"
  /** Answers with JSON text. */
  readonly run: (input: {
    readonly params: Readonly<Record<string, string>>
    readonly query: Query
    readonly caller: Caller
    readonly path: string
  }) => Effect.Effect<string, DomainError | Unavailable, QueryServices>
}

export type Endpoint = CommandEndpoint | QueryEndpoint

/** Handlers for every group of a contract. */
export type ApiHandlers<Groups extends HttpApiGroup.Constraint> = {
  readonly [Group in Groups as Group["identifier"]]: GroupHandlers<Group>
}

/** Puts a contract and its handlers together. */
export const compile = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  handlers: ApiHandlers<Groups>
): ReadonlyArray<Endpoint> => {
  const groups = Object.values(api.groups) as ReadonlyArray<HttpApiGroup.Top>
  return groups.flatMap((group) =>
    Object.values(group.endpoints as Readonly<Record<string, HttpApiEndpoint.Top>>).map((endpoint) => {
      const ofGroup = handlers[group.identifier as keyof typeof handlers] as Readonly<Record<string, unknown>>
      return compileEndpoint(endpoint, ofGroup[endpoint.identifier])
    })
  )
}

/** The handler's type was checked against the contract where the handlers were declared. */
const compileEndpoint = (endpoint: HttpApiEndpoint.Top, handler: unknown): Endpoint => {
  const isQuery = endpoint.method === "GET"
  const common: Common = {
    method: endpoint.method,
    path: endpoint.path,
    publishableKey: Context.get(endpoint.annotations, PublishableKey),
    withoutClientSecret: Context.get(endpoint.annotations, WithoutClientSecret),
    testMode: Context.get(endpoint.annotations, TestMode),
    installationWide: Context.get(endpoint.annotations, InstallationWide),
    decodeQuery: makeQueryDecoder(endpoint.query, { expand: isQuery, route: routeName(endpoint) })
  }
  if (isQuery) return { ...common, kind: "query", run: handler as QueryEndpoint["run"] }
  const [payload] = [...endpoint.payload.values()].flatMap(({ schemas }) => [...schemas])
  return {
    ...common,
    kind: "command",
    decodePayload: payload === undefined ? decodeNoPayload : makePayloadDecoder(payload),
    ...runOf(handler as RunCommand | PreparedCommand | AwaitedCommand)
  }
}

const runOf = (handler: RunCommand | PreparedCommand | AwaitedCommand): Pick<CommandEndpoint, "run" | "settled"> =>
  "command" in handler ? { run: handler.command, settled: handler.settled } : { run: handler }

/** How messages name a route: `GET /v1/payment_intents/{id}`. */
const routeName = ({ method, path }: HttpApiEndpoint.Top): string => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`

/** An endpoint without parameters takes an empty object. A schema without fields would take anything. */
const decodeNoPayload: CommandEndpoint["decodePayload"] = ({ value }) => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return Exit.fail(new ParameterInvalid({ param: null, rule: "a JSON object" }))
  }
  const [unknown] = Object.keys(value)
  return unknown === undefined
    ? Exit.succeed(value)
    : Exit.fail(new ParameterUnknown({ param: parameterPath([unknown]) }))
}

/** What is right is decoded once; only what is wrong is decoded again, to find all that is wrong with it. */
const makePayloadDecoder = (schema: Schema.Top): CommandEndpoint["decodePayload"] => {
  const decoder = schema as Schema.Decoder<unknown>
  const decode = Schema.decodeUnknownExit(decoder, { onExcessProperty: "error" })
  const diagnose = Schema.decodeUnknownExit(decoder, { onExcessProperty: "error", errors: "all" })
  return ({ escapes, value }) => {
    const decoded = decode(value)
    const unstorable = escapes ? pathOfUnstorableText(value) : undefined
    if (Exit.isSuccess(decoded) && unstorable === undefined) return Exit.succeed(decoded.value)
    const input = unstorable === undefined ? value : withoutUnstorableText(value)
    const diagnosed = diagnose(abridged(input))
    if (Exit.isFailure(diagnosed)) return Exit.fail(parameterErrorOf(schema.ast, diagnosed, input))
    if (Exit.isFailure(decoded)) return Exit.fail(parameterErrorOf(schema.ast, decoded, value))
    return Exit.fail(new ParameterInvalid({ param: parameterPath(unstorable!), rule: STORABLE_RULE }))
  }
}

/** More members than any array or object of a request may have, unless it is one of names to choose from. */
const MEMBERS_MAX = 128

/** An input without what is too many, so that nobody can keep the service busy with a megabyte of errors. */
const abridged = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.slice(0, MEMBERS_MAX).map(abridged)
  const members = Object.entries(value).slice(0, MEMBERS_MAX)
  return Object.fromEntries(members.map(([name, member]) => [name, abridged(member)]))
}

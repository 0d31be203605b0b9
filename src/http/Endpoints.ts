/**
 * Compiles the API's contract and its handlers into endpoints, once at start. Per request, it remains to find the
 * endpoint and to call its functions.
 */
import { Context, type Effect } from "effect"
import type { HttpApi, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { InstallationWide, PublishableKey, TestMode, WithoutClientSecret } from "../api/Access.ts"
import type { DomainError } from "../domain/Errors.ts"
import type { Unavailable } from "../engine/Accounts.ts"
import type { Caller } from "./Authentication.ts"
import type {
  Answered,
  AwaitedCommandHandler,
  CommandServices,
  GroupHandlers,
  QueryServices
} from "./handlers/Handler.ts"
import { makePayloadDecoder, type PayloadDecoder } from "./Payload.ts"
import { makeQueryDecoder, type Query, type QueryDecoder } from "./QueryString.ts"

interface Common {
  readonly method: string
  /** The path in the contract: `/v1/customers/:id`. */
  readonly path: string
  /** Method and path, by which changes between API versions name the endpoint: `POST /v1/customers/:id`. */
  readonly route: string
  /** The path with its parameters in braces: `/v1/customers/{id}`. */
  readonly template: string
  /** True if publishable keys may call the endpoint with the object's `client_secret`. */
  readonly publishableKey: boolean
  /** True if publishable keys may call the endpoint without a `client_secret`. */
  readonly withoutClientSecret: boolean
  readonly testMode: boolean
  /** True if the endpoint's commands run in the installation's account. */
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
  readonly decodePayload: PayloadDecoder
  /** Waits until the command's asynchronous consequences have happened. The answer to a success waits for it. */
  readonly settled?: AwaitedCommandHandler<never>["settled"]
  /** Runs the command, or reads what it needs and then runs it. */
  readonly run: RunCommand | PreparedCommand
}

export interface QueryEndpoint extends Common {
  readonly kind: "query"
  /** Returns JSON text. */
  readonly run: (input: {
    readonly params: Readonly<Record<string, string>>
    readonly query: Query
    readonly caller: Caller
    readonly path: string
  }) => Effect.Effect<string, DomainError | Unavailable, QueryServices>
}

export type Endpoint = CommandEndpoint | QueryEndpoint

/** Returns a function that decides by a path whether its requests concern the installation's account. */
export const installationWideOf = (endpoints: ReadonlyArray<Endpoint>): ((path: string) => boolean) => {
  const wide = endpoints.filter(({ installationWide }) => installationWide)
  const bases = [...new Set(wide.map(({ path }) => path.split("/:", 1)[0]!))]
  return (path) =>
    bases.some((base) => path.startsWith(base) && (path.length === base.length || path[base.length] === "/"))
}

/** Handlers for every group of a contract. */
export type ApiHandlers<Groups extends HttpApiGroup.Constraint> = {
  readonly [Group in Groups as Group["identifier"]]: GroupHandlers<Group>
}

/** Combines a contract with its handlers. */
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

/** Compiles an endpoint. The handler's type was checked against the contract where the handler was declared. */
const compileEndpoint = (endpoint: HttpApiEndpoint.Top, handler: unknown): Endpoint => {
  const isQuery = endpoint.method === "GET"
  const common: Common = {
    method: endpoint.method,
    path: endpoint.path,
    route: `${endpoint.method} ${endpoint.path}`,
    template: templateOf(endpoint.path),
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
    decodePayload: makePayloadDecoder(payload),
    ...runOf(handler as RunCommand | PreparedCommand | AwaitedCommand)
  }
}

const runOf = (handler: RunCommand | PreparedCommand | AwaitedCommand): Pick<CommandEndpoint, "run" | "settled"> =>
  "command" in handler ? { run: handler.command, settled: handler.settled } : { run: handler }

export const templateOf = (path: string): string => path.replaceAll(/:(\w+)/g, "{$1}")

/** Returns a route's name in messages: `GET /v1/payment_intents/{id}`. */
const routeName = ({ method, path }: HttpApiEndpoint.Top): string => `${method} ${templateOf(path)}`

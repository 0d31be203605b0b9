/**
 * Versions as data (semantics versions.events): an ordered list of dated versions, each with its changes. All other
 * code implements the newest version. For a caller of an older version, requests are converted to the newest one before
 * they are decoded, and responses and events are converted back after they are built. Changes are pure.
 *
 * - A request passes through the changes oldest first, a response newest first.
 * - Serving the newest version costs nothing. For an older version, a text without a changed object is not parsed.
 * - An object is recognized by its `object` field anywhere in a response: alone, in a list, expanded, or in an error.
 *   Metadata is never converted, nor is an event, which stays as it was rendered when it happened.
 */
import { Context, Layer, Result } from "effect"
import { parseJson } from "../json/JsonParse.ts"
import { API_VERSIONS } from "./ApiVersion.ts"
import type { ParameterInvalid, ParameterMissing, ParameterUnknown } from "./ParameterErrors.ts"
import { PUBLISHABLE_FIELDS } from "./Publishable.ts"

export type JsonObject = Readonly<Record<string, unknown>>

/** A request before it is decoded and validated. */
export interface VersionedRequest {
  readonly query: URLSearchParams
  readonly body: unknown
}

export type RequestError = ParameterInvalid | ParameterMissing | ParameterUnknown

/** The response of an endpoint: an object, a list or an error. */
export interface VersionedAnswer {
  readonly status: number
  readonly body: JsonObject
}

/** A method and path of the contract, such as `POST /v1/customers/:id`; `*` matches all, and requests without one. */
export type Route = string

/** A breaking change (spec: Versioning 6). Its functions convert across this one change, in one direction each. */
export interface Change {
  /** Describes the difference to a merchant. */
  readonly description: string
  /**
   * Converts an object to the previous version, by `object`. Objects inside of it are converted before. For
   * `previous_attributes` it receives the whole object before the update, in which an absent field may be null.
   */
  readonly objects?: Readonly<Record<string, (newer: JsonObject) => JsonObject>>
  /** Renames the fields that publishable keys see of an object, to the previous version's names. */
  readonly publishable?: Readonly<Record<string, (newer: ReadonlyArray<string>) => ReadonlyArray<string>>>
  /** Converts a request to the newer version. Refuses unknown parameters in the previous version's terms. */
  readonly requests?: Readonly<
    Record<Route, (older: VersionedRequest) => Result.Result<VersionedRequest, RequestError>>
  >
  /** Converts an endpoint's response to the previous version. Its objects are still the newer version's. */
  readonly answers?: Readonly<Record<Route, (newer: VersionedAnswer) => VersionedAnswer>>
}

export interface Version {
  readonly date: string
  /** Changes since the previous version; none in the first. */
  readonly changes: ReadonlyArray<Change>
}

/** All published versions, oldest first. CONTRIBUTING.md describes how to add one. */
export const VERSIONS: ReadonlyArray<Version> = [{ date: API_VERSIONS[0], changes: [] }]

/** A request that a change refused, with an error in the previous version's terms, which `older` converts further. */
interface RefusedRequest {
  readonly error: RequestError
  readonly older: OlderVersion
}

/** The conversions that serve an older version. */
export interface OlderVersion {
  /** Converts a request to the newest version. */
  readonly request: (
    route: Route,
    query: string,
    body: unknown
  ) => Result.Result<{ readonly query: string; readonly body: unknown }, RefusedRequest>
  /** Converts a response of the newest version to this version; returns the same one if nothing in it has changed. */
  readonly answer: <A extends { readonly status: number; readonly body: string }>(
    route: Route | undefined,
    newest: A
  ) => A
  /** Converts an object of the newest version to this version. */
  readonly object: (newest: JsonObject) => JsonObject
  /** Returns false only if no change affects this JSON text of an object. */
  readonly concerns: (text: string) => boolean
  /** The fields that publishable keys see, by `object`. */
  readonly publishableFields: Readonly<Record<string, ReadonlyArray<string>>>
}

export interface ApiVersionsShape {
  /** Oldest first. */
  readonly known: ReadonlyArray<string>
  readonly newest: string
  /** Returns undefined for the newest version, which needs no conversion. */
  readonly older: (version: string) => OlderVersion | undefined
}

export class ApiVersions extends Context.Service<ApiVersions, ApiVersionsShape>()("till/domain/ApiVersions") {
  static readonly layer = (versions: ReadonlyArray<Version> = VERSIONS): Layer.Layer<ApiVersions> =>
    Layer.sync(ApiVersions, () => make(versions))
}

/** Builds the conversions of all versions. Throws unless the versions are in the order of their dates. */
export const make = (versions: ReadonlyArray<Version>): ApiVersionsShape => {
  const known = versions.map(({ date }) => date)
  const isOrdered = known.every((date, i) => /^\d{4}-\d\d-\d\d$/u.test(date) && (i === 0 || known[i - 1]! < date))
  if (!isOrdered || known.length === 0) throw new Error(`Versions are dates, oldest first: ${known.join(", ")}`)
  const older = new Map(
    known.slice(0, -1).map((date, i) => [date, olderVersion(versions.slice(i + 1).flatMap(({ changes }) => changes))])
  )
  return { known, newest: known.at(-1)!, older: (version) => older.get(version) }
}

/** Builds the conversions of a version from all changes after it, oldest first. */
const olderVersion = (changes: ReadonlyArray<Change>): OlderVersion => {
  const newestFirst = changes.toReversed()
  const marks = changes.flatMap(({ objects = {} }) =>
    Object.keys(objects).map((type) => `"object":${JSON.stringify(type)}`)
  )
  const concerns = (text: string) => marks.some((mark) => text.includes(mark))
  const changesAnswers = (route: Route | undefined) =>
    changes.some(({ answers = {} }) => "*" in answers || (route !== undefined && route in answers))
  return {
    concerns,
    request: (route, query, body) => {
      let request: VersionedRequest | undefined
      for (const [i, { requests = {} }] of changes.entries()) {
        for (const step of stepsOf(requests, route)) {
          const next = step(request ?? { query: new URLSearchParams(query), body })
          if (Result.isFailure(next)) {
            return Result.fail({ error: next.failure, older: olderVersion(changes.slice(0, i)) })
          }
          request = next.success
        }
      }
      return Result.succeed(
        request === undefined ? { query, body } : { query: request.query.toString(), body: request.body }
      )
    },
    answer: (route, newest) => {
      if (newest.body === "" || !(concerns(newest.body) || changesAnswers(route))) return newest
      const start: VersionedAnswer = { status: newest.status, body: parseJson(newest.body) as JsonObject }
      const { body, status } = newestFirst.reduce(({ body, status }, { answers = {}, objects = {} }) => {
        const answer = stepsOf(answers, route).reduce<VersionedAnswer>((answer, step) => step(answer), { body, status })
        return { status: answer.status, body: takenBack(answer.body, objects) as JsonObject }
      }, start)
      return { ...newest, status, body: JSON.stringify(body) }
    },
    object: (newest) =>
      newestFirst.reduce<JsonObject>((newer, { objects = {} }) => takenBack(newer, objects) as JsonObject, newest),
    publishableFields: newestFirst.reduce(
      (fields, { publishable = {} }) => ({
        ...fields,
        ...Object.fromEntries(Object.entries(publishable).map(([type, change]) => [type, change(fields[type] ?? [])]))
      }),
      PUBLISHABLE_FIELDS
    )
  }
}

const stepsOf = <A>(steps: Readonly<Record<Route, A>>, route: Route | undefined): ReadonlyArray<A> =>
  [steps["*"], route === undefined ? undefined : steps[route]].filter((step) => step !== undefined)

/** Converts every object of these types back across one change, inner objects first. */
const takenBack = (value: unknown, objects: NonNullable<Change["objects"]>): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map((item) => takenBack(item, objects))
  const { object: type } = value as JsonObject
  if (type === "event") return value
  const members = Object.entries(value).map(([name, member]) => [
    name,
    name === "metadata" ? member : takenBack(member, objects)
  ])
  const inside = Object.fromEntries(members) as JsonObject
  return typeof type === "string" && Object.hasOwn(objects, type) ? objects[type]!(inside) : inside
}

/**
 * Versions are data (semantics 9.22): an ordered list of dated versions, each with the changes that it made. All code
 * is of the newest one. Whoever uses an older one has requests taken forward, change by change, before they are
 * decoded, and answers and events taken back, change by change, once they are made. Changes are pure.
 *
 * - A request comes to the newest version oldest change first, an answer goes back newest change first.
 * - The newest version costs nothing: nothing of it is looked at. Of an older one, a text without an object that has
 *   changed stays the text that it is.
 * - An object is recognized by its `object`, wherever in an answer it is: by itself, in a list, expanded, in an error.
 *   Metadata is the merchant's, whatever it looks like, and an event stays as it was rendered when it happened.
 */
import { Context, Layer, Result } from "effect"
import { parseJson } from "../json/JsonParse.ts"
import { API_VERSIONS } from "./ApiVersion.ts"
import type { ParameterInvalid, ParameterMissing, ParameterUnknown } from "./ParameterErrors.ts"
import { PUBLISHABLE_FIELDS } from "./Publishable.ts"

export type JsonObject = Readonly<Record<string, unknown>>

/** A request before it is decoded: nobody has looked at either part yet. */
export interface VersionedRequest {
  readonly query: URLSearchParams
  readonly body: unknown
}

export type RequestError = ParameterInvalid | ParameterMissing | ParameterUnknown

/** The answer of an endpoint: an object, a list or an error. */
export interface VersionedAnswer {
  readonly status: number
  readonly body: JsonObject
}

/** A method and a path of the contract, such as `POST /v1/customers/:id`; `*` stands for all, and for none at all. */
export type Route = string

/**
 * One change that breaks what older callers rely on (spec: Versioning 6). Each part takes one thing by this one change,
 * forward or back, and leaves what it does not know as it is.
 */
export interface Change {
  /** Says to a merchant what is different now. */
  readonly description: string
  /**
   * Makes an object what the version before shows of it, by `object`. Objects inside of it have been taken back before.
   * For `previous_attributes` it gets the whole object as it was, where a field that was absent may be null.
   */
  readonly objects?: Readonly<Record<string, (newer: JsonObject) => JsonObject>>
  /** The fields that the version before shows publishable keys of an object, where they have other names there. */
  readonly publishable?: Readonly<Record<string, (newer: ReadonlyArray<string>) => ReadonlyArray<string>>>
  /**
   * Makes a request what the newer version takes. Refuses what the version before did not know, or what the change
   * cannot read, in the words of the version before.
   */
  readonly requests?: Readonly<
    Record<Route, (older: VersionedRequest) => Result.Result<VersionedRequest, RequestError>>
  >
  /** Makes an endpoint's answer that of the version before. Its objects are still the newer version's. */
  readonly answers?: Readonly<Record<Route, (newer: VersionedAnswer) => VersionedAnswer>>
}

export interface Version {
  /** `YYYY-MM-DD` */
  readonly date: string
  /** What it changed of the version before; of the first, nothing. */
  readonly changes: ReadonlyArray<Change>
}

/** All published versions, oldest first. How one is added: CONTRIBUTING.md. */
export const VERSIONS: ReadonlyArray<Version> = [{ date: API_VERSIONS[0], changes: [] }]

/** An answer as it goes out; `body` is JSON text. */
interface Answer {
  readonly status: number
  readonly body: string
}

/** A change has refused a request, in the words of the version before it, from which `older` takes the error back. */
interface RefusedRequest {
  readonly error: RequestError
  readonly older: OlderVersion
}

/** How an older version is served. */
export interface OlderVersion {
  /** Makes a request to a route one of the newest version. */
  readonly request: (
    route: Route,
    query: string,
    body: unknown
  ) => Result.Result<{ readonly query: string; readonly body: unknown }, RefusedRequest>
  /** Makes an answer of the newest version one of this; the same one if nothing in it has changed. */
  readonly answer: <A extends Answer>(route: Route | undefined, newest: A) => A
  /** Makes an object of the newest version one of this. */
  readonly object: (newest: JsonObject) => JsonObject
  /** True unless nothing in this JSON text of an object has changed. */
  readonly concerns: (text: string) => boolean
  /** The fields that publishable keys are shown, by `object`. */
  readonly publishableFields: Readonly<Record<string, ReadonlyArray<string>>>
}

export interface ApiVersionsShape {
  /** Oldest first. */
  readonly known: ReadonlyArray<string>
  readonly newest: string
  /** Undefined for the newest version, which nothing has to be done for. */
  readonly older: (version: string) => OlderVersion | undefined
}

/** The versions that this Till serves. */
export class ApiVersions extends Context.Service<ApiVersions, ApiVersionsShape>()("till/domain/ApiVersions") {
  static readonly layer = (versions: ReadonlyArray<Version> = VERSIONS): Layer.Layer<ApiVersions> =>
    Layer.sync(ApiVersions, () => make(versions))
}

/** Puts versions together. Throws if they are not in the order of their dates. */
export const make = (versions: ReadonlyArray<Version>): ApiVersionsShape => {
  const known = versions.map(({ date }) => date)
  const isOrdered = known.every((date, i) => /^\d{4}-\d\d-\d\d$/u.test(date) && (i === 0 || known[i - 1]! < date))
  if (!isOrdered || known.length === 0) throw new Error(`Versions are dates, oldest first: ${known.join(", ")}`)
  const older = new Map(
    known.slice(0, -1).map((date, i) => [date, olderVersion(versions.slice(i + 1).flatMap(({ changes }) => changes))])
  )
  return { known, newest: known.at(-1)!, older: (version) => older.get(version) }
}

/** Serves the version that all of these changes came after, oldest first. */
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

/** Takes every object of these types back by one change, those inside first. */
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

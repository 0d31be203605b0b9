/** The changes of versions that come again and again (spec: Versioning 6), each forward and back in one piece. */
import { Result } from "effect"
import type { Change, JsonObject, RequestError, Route, VersionedAnswer, VersionedRequest } from "./ApiVersions.ts"
import { ParameterUnknown } from "./ParameterErrors.ts"

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Gives a member another name, in its place. */
const renamed = (value: JsonObject, from: string, to: string): JsonObject =>
  Object.fromEntries(Object.entries(value).map(([name, member]) => [name === from ? to : name, member]))

interface Names {
  readonly older: string
  readonly newer: string
}

/** A field of an object has another name now. */
export const renamedField = (
  type: string,
  { newer, older }: Names
): Required<Pick<Change, "objects" | "publishable">> => ({
  objects: { [type]: (value) => renamed(value, newer, older) },
  publishable: { [type]: (fields) => fields.map((field) => (field === newer ? older : field)) }
})

/** Changes a body; what is no object is left for the schema to refuse. */
export const inBody =
  (change: (body: JsonObject) => Result.Result<JsonObject, RequestError>) =>
  (request: VersionedRequest): Result.Result<VersionedRequest, RequestError> =>
    isObject(request.body)
      ? Result.map(change(request.body), (body) => ({ ...request, body }))
      : Result.succeed(request)

/**
 * A parameter of a body has another name now. The version before refuses the new name, and its errors name the old one.
 */
export const renamedParameter = (
  route: Route,
  { newer, older }: Names
): Required<Pick<Change, "requests" | "answers">> => ({
  requests: {
    [route]: inBody((body) =>
      Object.hasOwn(body, newer)
        ? Result.fail(new ParameterUnknown({ param: newer }))
        : Result.succeed(renamed(body, older, newer))
    )
  },
  answers: { [route]: inErrors((error) => renamedIn(error, newer, older)) }
})

/** A parameter of a body that is left out has another default now: the version before still means its own. */
export const otherDefault = (route: Route, name: string, older: unknown): Required<Pick<Change, "requests">> => ({
  requests: {
    [route]: inBody((body) => Result.succeed((body[name] ?? null) === null ? { ...body, [name]: older } : body))
  }
})

/** Changes errors, and leaves other answers as they are. */
export const inErrors =
  (change: (error: JsonObject) => JsonObject) =>
  (answer: VersionedAnswer): VersionedAnswer => {
    const { error } = answer.body
    return isObject(error) ? { ...answer, body: { ...answer.body, error: change(error) } } : answer
  }

/** An error has another code now. `doc_url` leads to the page of that one, which explains both. */
export const renamedErrorCode = (route: Route, { newer, older }: Names): Required<Pick<Change, "answers">> => ({
  answers: {
    [route]: inErrors((error) => (error["code"] === newer ? { ...error, code: older } : error))
  }
})

/** Has an error name a parameter as the older version knows it, in `param` and in the message. */
const renamedIn = (error: JsonObject, newer: string, older: string): JsonObject => {
  const { message, param } = error
  if (typeof param !== "string" || typeof message !== "string") return error
  const [first = ""] = param.split("[", 1)
  if (first !== newer) return error
  const named = `${older}${param.slice(first.length)}`
  return { ...error, param: named, message: message.replace(param, () => named) }
}

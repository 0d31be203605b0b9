/** What a browser sends with a form. */
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { Unavailable } from "../engine/Accounts.ts"
import type { RequestTooLarge } from "../http/HttpErrors.ts"
import { RequestBodies } from "../http/RequestBody.ts"

/** The values of a form by name; of a name that is given twice, the first. */
export type FormValues = ReadonlyMap<string, string>

/** No form of a page is this long, in bytes. Taking one apart may cost the square of its length. */
const FORM_BYTES_MAX = 65_536
/** No value is this long; what is longer is not looked into. */
const VALUE_LENGTH_MAX = 5000

/** The form; undefined if what was sent is none. */
export const readForm = (
  request: HttpServerRequest.HttpServerRequest
): Effect.Effect<FormValues | undefined, RequestTooLarge | Unavailable, RequestBodies> =>
  Effect.map(
    RequestBodies.use(({ readBody }) => readBody(request, FORM_BYTES_MAX)),
    (body) => {
      const [type] = (request.headers["content-type"] ?? "").split(";", 1)
      if (type?.trim().toLowerCase() !== "application/x-www-form-urlencoded") return undefined
      const values = new Map<string, string>()
      for (const [name, value] of new URLSearchParams(body.toString("utf8"))) {
        if (!values.has(name)) values.set(name, clean(value))
      }
      return values
    }
  )

/** What no field of a form can mean: white space around it, and characters that cannot be stored. */
const clean = (value: string): string => value.slice(0, VALUE_LENGTH_MAX).replaceAll("\0", "").toWellFormed().trim()

/**
 * Whether the browser says that another site's page sent this. Old browsers say nothing; the form's token is what such
 * a page cannot have.
 */
export const isCrossSite = ({ headers }: HttpServerRequest.HttpServerRequest): boolean => {
  const site = headers["sec-fetch-site"]
  return site === "cross-site" || site === "same-site"
}

/** Whether the page's script asks, and wants data instead of a page. */
export const wantsData = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  headers["accept"] === "application/json"

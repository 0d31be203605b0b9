/**
 * Serves merchants' colours as style sheets: `/accent/1b7f5e.css` (semantics 9.15). Pages allow no style of their own,
 * and what is served follows from the address alone: it says nothing of any merchant.
 */
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { styleSheetOf } from "./Accent.ts"

/** Path of the style sheet for a colour `#rrggbb`. */
export const pathOf = (accent: string): string => `/accent/${accent.slice(1)}.css`

/** The same colour may become another style sheet with another Till. */
const HEADERS = { "cache-control": "public, max-age=3600", "cross-origin-resource-policy": "cross-origin" }

export const layer = HttpRouter.add(
  "GET",
  "/accent/:file",
  Effect.map(HttpRouter.params, ({ file = "" }) => {
    const color = /^([0-9a-f]{6})\.css$/.exec(file)?.[1]
    return color === undefined
      ? HttpServerResponse.empty({ status: 404 })
      : HttpServerResponse.text(styleSheetOf(`#${color}`), { contentType: "text/css; charset=utf-8", headers: HEADERS })
  })
)

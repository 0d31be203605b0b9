/**
 * Compresses what browsers load: pages, style sheets, scripts and the files of the documentation, by the best of zstd,
 * Brotli and gzip that the client accepts. Responses of `/v1` do not pass through here: they are small.
 *
 * Pages with secrets are compressed, too. An attack that guesses a secret from the length of compressed pages needs
 * the victim's browser to load them with the attacker's text and the victim's session: the dashboard's cookie is never
 * sent from other sites, and pages of payers have no session (docs/decisions/documentation.md).
 */
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { promisify } from "node:util"
import * as zlib from "node:zlib"

type Encoding = "zstd" | "br" | "gzip"

const { constants } = zlib

/** In the order of preference. Levels that take a few milliseconds for a page. */
const ENCODERS: Readonly<Record<Encoding, (body: Uint8Array) => Promise<Uint8Array>>> = {
  zstd: (body) => promisify(zlib.zstdCompress)(body, { params: { [constants.ZSTD_c_compressionLevel]: 9 } }),
  br: (body) => promisify(zlib.brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }),
  gzip: (body) => promisify(zlib.gzip)(body, { level: 7 })
}

const TYPES = /^(?:text\/(?:html|css|javascript|plain|markdown)|application\/json)\b/

/** Shorter bodies fit into one packet anyway. */
const BYTES_MIN = 1024

/** Returns the best encoding that an `Accept-Encoding` header accepts; undefined if it accepts none. */
export const encodingOf = (accepted: string | undefined): Encoding | undefined => {
  const weights = new Map(
    (accepted ?? "").split(",").map((part) => {
      const [name = "", ...parameters] = part.split(";").map((piece) => piece.trim().toLowerCase())
      const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice("q=".length)
      return [name, weight === undefined ? 1 : Number(weight)] as const
    })
  )
  const known = (Object.keys(ENCODERS) as ReadonlyArray<Encoding>).filter((name) => (weights.get(name) ?? 0) > 0)
  return known.toSorted((a, b) => weights.get(b)! - weights.get(a)!)[0]
}

/** Compressed bodies of public responses by encoding and path, so that each is compressed once. */
class Kept {
  readonly #bodies = new Map<string, { readonly source: Uint8Array; readonly compressed: Uint8Array }>()

  async compress(encoding: Encoding, path: string, source: Uint8Array): Promise<Uint8Array> {
    const key = `${encoding} ${path}`
    const known = this.#bodies.get(key)
    if (known !== undefined && Buffer.compare(known.source, source) === 0) return known.compressed
    const compressed = await ENCODERS[encoding](source)
    this.#bodies.set(key, { source, compressed })
    return compressed
  }
}

const isCacheable = ({ headers, status }: HttpServerResponse.HttpServerResponse): boolean =>
  status === 200 && headers["cache-control"]?.startsWith("public") === true

const compressed = (
  { headers, url }: HttpServerRequest.HttpServerRequest,
  response: HttpServerResponse.HttpServerResponse,
  kept: Kept
): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  const { body } = response
  const isText = body._tag === "Uint8Array" && TYPES.test(body.contentType) && body.body.length >= BYTES_MIN
  if (!isText || response.headers["content-encoding"] !== undefined) return Effect.succeed(response)
  const varying = HttpServerResponse.setHeader(
    response,
    "vary",
    [response.headers["vary"], "accept-encoding"].filter((name) => name !== undefined).join(", ")
  )
  const encoding = encodingOf(headers["accept-encoding"])
  if (encoding === undefined) return Effect.succeed(varying)
  return Effect.map(
    Effect.promise(() =>
      isCacheable(response) ? kept.compress(encoding, url.split("?", 1)[0]!, body.body) : ENCODERS[encoding](body.body)
    ),
    (bytes) =>
      HttpServerResponse.uint8Array(bytes, {
        status: response.status,
        contentType: body.contentType,
        headers: { ...varying.headers, "content-encoding": encoding },
        cookies: response.cookies
      })
  )
}

/** Added before all other middlewares, so that it sees what they answer. */
export const layer = HttpRouter.use((router) =>
  Effect.suspend(() => {
    const kept = new Kept()
    return router.addGlobalMiddleware((routed) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
        Effect.flatMap(routed, (response) => compressed(request, response, kept))
      )
    )
  })
)

/**
 * Serves the files that pages load: one style sheet and one script for Till's own pages, and the scripts of embedded
 * and custom checkouts.
 *
 * Pages name a file by its content (`/assets/till-<hash>.css`), so browsers may keep it for good: another content has
 * another name. `stable` serves a file under a fixed name, which merchants write into their pages.
 */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { hash } from "node:crypto"
import * as fs from "node:fs"
import { gzipSync } from "node:zlib"

export interface Asset {
  /** Path that changes with the content. */
  readonly path: string
  readonly contentType: string
  readonly text: string
  readonly etag: string
  readonly gzipped: Buffer
}

const CONTENT_TYPES = {
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  "d.ts": "text/plain; charset=utf-8"
} as const

/** Parts of a script import one another. In the one file of all parts, everything is in reach. */
const MODULE_WORDS = /^import .*\n|^export /gm

/** A file of the folder `assets`, read once; or several in one, named after the last. */
export const load = (names: string | ReadonlyArray<string>, extension: keyof typeof CONTENT_TYPES): Asset => {
  const all = [names].flat()
  const name = all.at(-1)!
  const parts = all.map((part) => fs.readFileSync(new URL(`assets/${part}.${extension}`, import.meta.url), "utf8"))
  const text = parts.length === 1 ? parts[0]! : parts.map((part) => part.replaceAll(MODULE_WORDS, "")).join("\n")
  const digest = hash("sha256", text, "base64url").slice(0, 16)
  return {
    path: `/assets/${name}-${digest}.${extension}`,
    contentType: CONTENT_TYPES[extension],
    text,
    etag: `"${digest}"`,
    gzipped: gzipSync(text, { level: 9 })
  }
}

/** The style sheet of payers' pages and of the documentation. */
export const stylesheet = load(["tokens", "till"], "css")

/** The style sheet of the dashboard, of the same tokens. */
export const dashboardStylesheet = load(["tokens", "dashboard"], "css")

/** The script that makes the dashboard live. */
export const dashboardScript = load("dashboard", "js")

/** The script that makes forms comfortable. They work without it. It shapes card details as the server reads them. */
export const script = load(["card", "till"], "js")

/** A checkout page whose payer chooses the amount loads this module as well. The server runs it, too. */
export const amountScript = load("amount", "js")

/** A checkout page in a frame loads this script as well. It talks to the page around it. */
export const embeddedScript = load("embedded", "js")

/** A shop's own pages load this script from Till. Its types are served beside it. */
export const checkoutScript = load("checkout", "js")
const checkoutTypes = load("checkout", "d.ts")

/** Serves an asset under its changing name. Browsers keep it for good. */
export const immutable = (asset: Asset): Layer.Layer<never, never, HttpRouter.HttpRouter> =>
  serve(asset, asset.path, "public, max-age=31536000, immutable")

/** Serves an asset under a fixed name. Browsers keep it for five minutes. */
const stable = (asset: Asset, path: `/${string}`): Layer.Layer<never, never, HttpRouter.HttpRouter> =>
  serve(asset, path, "public, max-age=300")

const serve = (asset: Asset, path: string, caching: string) =>
  HttpRouter.add("GET", path as `/${string}`, (request) => Effect.sync(() => respond(asset, caching, request)))

const respond = (
  { contentType, etag, gzipped, text }: Asset,
  caching: string,
  { headers: sent }: HttpServerRequest.HttpServerRequest
): HttpServerResponse.HttpServerResponse => {
  const headers = {
    "cache-control": caching,
    etag,
    vary: "accept-encoding",
    "cross-origin-resource-policy": "cross-origin"
  }
  if (sent["if-none-match"]?.includes(etag)) return HttpServerResponse.empty({ status: 304, headers })
  if (!/\bgzip\b/.test(sent["accept-encoding"] ?? "")) return HttpServerResponse.text(text, { contentType, headers })
  return HttpServerResponse.uint8Array(gzipped, { contentType, headers: { ...headers, "content-encoding": "gzip" } })
}

/** The files of all pages. */
export const layer = Layer.mergeAll(
  immutable(stylesheet),
  immutable(script),
  immutable(amountScript),
  immutable(embeddedScript),
  stable(checkoutScript, "/checkout.js"),
  stable(checkoutTypes, "/checkout.d.ts")
)

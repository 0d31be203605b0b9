/**
 * Serves the files that pages load: style sheets and scripts of Till's own pages, and the scripts for embedded and
 * custom checkouts.
 *
 * File names contain a hash of the content (`/assets/till-<hash>.css`), so browsers cache them forever. `stable` serves
 * a file under a fixed name for use in merchants' pages.
 */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { hash } from "node:crypto"
import * as fs from "node:fs"

export interface Asset {
  readonly path: string
  readonly contentType: string
  readonly text: string
  readonly etag: string
}

const CONTENT_TYPES = {
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  "d.ts": "text/plain; charset=utf-8",
  json: "application/json"
} as const

/** Imports and exports, removed where several modules are joined in one file. */
const MODULE_WORDS = /^import .*\n|^export /gm

/** Reads a file of the folder `assets`, or joins several into one that is named after the last. */
export const load = (names: string | ReadonlyArray<string>, extension: keyof typeof CONTENT_TYPES): Asset => {
  const all = [names].flat()
  const name = all.at(-1)!
  const parts = all.map((part) => fs.readFileSync(new URL(`assets/${part}.${extension}`, import.meta.url), "utf8"))
  const text = parts.length === 1 ? parts[0]! : parts.map((part) => part.replaceAll(MODULE_WORDS, "")).join("\n")
  return assetOf(name, extension, text)
}

/** Makes a file of data. */
export const jsonOf = (name: string, data: object): Asset => assetOf(name, "json", JSON.stringify(data))

const assetOf = (name: string, extension: keyof typeof CONTENT_TYPES, text: string): Asset => {
  const digest = hash("sha256", text, "base64url").slice(0, 16)
  return {
    path: `/assets/${name}-${digest}.${extension}`,
    contentType: CONTENT_TYPES[extension],
    text,
    etag: `"${digest}"`
  }
}

/** Style sheet of payers' pages. */
export const stylesheet = load(["tokens", "till"], "css")

/** Style sheet and script of the documentation. */
export const docsStylesheet = load(["tokens", "docs"], "css")
export const docsScript = load("docs", "js")

/** Style sheet of the dashboard, with the same tokens. */
export const dashboardStylesheet = load(["tokens", "dashboard"], "css")

export const dashboardScript = load("dashboard", "js")

/** Script that enhances forms, which also work without it. */
export const script = load(["card", "till"], "js")

/** Module for amounts that the payer chooses, loaded by such checkout pages. The server runs it too. */
export const amountScript = load("amount", "js")

/** Module for the processor's page with the inputs of a card, loaded by checkout pages and by merchants' own pages. */
export const fieldsScript = load("fields", "js")

/** Script of an embedded checkout page. It talks to the surrounding page. */
export const embeddedScript = load("embedded", "js")

/** Script for merchants' own pages. Its types are served beside it. */
export const checkoutScript = load("checkout", "js")
const checkoutTypes = load("checkout", "d.ts")

/** Serves an asset under its hashed name. Browsers cache it forever. */
export const immutable = (asset: Asset): Layer.Layer<never, never, HttpRouter.HttpRouter> =>
  serve(asset, asset.path, "public, max-age=31536000, immutable")

/** Serves an asset under a fixed name. Browsers cache it for five minutes. */
export const stable = (asset: Asset, path: `/${string}`): Layer.Layer<never, never, HttpRouter.HttpRouter> =>
  serve(asset, path, "public, max-age=300")

const serve = (asset: Asset, path: string, caching: string) =>
  HttpRouter.add("GET", path as `/${string}`, (request) => Effect.sync(() => respond(asset, caching, request)))

const respond = (
  { contentType, etag, text }: Asset,
  caching: string,
  { headers: sent }: HttpServerRequest.HttpServerRequest
): HttpServerResponse.HttpServerResponse => {
  const headers = {
    "cache-control": caching,
    etag,
    "cross-origin-resource-policy": "cross-origin",
    // Pages of other sites read data, and import modules, only with this header.
    ...(contentType !== CONTENT_TYPES.css && { "access-control-allow-origin": "*" })
  }
  return sent["if-none-match"]?.includes(etag) === true
    ? HttpServerResponse.empty({ status: 304, headers: { ...headers, vary: "accept-encoding" } })
    : HttpServerResponse.text(text, { contentType, headers })
}

export const layer = Layer.mergeAll(
  immutable(stylesheet),
  immutable(script),
  immutable(amountScript),
  immutable(fieldsScript),
  stable(fieldsScript, "/fields.js"),
  immutable(embeddedScript),
  immutable(docsStylesheet),
  immutable(docsScript),
  stable(checkoutScript, "/checkout.js"),
  stable(checkoutTypes, "/checkout.d.ts")
)

/**
 * Merchants' images on Till's pages. A page's content security policy names the origins of its own images only. An
 * image with an origin that a policy cannot name (IPv6) is not shown. Images are requested without a referrer, so their
 * servers do not learn a session's address.
 */
import { isWebOrigin } from "../domain/Text.ts"
import { html, type Html } from "./Html.ts"

const originOf = (url: string): string | undefined => URL.parse(url)?.origin

/** The URL of an image that a page can show, otherwise null. */
export const pictureOf = (url: string | null | undefined): string | null =>
  url != null && isWebOrigin(originOf(url) ?? "") ? url : null

/** Maximum length of the sources in a policy: some proxies accept only 4 KB of headers. */
const SOURCES_CHARACTERS_MAX = 1500

/** Origins of these images for `img-src`. If they are too long for a header, their schemes. */
export const sourcesOf = (pictures: ReadonlyArray<string | null>): ReadonlyArray<string> => {
  // A relative address is Till's own, which every policy allows.
  const urls = pictures.flatMap((picture) => URL.parse(picture ?? "") ?? [])
  const origins = [...new Set(urls.map(({ origin }) => origin))]
  if (origins.join(" ").length <= SOURCES_CHARACTERS_MAX) return origins
  return [...new Set(urls.map(({ protocol }) => protocol))]
}

/** An image beside its subject's name, so without `alt` text. The space is reserved while it loads. */
export const pictureHtml = (url: string, kind: "icon" | "picture"): Html => {
  const size = kind === "icon" ? 40 : 64
  // Chromium loads a visible lazy image immediately.
  return html`<span class="${kind}"
    ><img
      src="${url}"
      alt=""
      width="${size}"
      height="${size}"
      loading="lazy"
      decoding="async"
      referrerpolicy="no-referrer"
  /></span>`
}

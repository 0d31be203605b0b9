/**
 * Pictures of merchants on Till's pages: from wherever the merchant has them, and from nowhere else.
 *
 * A page's content security policy names the origins of its own pictures. One whose origin a policy cannot name (IPv6)
 * is not shown. Pictures are asked for without a referrer, so nobody who serves one learns a session's address.
 */
import { isWebOrigin } from "../domain/Text.ts"
import type { Html } from "./Html.ts"
import { html } from "./Html.ts"

const originOf = (url: string): string | undefined => URL.parse(url)?.origin

/** The address of a picture that a page can show; null if there is none. */
export const pictureOf = (url: string | null | undefined): string | null =>
  url != null && isWebOrigin(originOf(url) ?? "") ? url : null

/** A policy may be so long. Servers in front of Till have as little room as 4 KB for all headers. */
const SOURCES_CHARACTERS_MAX = 1500

/**
 * The sources of these pictures for `img-src`: their origins, each once. Too many of them would be a header that nobody
 * takes: then it is the schemes alone.
 */
export const sourcesOf = (pictures: ReadonlyArray<string | null>): ReadonlyArray<string> => {
  const urls = pictures.flatMap((picture) => (picture === null ? [] : [new URL(picture)]))
  const origins = [...new Set(urls.map(({ origin }) => origin))]
  if (origins.join(" ").length <= SOURCES_CHARACTERS_MAX) return origins
  return [...new Set(urls.map(({ protocol }) => protocol))]
}

/**
 * A picture beside a name, which says what it is of: screen readers need not tell of it. Its place is as large without
 * it, be it late or broken.
 */
export const pictureHtml = (url: string, kind: "icon" | "picture"): Html => {
  const size = kind === "icon" ? 40 : 64
  // Chromium loads a lazy picture in sight at once.
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

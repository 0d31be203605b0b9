/** Texts of payers and merchants stay text on the dashboard's pages. */
import { afterAll, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { layerFreshLog } from "../support/RequestLog.ts"
import { type Page, signedIn } from "./People.ts"
import { makeWorld, type Text } from "../support/fixtures/World.ts"

const PIECES = [
  "<script>alert(1)</script>",
  '"',
  "'",
  "`",
  "<",
  ">",
  "&",
  "</textarea>",
  "</title>",
  "</option>",
  "<!--",
  "-->",
  '" onfocus="alert(1)" autofocus="',
  "javascript:alert(1)",
  "${x}"
]
const pieces = Schema.NonEmptyArray(Schema.Union([Schema.Literals(PIECES), Schema.String])).check(Schema.isMaxLength(4))

/** Each field gets other pieces, in turn. */
const textsOf = (all: ReadonlyArray<ReadonlyArray<string>>): Text => {
  let turn = 0
  return (max) => {
    const text = all[turn++ % all.length]!.join("")
      .replaceAll(/[\0\p{Cc}]/gu, "")
      .toWellFormed()
    return [...text].slice(0, max).join("").trim() || "x"
  }
}

/** A page without its texts: tags with attribute names. In JSON, only colours and links. */
const skeletonOf = (page: string): string =>
  page
    .replaceAll(/<pre\b[\s\S]*?<\/pre>/g, (json) => {
      assert.strictEqual(
        json.replaceAll(/<\/?(pre|code|span|a)\b(\s+[a-z-]+="[^"<>]*"|\s)*>/g, "").search(/[<>]/),
        -1,
        json
      )
      return "<pre>"
    })
    .replaceAll(/"[^"<>]*"/g, '""')
    .replaceAll(/>[^<]+</g, "><")

/** A QR code as a file, which the browser stores and does not open. */
const FILE = /<a class="button" download="[\w-]+\.(?:svg|png)" href="data:image\/(?:svg\+xml,|png;base64,)[^"]*"/g

/** Links to other origins, or with scripts. */
const strayLinks = ({ text, url }: Page): ReadonlyArray<string> =>
  [...text.replaceAll(FILE, "").matchAll(/<(?:a|form)\b[^>]*\s(?:href|action)="([^"]*)"/g)]
    .map(([, address]) => address!.replaceAll("&amp;", "&"))
    .filter((address) => new URL(address, url).origin !== new URL(url).origin)

describe("pages of the dashboard", () => {
  let server: MemoryTillWithPages
  let plain: ReadonlyMap<string, string>
  beforeAll(async () => {
    server = await start({ merchantName: "Lumen", requestLog: layerFreshLog({ batchMillis: 10 }) })
    plain = await pagesWith(textsOf([["plain"]]))
  })
  afterAll(() => server.close())

  /** Skeletons of all pages of a merchant whose objects and queries consist of such texts. */
  const pagesWith = async (text: Text): Promise<ReadonlyMap<string, string>> => {
    const world = await makeWorld(server, text)
    const tab = await signedIn(world.server)
    const found = new Map<string, string>()
    const add = (route: string, page: Page) => {
      assert.strictEqual(page.status, 200, `${route}: ${page.text}`)
      assert.deepStrictEqual(strayLinks(page), [], route)
      found.set(route, skeletonOf(page.text))
    }
    await vi.waitFor(async () => {
      assert.strictEqual((await tab.get(`/dashboard/test${world.pages["/requests/:id"]!}`)).status, 200)
    }, 120_000)
    for (const [route, path] of Object.entries(world.pages)) add(route, await tab.get(`/dashboard/test${path}`))
    const asked = ["customer", "email", "idempotency_key", "object", "path", "done", "type", "state"]
    // The search finds nothing.
    const query = new URLSearchParams(asked.map((name) => [name, `${text(90)} of nobody`]))
    // An email with a blank is refused.
    for (const name of ["customer", "email"]) query.set(name, query.get(name)!.replaceAll(/\s/g, "+"))
    query.set("metadata", `order:${text(90)} of nobody`)
    for (const route of ["/payments", "/customers", "/requests"]) {
      add(`${route}?`, await tab.get(`/dashboard/test${route}?${query}`))
    }
    return found
  }

  it.effect.prop(
    "have the same tags and links for any texts",
    { texts: Schema.NonEmptyArray(pieces).check(Schema.isMinLength(7), Schema.isMaxLength(11)) },
    ({ texts }) =>
      Effect.promise(async () => {
        const pages = await pagesWith(textsOf(texts))
        for (const [route, skeleton] of plain) assert.strictEqual(pages.get(route), skeleton, route)
      }),
    { arbitrary: { runs: 6 } }
  )
})

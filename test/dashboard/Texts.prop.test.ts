/** Whatever payers and merchants have written is text on the dashboard's pages, and nothing else. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { INSTALLATION } from "../../src/payments/AccountIds.ts"
import * as Merchants from "../../src/payments/Merchants.ts"
import type { PagesServer } from "../pages/PagesServer.ts"
import { start } from "../pages/PagesServer.ts"
import type { Tab } from "./People.ts"
import { signedIn } from "./People.ts"

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
  "<!--",
  "-->",
  "${x}"
]
const pieces = Schema.NonEmptyArray(Schema.Union([Schema.Literals(PIECES), Schema.String])).check(Schema.isMaxLength(4))

/** A page without its texts: its tags, with their attributes' names. */
const skeletonOf = (page: string): string =>
  page
    .replaceAll(/<(pre|time|dl|p)\b[\s\S]*?<\/\1>/g, "")
    .replaceAll(/"[^"<>]*"/g, '""')
    .replaceAll(/>[^<]+</g, "><")

describe("pages of the dashboard", () => {
  let server: PagesServer
  let tab: Tab
  beforeAll(async () => {
    server = await start()
    tab = await signedIn(server)
  })
  afterAll(() => server.close())

  it.effect.prop(
    "have the same tags, whatever is in them",
    { description: pieces, key: pieces, value: pieces, name: pieces, query: pieces },
    (input) =>
      Effect.promise(async () => {
        const text = (parts: ReadonlyArray<string>, max: number) =>
          [
            ...parts
              .join("")
              .replaceAll(/[\0\p{Cc}]/gu, "")
              .toWellFormed()
          ]
            .slice(0, max)
            .join("")
            .trim() || "x"
        const make = (description: string, key: string, value: string) =>
          server.post("/v1/payment_intents", {
            amount: 4321,
            currency: "usd",
            payment_method: "pm_card_visa",
            confirm: true,
            description,
            metadata: { [key]: value }
          })
        const rename = (name: string) =>
          Effect.runPromise(server.accounts.run(INSTALLATION, Merchants.show(server.merchantId, { name })))
        const pagesOf = async (id: string, query: string) => {
          const asked = `?${new URLSearchParams({ customer: query, amount: query, metadata: query, done: query })}`
          const found = []
          for (const path of [`/payments/${id}`, `/payments/${id}${asked}`, "/developers", `/payments${asked}`]) {
            found.push((await tab.get(`/dashboard/test${path}`)).text)
          }
          return found.map(skeletonOf)
        }
        await rename("Plain")
        const plain = await pagesOf((await make("plain", "plain", "plain")).id, "plain")
        await rename(text(input.name, 200))
        const made = await make(
          text(input.description, 500),
          text(input.key, 40).replaceAll(/[[\]]/g, "x"),
          text(input.value, 200)
        )
        const pages = await pagesOf(made.id, text(input.query, 100))
        assert.deepStrictEqual(pages, plain)
      }),
    { arbitrary: { runs: 12 } }
  )
})

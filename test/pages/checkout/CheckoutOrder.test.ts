/** The order on the checkout page: items, amounts and layout (semantics pages.order). */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { sourcesOf } from "../../../src/html/Images.ts"
import { type Answer, type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { openSession, visit } from "../../support/fixtures/CheckoutPages.ts"

let server: MemoryTillWithPages
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

const product = (fields: object = {}): Promise<Answer> =>
  server.post("/v1/products", { name: "House Espresso", ...fields })

const price = async (terms: object, fields: object = {}): Promise<string> => {
  const { id } = await product(fields)
  return (await server.post("/v1/prices", { product: id, currency: "usd", ...terms })).id
}

const sell = async (lines: ReadonlyArray<object>, parameters: object = {}) =>
  visit((await openSession(server, { line_items: lines, ...parameters })).url)

const texts = (page: string): string => page.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ")
const imagesIn = (page: string): ReadonlyArray<string> => page.match(/<img\s[^>]*>/g) ?? []
const imagePolicyOf = (headers: Headers): string | undefined =>
  /img-src ([^;]+)/.exec(headers.get("content-security-policy")!)?.[1]

const CDN = "https://cdn.example"

describe("a line's goods", () => {
  it("pages.order, pages.pictures: are shown by their first image, without a referrer, and a description", async () => {
    const images = [`${CDN}/cup.png?size=2&x="`, "https://other.example/2.png"]
    const line = { price: await price({ unit_amount: 1200 }, { images, description: "Dark <b>roast</b>" }) }
    const { headers, text } = await sell([line])
    const [image, ...others] = imagesIn(text)
    assert.deepStrictEqual(others, [])
    assert.include(image, 'src="https://cdn.example/cup.png?size=2&amp;x=&quot;"')
    for (const attribute of ['alt=""', 'width="64"', 'height="64"', 'loading="lazy"']) assert.include(image, attribute)
    assert.include(image, 'referrerpolicy="no-referrer"')
    assert.strictEqual(imagePolicyOf(headers), `'self' data: ${CDN}`)
    assert.include(text, "<bdi>Dark &lt;b&gt;roast&lt;/b&gt;</bdi>")
  })

  it("pages.order, pages.pictures: allow the origins of their images only", async () => {
    const { headers, text } = await sell([{ price: await price({ unit_amount: 1200 }) }])
    assert.deepStrictEqual(imagesIn(text), [])
    assert.strictEqual(imagePolicyOf(headers), "'self' data:")
  })

  it("pages.order, pages.pictures: have no image if a policy cannot name its origin", async () => {
    const line = { price: await price({ unit_amount: 1200 }, { images: ["http://[2001:db8::1]/a.png"] }) }
    const { headers, text } = await sell([line])
    assert.deepStrictEqual(imagesIn(text), [])
    assert.strictEqual(imagePolicyOf(headers), "'self' data:")
  })

  it("pages.order: keep the session's name, with the current image and description", async () => {
    const { id } = await product({ description: "Dark", images: [`${CDN}/old.png`] })
    const { id: of } = await server.post("/v1/prices", { product: id, currency: "usd", unit_amount: 1200 })
    const session = await openSession(server, { line_items: [{ price: of }] })
    const changes = { name: "Another", description: "Light", images: ["https://new.example/new.png"] }
    await server.post(`/v1/products/${id}`, changes)
    const { headers, text } = await visit(session.url)
    assert.include(text, "House Espresso")
    assert.include(text, "Light")
    assert.strictEqual(imagePolicyOf(headers), "'self' data: https://new.example")
    for (const gone of ["Another", "Dark", "old.png"]) assert.notInclude(text, gone)
  })

  it("pages.order: are described in at most 160 characters", async () => {
    const words = await sell([{ price: await price({ unit_amount: 1 }, { description: "word ".repeat(1000).trim() }) }])
    assert.include(texts(words.text), `${"word ".repeat(32).trim()}…`)
    const emoji = await sell([{ price: await price({ unit_amount: 1 }, { description: "🫖".repeat(200) }) }])
    assert.include(emoji.text, `<bdi>${"🫖".repeat(160)}…</bdi>`)
    const short = await sell([{ price: await price({ unit_amount: 1 }, { description: "🫖".repeat(160) }) }])
    assert.include(short.text, `<bdi>${"🫖".repeat(160)}</bdi>`)
  })
})

describe("a line's amount", () => {
  const cases: ReadonlyArray<readonly [string, string, object, number, object?]> = [
    ["of several", "3 × $12.00", { unit_amount: 1200 }, 3],
    ["of many", "12,000 × $0.01", { unit_amount: 1 }, 12_000],
    ["of less than a cent each", "1,000 × $0.0055", { unit_amount_decimal: "0.55" }, 1000],
    ["in another currency than the price's", "2 × ¥1,200", { unit_amount: 1200 }, 2, { currency: "jpy" }],
    ["in thousandths", "2 × KWD 1.200", { unit_amount: 1200 }, 2, { currency: "kwd" }],
    ["of packs", "Quantity 3", { unit_amount: 1200, transform_quantity: { divide_by: 2, round: "up" } }, 3],
    [
      "by tiers",
      "Quantity 7",
      {
        billing_scheme: "tiered",
        tiers_mode: "graduated",
        tiers: [
          { up_to: 5, unit_amount: 100 },
          { up_to: "inf", unit_amount: 50 }
        ]
      },
      7
    ],
    ["every month", "2 × $15.00 For 1 month, charged once", { unit_amount: 1500, recurring: { interval: "month" } }, 2],
    [
      "every third week",
      "For 3 weeks, charged once",
      { unit_amount: 9, recurring: { interval: "week", interval_count: 3 } },
      1
    ]
  ]

  for (const [what, expected, terms, quantity, parameters = {}] of cases) {
    it(`pages.order: ${what} is said to be ${expected}`, async () => {
      const { text } = await sell([{ price: await price(terms), quantity }], parameters)
      assert.include(texts(text).replaceAll("\u00a0", " "), ` ${expected} `)
    })
  }

  it("pages.order: of price data shows the interval, and that it is charged once", async () => {
    const { id } = await product()
    const price_data = { currency: "usd", product: id, unit_amount: 1500, recurring: { interval: "year" } }
    assert.include(texts((await sell([{ price_data }])).text), "For 1 year, charged once")
  })

  it("pages.order: of one item shows neither quantity nor interval", async () => {
    assert.notMatch(
      texts((await sell([{ price: await price({ unit_amount: 1200 }) }])).text),
      /×|Quantity|charged once/
    )
  })
})

describe("the order", () => {
  it("pages.order: has a subtotal for several lines, and shows the number of folded lines", async () => {
    const one = { price: await price({ unit_amount: 1200 }), quantity: 2 }
    const other = { price: await price({ unit_amount: 350 }) }
    const both = texts((await sell([one, other])).text)
    assert.include(both, "Subtotal $27.50 Total due $27.50")
    assert.match(both, /Total · show order hide order \(2\) \$27\.50/)
    assert.notInclude(texts((await sell([one])).text), "Subtotal")
  })

  it.each([
    [8, false],
    [9, true]
  ])("pages.order: with %i lines folds on a desk: %j", async (count, folds) => {
    const of = await price({ unit_amount: 100 })
    const { text } = await sell(Array.from({ length: count }, () => ({ price: of })))
    assert.strictEqual(/<details class="order folded" *>/.test(text), folds)
    assert.strictEqual(/<details class="order" *>/.test(text), !folds)
  })

  it("pages.order: of an embedded session is the same", async () => {
    const line_items = [{ price: await price({ unit_amount: 1200 }, { images: [`${CDN}/a.png`] }), quantity: 3 }]
    const session = await openSession(server, { ui_mode: "embedded", cancel_url: null, line_items })
    const query = new URLSearchParams({ client_secret: session.client_secret, origin: "https://shop.example" })
    const { headers, text } = await visit(`${server.url}/checkout/${session.id}?${query}`)
    assert.include(texts(text), "3 × $12.00")
    assert.strictEqual(imagePolicyOf(headers), `'self' data: ${CDN}`)
  })
})

describe("the policy of pictures", () => {
  const url = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 300 }))

  it.prop("names origins once, or else schemes, within the size of a header", [Schema.Array(url)], ([hosts]) => {
    const pictures = hosts.map((host) => `https://cdn-${host}.example/${host}.png`)
    const sources = sourcesOf([null, ...pictures])
    assert.strictEqual(new Set(sources).size, sources.length)
    assert.isAtMost(sources.join(" ").length, 1500)
    for (const picture of pictures) {
      assert.isTrue(sources.includes(new URL(picture).origin) || sources.includes("https:"))
    }
  })

  it("names schemes for a hundred origins", () => {
    const pictures = Array.from({ length: 100 }, (_, at) => `http${at % 2 ? "s" : ""}://cdn-${at}.example/1.png`)
    assert.sameMembers([...sourcesOf(pictures)], ["http:", "https:"])
  })
})

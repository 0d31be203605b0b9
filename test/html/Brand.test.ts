/**
 * A merchant's brand: valid settings, and their display on all payers' pages (semantics pages.brand,
 * dashboard.settings).
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Accounts } from "../../src/engine/Accounts.ts"
import { administer } from "../../src/payments/administration/Administration.ts"
import { type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { answerChallenge, CARDS, filledIn, openSession, pay, visit } from "../support/fixtures/CheckoutPages.ts"

let server: MemoryTillWithPages
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

/** The request of `till merchants brand`. */
const brand = (settings: Readonly<Record<string, string | null>>, name?: string, merchant = server.merchantId) =>
  administer({ _tag: "BrandMerchant", merchant, brand: settings, ...(name !== undefined && { name }) }).pipe(
    Effect.provideService(Accounts, server.accounts),
    Effect.match({
      onSuccess: ({ merchants: [merchant] }) => merchant!,
      onFailure: (error) => ({ _tag: error._tag, message: error._tag === "AdministrationFailed" ? error.message : "" })
    }),
    Effect.runPromise
  )

const BRAND = {
  icon: "https://cdn.example/icon.png",
  accent: "#1B7F5E",
  support: "mailto:help@shop.example",
  terms: "https://shop.example/terms?a=1&b=2",
  privacy: "https://shop.example/privacy"
}
const NONE = { icon: null, accent: null, support: null, terms: null, privacy: null }

describe("a brand", () => {
  it("dashboard.settings: is stored, changed setting by setting, and removed", async () => {
    const set = { ...BRAND, accent: "#1b7f5e" }
    assert.deepInclude(await brand(BRAND), { brand: set, name: "Lumen Coffee" })
    assert.deepInclude(await brand({ terms: "http://shop.example/agb" }, "Lumen"), {
      brand: { ...set, terms: "http://shop.example/agb" },
      name: "Lumen"
    })
    assert.deepInclude(await brand({ icon: null }), { brand: { ...set, terms: "http://shop.example/agb", icon: null } })
    assert.deepInclude(await brand({}), { name: "Lumen" })
    assert.deepInclude(await brand(NONE, "Lumen Coffee"), { brand: NONE, name: "Lumen Coffee" })
  })

  it.each([
    ["icon", "logo.png", "an absolute http or https URL"],
    ["icon", "data:image/png;base64,AAAA", "an absolute http or https URL"],
    ["accent", "green", "a colour such as #1b7f5e"],
    ["accent", "#1b7", "a colour such as #1b7f5e"],
    ["accent", "#1b7f5e;}body{display:none", "a colour such as #1b7f5e"],
    ["accent", "", "a colour such as #1b7f5e"],
    ["support", "help@shop.example", "mailto: and an email address"],
    ["support", "mailto:", "mailto: and an email address"],
    ["support", "javascript:alert(1)", "mailto: and an email address"],
    ["terms", "javascript:alert(1)", "an absolute http or https URL"],
    ["terms", "https://shop.example/\u001b[31m", "an absolute http or https URL"],
    ["privacy", "mailto:help@shop.example", "an absolute http or https URL"]
  ])("dashboard.settings: refuses the %s %j with the rule, and changes nothing", async (setting, value, rule) => {
    await brand({ ...NONE, terms: "https://shop.example/before" })
    const refused = await brand({ terms: "https://shop.example/after", [setting]: value })
    assert.include(refused, { _tag: "AdministrationFailed" })
    assert.match(
      (refused as { readonly message: string }).message,
      new RegExp(`^The brand's ${setting} must be .*${rule}`)
    )
    assert.deepInclude(await brand({}), { brand: { ...NONE, terms: "https://shop.example/before" } })
  })

  it("dashboard.settings: requires an existing merchant", async () => {
    assert.include(await brand({}, undefined, "mer_x"), { message: "There is no merchant mer_x." })
  })
})

describe("a page of a merchant with a brand", () => {
  beforeAll(async () => void (await brand(BRAND)))

  const assertShown = ({ headers, text }: Awaited<ReturnType<typeof visit>>) => {
    assert.match(text, /<img\s+src="https:\/\/cdn\.example\/icon\.png"\s+alt=""[^>]*referrerpolicy="no-referrer"/)
    assert.include(text, "<bdi>Lumen Coffee</bdi>")
    assert.include(headers.get("content-security-policy")!, "img-src 'self' data: https://cdn.example;")
    assert.include(text, 'href="../accent/1b7f5e.css"')
    assert.include(text, '<a href="mailto:help@shop.example">Support</a>')
    const outside = 'target="_blank" rel="noopener noreferrer"'
    assert.include(text, `<a href="https://shop.example/terms?a=1&amp;b=2" ${outside}`)
    assert.include(text, `<a href="https://shop.example/privacy" ${outside}`)
  }

  it("pages.brand: shows it on the form and on its outcome", async () => {
    const session = await openSession(server)
    assertShown(await visit(session.url))
    await pay(session)
    assertShown(await visit(session.url))
    const expired = await openSession(server)
    await server.post(`/v1/checkout_sessions/${expired.id}/expire`, {})
    assertShown(await visit(expired.url))
    const processing = await openSession(server)
    await pay(processing, filledIn(CARDS.processing))
    assertShown(await visit(processing.url))
  })

  it("pages.brand: shows it during and after authentication", async () => {
    const session = await openSession(server)
    const challenge = (await pay(session, filledIn(CARDS.challenged))).headers.get("location")!
    assertShown(await visit(challenge))
    await answerChallenge(challenge, "success")
    assertShown(await visit(challenge))
  })

  it("pages.brand: shows it in a frame", async () => {
    const session = await openSession(server, { ui_mode: "embedded", cancel_url: null })
    const query = new URLSearchParams({ client_secret: session.client_secret, origin: "https://shop.example" })
    assertShown(await visit(`${server.url}/checkout/${session.id}?${query}`))
  })

  it("pages.brand: shows an icon without TLS in test mode only", async () => {
    await brand({ icon: "http://cdn.example/icon.png" })
    const test = await visit((await openSession(server)).url)
    assert.include(test.text, 'src="http://cdn.example/icon.png"')
    const live = await visit((await openSession(server, {}, { key: server.secretLive })).url)
    assert.notInclude(live.text, "icon.png")
    assert.include(live.headers.get("content-security-policy")!, "img-src 'self' data:;")
    await brand(BRAND)
  })

  it("pages.brand: gets its colours by a style sheet that does not name the merchant", async () => {
    const { headers, status, text } = await visit(`${server.url}/accent/1b7f5e.css`)
    assert.strictEqual(status, 200)
    assert.strictEqual(headers.get("content-type"), "text/css; charset=utf-8")
    assert.include(text, "--accent:#1b7f5e;")
    assert.include(text, "@media (prefers-color-scheme:dark)")
  })

  it.each(["1b7f5e", "1B7F5E.css", "1b7f5.css", "%7D.css", "x.css"])("has no style sheet %s", async (file) => {
    assert.strictEqual((await visit(`${server.url}/accent/${file}`)).status, 404)
  })
})

describe("a page of a merchant without one", () => {
  it("shows its name and nothing else", async () => {
    await brand(NONE)
    const { headers, text } = await visit((await openSession(server)).url)
    assert.notMatch(text, /<img|<footer|\/accent\//)
    assert.include(headers.get("content-security-policy")!, "img-src 'self' data:;")
  })
})

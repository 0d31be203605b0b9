/**
 * The checkout page for a browser without scripts (semantics checkout.url, pages.checkout, checkout.confirm,
 * checkout.expire), and its handling of card data.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { gzipSync } from "node:zlib"
import { DECLINE_MESSAGES, type DeclineCode } from "../../../src/domain/Cards.ts"
import { PAGE_LANGUAGES } from "../../../src/domain/CheckoutSession.ts"
import { TEST_CARDS } from "../../../src/domain/TestCards.ts"
import { DECLINES } from "../../../src/html/Notice.ts"
import { ENGLISH } from "../../../src/html/Translation.ts"
import { ADVICE, AFTER_AUTHENTICATION } from "../../../src/pages/checkout/Declines.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import {
  answerChallenge,
  CARDS,
  filledIn,
  linksIn,
  openSession,
  pay,
  send,
  tokenIn,
  visit
} from "../../support/fixtures/CheckoutPages.ts"

let server: MemoryTillWithPages
beforeAll(async () => {
  server = await start()
})
afterAll(() => server.close())

const retrieve = (id: string) => server.get(`/v1/checkout_sessions/${id}`)

describe("the page of an open session", () => {
  it("shows merchant, items and costs", async () => {
    const session = await openSession(server)
    const { status, text } = await visit(session.url)
    assert.strictEqual(status, 200)
    for (const part of ["Lumen Coffee", "House Espresso", "$24.50", "Test mode", "4242 4242 4242 4242"]) {
      assert.include(text, part)
    }
    assert.include(text, `href="${server.url}/healthz?canceled"`)
  })

  it.each([
    ["usd", 2450, "en", "$24.50"],
    ["jpy", 2450, "en", "¥2,450"],
    ["kwd", 2450, "en", "KWD 2.450"],
    ["eur", 123_456, "de-DE,de;q=0.9", "1.234,56 €"],
    ["usd", 999_999_999_999, "en", "$9,999,999,999.99"],
    ["ugx", 500, "en", "UGX 500"],
    ["usd", 2450, 'en"><b>,nonsense', "$24.50"]
  ])("writes %s %i for %s as %s (semantics money.decimals)", async (currency, amount, language, expected) => {
    const session = await openSession(server, {}, { currency, amount })
    const { text } = await visit(session.url, { "accept-language": language })
    assert.include(text.replaceAll("\u00a0", " "), expected)
  })

  it("starts with the merchant's data about the payer", async () => {
    const { text } = await visit((await openSession(server, { customer_email: "known@example.com" })).url)
    assert.include(text, 'value="known@example.com"')
  })

  it("asks for the address only if the session does", async () => {
    const without = await visit((await openSession(server)).url)
    const required = await visit((await openSession(server, { billing_address_collection: "required" })).url)
    assert.notInclude(without.text, 'name="line1"')
    assert.include(required.text, 'name="line1"')
  })

  it("checkout.phone: asks for a phone number only if the session does", async () => {
    assert.notInclude((await visit((await openSession(server)).url)).text, 'name="phone"')
    const session = await openSession(server, { phone_number_collection: { enabled: true } })
    assert.include((await visit(session.url)).text, 'name="phone"')
    assert.strictEqual((await pay(session, { ...filledIn(), phone: "+351 1234" })).status, 303)
    assert.strictEqual((await retrieve(session.id)).customer_details.phone, "+351 1234")
  })

  it("keeps the customer's phone number if it does not ask for one", async () => {
    const { id: customer } = await server.post("/v1/customers", { phone: "+351 1234" })
    const session = await openSession(server, { customer })
    await pay(session)
    assert.strictEqual((await retrieve(session.id)).customer_details.phone, "+351 1234")
  })

  it("preselects the country that the browser's language belongs to, until the payer has chosen one", async () => {
    const session = await openSession(server, { billing_address_collection: "required" })
    const selectedIn = (text: string) => /<option value="([A-Z]{2})" selected>/.exec(text)?.[1]
    const headers = { "accept-language": "de-CH,de;q=0.9" }
    assert.strictEqual(selectedIn((await visit(session.url, headers)).text), "CH")
    assert.isUndefined(selectedIn((await visit(session.url, { "accept-language": "en" })).text))
    const address = { line1: "1 Rua A", city: "Porto", postal_code: "4000-001", country: "PT" }
    await pay(session, { ...filledIn(CARDS.declined), ...address })
    assert.strictEqual(selectedIn((await visit(session.url, headers)).text), "PT")
  })

  it("asks for no card if the total is zero", async () => {
    const session = await openSession(server, {}, { amount: 0 })
    const { text } = await visit(session.url)
    assert.notInclude(text, "card_number")
    const paid = await send(session.url, { token: tokenIn(text), email: "ana@example.com" })
    assert.strictEqual(paid.status, 303)
    assert.strictEqual((await retrieve(session.id)).payment_status, "no_payment_required")
  })

  it("is neither cached nor framed, and loads no external resources", async () => {
    const session = await openSession(server, { success_url: "https://shop.example/thanks?s={CHECKOUT_SESSION_ID}" })
    const { headers, text } = await visit(session.url)
    assert.strictEqual(headers.get("cache-control"), "no-store")
    assert.strictEqual(headers.get("x-frame-options"), "DENY")
    assert.strictEqual(headers.get("referrer-policy"), "no-referrer")
    const policy = headers.get("content-security-policy")!
    assert.include(policy, "default-src 'self'")
    assert.include(policy, "frame-ancestors 'none'")
    assert.include(policy, "form-action 'self' https:;")
    assert.notMatch(policy, /unsafe|\*/)
    assert.notMatch(text, /<style|\sstyle=|\son[a-z]+=|<script>/i)
    const loaded = [...text.matchAll(/<(?:script|link|img|iframe)[^>]*?(?:src|href)="([^"]+)"/g)].map(([, url]) => url!)
    assert.isAbove(loaded.length, 1)
    for (const url of loaded) assert.match(url, /^(\.\.\/assets\/|data:,$)/)
  })

  it.each(PAGE_LANGUAGES)("weighs at most 30 kB in three requests, compressed, in %s", async (locale) => {
    const session = await openSession(server, { billing_address_collection: "required", locale })
    const { text } = await visit(session.url)
    const files = await Promise.all(
      [...text.matchAll(/"\.\.(\/assets\/[^"]+)"/g)].map(([, path]) => visit(server.url + path))
    )
    const sizes = [text, ...files.map((file) => file.text)].map((part) => gzipSync(part).byteLength)
    assert.strictEqual(sizes.length, 3)
    assert.isAtMost(
      sizes.reduce((sum, size) => sum + size),
      30_000,
      sizes.join(" + ")
    )
  })

  it.each(["cs_000000000000000000000000", "cs_", "nothing", "pi_1", "cs_%2F..%2F", "cs_'%22<script>"])(
    "is not found at %s",
    async (id) => {
      const { headers, status, text } = await visit(`${server.url}/checkout/${id}`)
      assert.strictEqual(status, 404)
      assert.include(headers.get("content-type")!, "text/html")
      assert.include(text, "Page not found")
      assert.notInclude(text, "<script>")
    }
  )

  it("exists for hosted sessions only", async () => {
    const session = await openSession(server, { ui_mode: "custom", success_url: null, cancel_url: null })
    assert.strictEqual((await visit(`${server.url}/checkout/${session.id}`)).status, 404)
  })
})

describe("paying", () => {
  it("redirects to the session's success_url with the session's id", async () => {
    const session = await openSession(server)
    const { headers, status } = await pay(session)
    assert.strictEqual(status, 303)
    assert.strictEqual(headers.get("location"), `${server.url}/healthz?session=${session.id}`)
    const paid = await retrieve(session.id)
    assert.strictEqual(paid.status, "complete")
    assert.strictEqual(paid.payment_status, "paid")
    assert.deepStrictEqual(paid.customer_details, {
      email: "ana@example.com",
      name: "Ana Lima",
      phone: null,
      address: null
    })
  })

  it("has events with a request id, but no idempotency key", async () => {
    const session = await openSession(server)
    await pay(session)
    const { data } = await server.get("/v1/events?type=checkout.session.completed&limit=1")
    assert.strictEqual(data[0].data.object.id, session.id)
    assert.match(data[0].request.id, /^req_/)
    assert.isNull(data[0].request.idempotency_key)
  })

  it("fills in the id wherever it is placed, encoded or not", async () => {
    const success_url = "https://shop.example/{CHECKOUT_SESSION_ID}/ü?a=%7BCHECKOUT_SESSION_ID%7D#{CHECKOUT_SESSION_ID}"
    const session = await openSession(server, { success_url })
    const { headers } = await pay(session)
    assert.strictEqual(
      headers.get("location"),
      `https://shop.example/${session.id}/%C3%BC?a=${session.id}#${session.id}`
    )
  })

  it("redirects to a signed URL byte for byte (semantics pages.redirects)", async () => {
    const success_url = "https://shop.example/r?next=/orders/7&token=exp=16~acl=/live/*&q=a%20b&flag#done"
    assert.strictEqual((await pay(await openSession(server, { success_url }))).headers.get("location"), success_url)
  })

  it("fills in the id in every link to the cart too (semantics pages.redirects)", async () => {
    const cancel_url = "https://shop.example/cart/{CHECKOUT_SESSION_ID}?a=%7BCHECKOUT_SESSION_ID%7D&b=x/y#ü"
    const session = await openSession(server, { cancel_url })
    const link = `href="https://shop.example/cart/${session.id}?a=${session.id}&amp;b=x/y#%C3%BC"`
    assert.include((await visit(session.url)).text, link)
    await server.post(`/v1/checkout_sessions/${session.id}/expire`, {})
    assert.include((await visit(session.url)).text, link)
    assert.strictEqual((await retrieve(session.id)).cancel_url, cancel_url)
  })

  it("collects the address that the session requires", async () => {
    const session = await openSession(server, { billing_address_collection: "required" })
    const address = { line1: "1 Rua A", line2: "", city: "Porto", state: "", postal_code: "4000-001", country: "PT" }
    assert.strictEqual((await pay(session, { ...filledIn(), ...address })).status, 303)
    assert.deepStrictEqual((await retrieve(session.id)).customer_details.address, {
      ...address,
      line2: null,
      state: null
    })
  })

  it("happens once per form for any number of submissions", async () => {
    const session = await openSession(server)
    const form = { token: tokenIn((await visit(session.url)).text), ...filledIn() }
    const answers = await Promise.all(Array.from({ length: 8 }, () => send(session.url, form)))
    for (const { headers, status } of [...answers, await send(session.url, form)]) {
      assert.strictEqual(status, 303)
      assert.strictEqual(headers.get("location"), `${server.url}/healthz?session=${session.id}`)
    }
    const { charges } = await server.get(`/v1/payment_intents/${session.payment_intent}`)
    assert.strictEqual(charges.data.length, 1)
  })

  it("happens once for two concurrent forms of a session", async () => {
    const session = await openSession(server)
    const answers = await Promise.all([pay(session), pay(session), pay(session)])
    assert.deepStrictEqual(answers.map(({ status }) => status).toSorted(), [303, 410, 410])
  })

  it("leaves the capture to the merchant if configured", async () => {
    const session = await openSession(server, { payment_intent_data: { capture_method: "manual" } })
    assert.strictEqual((await pay(session)).status, 303)
    const { status, text } = await visit(session.url)
    assert.strictEqual(status, 410)
    assert.include(text, "Your payment is authorized")
  })
})

describe("pages.languages: the pages of a session", () => {
  const german = { "accept-language": "de-AT,de;q=0.9" }

  it("are in the browser's language", async () => {
    const session = await openSession(server)
    const { text } = await visit(session.url, german)
    assert.match(text, /<html lang="de" dir="ltr">/)
    const plain = text.replaceAll("\u00a0", " ")
    for (const part of ["Kartennummer", "$ 24,50 bezahlen", "Zurück zu Lumen Coffee", "Testmodus"]) {
      assert.include(plain, part)
    }
    for (const english of ["Card number", "Back to", "Test mode"]) assert.notInclude(text, `>${english}`)
  })

  it("checkout.locale: are in the session's language in every browser", async () => {
    for (const [locale, direction, title] of [
      ["fr", "ltr", "Payer Lumen Coffee"],
      ["ar", "rtl", "الدفع إلى \u2068Lumen Coffee\u2069"]
    ] as const) {
      const session = await openSession(server, { locale })
      const { text } = await visit(session.url, german)
      assert.include(text, `<html lang="${locale}" dir="${direction}">`)
      assert.include(text, `<title>${title}</title>`)
    }
  })

  it("name countries in their language, in its order", async () => {
    const session = await openSession(server, { billing_address_collection: "required", locale: "de" })
    const { text } = await visit(session.url)
    const names = [...text.matchAll(/<option value="[A-Z]{2}"(?: selected)?>([^<\n]*)/g)].map(([, name]) => name!)
    assert.isAbove(names.length, 240)
    assert.deepStrictEqual(names.slice(0, 3), ["Afghanistan", "Ägypten", "Ålandinseln"])
  })

  it("refuse, decline, expire and complete in it, and so does the authentication", async () => {
    const session = await openSession(server, { locale: "es" })
    const refused = await pay(session, { ...filledIn(), card_number: "1" })
    assert.include(refused.text, "Este número de tarjeta no es válido. Revisa los dígitos.")
    assert.include(refused.text, "<title>Problema: Pagar a Lumen Coffee</title>")
    const declined = await pay(session, filledIn(CARDS.insufficientFunds))
    assert.include(declined.text, "Tu tarjeta no tiene fondos suficientes. No se te ha cobrado nada.")
    assert.include(declined.text, "Paga con otra tarjeta o añade fondos a esta.")
    assert.include((await pay(session, filledIn("4000056655665564"))).text, "solo se aceptan tarjetas de prueba")
    const { headers } = await pay(session, filledIn(CARDS.challenged))
    const challenge = await visit(headers.get("location")!)
    assert.include(challenge.text, "Confirma tu pago")
    await answerChallenge(headers.get("location")!, "success")
    assert.include((await visit(session.url)).text, "Este pedido está pagado")
    const other = await openSession(server, { locale: "es" })
    await server.post(`/v1/checkout_sessions/${other.id}/expire`, {})
    assert.include((await visit(other.url)).text, "Esta página de pago ha caducado")
  })

  it("that do not exist are in the browser's language", async () => {
    for (const path of ["/checkout/cs_none", "/checkout/", "/authenticate/pi_none", "/challenge/cs_none"]) {
      const { status, text } = await visit(server.url + path, german)
      assert.strictEqual(status, 404)
      assert.include(text, "Seite nicht gefunden", path)
    }
  })
})

describe("an invalid form", () => {
  const complaints = (text: string): Record<string, string> =>
    Object.fromEntries(
      [...text.matchAll(/class="error" id="([a-z0-9_]+)-error">([^<]+)</g)].map(([, field, message]) => [
        field,
        message
      ])
    )

  it("is shown again with errors beside the fields, without the card (semantics pages.checkout)", async () => {
    const session = await openSession(server, { billing_address_collection: "required" })
    const { status, text } = await pay(session, { card_number: "4242424242424241", card_cvc: "987" })
    assert.strictEqual(status, 400)
    assert.deepStrictEqual(Object.keys(complaints(text)).toSorted(), [
      "card_expiry",
      "card_number",
      "city",
      "country",
      "email",
      "line1"
    ])
    assert.notInclude(text, "4242424242424241")
    assert.notInclude(text, 'value="987"')
    assert.include(text, "autofocus")
  })

  it.each([
    ["email", "nobody"],
    ["email", ""],
    ["name", "n".repeat(257)],
    ["phone", "1".repeat(65)],
    ["phone", ""],
    ["card_number", "1234"],
    ["card_number", ""],
    ["card_expiry", "13 / 30"],
    ["card_expiry", "1 2 3 4"],
    ["card_expiry", ""],
    ["card_cvc", "12"],
    ["card_cvc", "1234"],
    ["card_cvc", "abc"],
    ["card_cvc", ""]
  ])("reports %s %j and nothing else", async (field, value) => {
    const session = await openSession(server, { phone_number_collection: { enabled: true } })
    const { status, text } = await pay(session, { ...filledIn(), phone: "+351 1", [field]: value })
    assert.strictEqual(status, 400)
    assert.deepStrictEqual(Object.keys(complaints(text)), [field])
  })

  it("payment_methods.create: requires four digits for American Express", async () => {
    const amex = filledIn("3782 822463 10005")
    const session = await openSession(server)
    const refused = await pay(session, amex)
    assert.strictEqual(refused.status, 400)
    assert.deepStrictEqual(Object.keys(complaints(refused.text)), ["card_cvc"])
    assert.strictEqual((await pay(session, { ...amex, card_cvc: "1234" })).status, 303)
  })

  it.each(["12/34", "12 / 34", "1234", "12/2034", "12-34"])("accepts the expiry date %s", async (card_expiry) => {
    const session = await openSession(server)
    assert.strictEqual((await pay(session, { ...filledIn(), card_expiry })).status, 303)
  })

  it("keeps the entered values as text", async () => {
    const name = `"><script>alert(1)</script>`
    const { text } = await pay(await openSession(server), { ...filledIn(), name, card_cvc: "" })
    assert.include(text, 'value="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"')
    assert.notInclude(text, "<script>alert")
  })
})

describe("a country", () => {
  it("stays selected, and must be in the list", async () => {
    const session = await openSession(server, { billing_address_collection: "required" })
    const kept = await pay(session, { ...filledIn(), country: "PT" })
    assert.strictEqual(kept.status, 400)
    assert.deepStrictEqual(
      kept.text.match(/<option[^>]* selected>[^<]*/g)?.map((option) => option.trim()),
      ['<option value="PT" selected>Portugal']
    )
    const unknown = await pay(session, { ...filledIn(), country: "ZZ" })
    assert.include(unknown.text, "Choose a country from the list.")
    assert.notInclude(unknown.text, " selected>")
  })
})

describe("a card that is declined", () => {
  it("is reported, and the form accepts another card", async () => {
    const session = await openSession(server)
    const declined = await pay(session, filledIn(CARDS.insufficientFunds))
    assert.strictEqual(declined.status, 402)
    assert.include(declined.text, "Your card has insufficient funds.")
    assert.include(declined.text, 'value="ana@example.com"')
    assert.notInclude(declined.text, 'value="4000000000009995"')
    assert.strictEqual((await retrieve(session.id)).status, "open")
    const paid = await send(session.url, { ...filledIn(), token: tokenIn(declined.text) })
    assert.strictEqual(paid.status, 303)
  })

  it("is still reported when the page is opened again", async () => {
    const session = await openSession(server)
    await pay(session, filledIn(CARDS.declined))
    const { status, text } = await visit(session.url)
    assert.strictEqual(status, 200)
    assert.include(text, "Your card was declined.")
  })

  it("is declined once per form", async () => {
    const session = await openSession(server)
    const form = { token: tokenIn((await visit(session.url)).text), ...filledIn(CARDS.declined) }
    for (let i = 0; i < 3; i++) assert.strictEqual((await send(session.url, form)).status, 402)
    const { charges } = await server.get(`/v1/payment_intents/${session.payment_intent}`)
    assert.strictEqual(charges.data.length, 1)
  })

  it("and another one need two forms, one per attempt", async () => {
    const session = await openSession(server)
    const token = tokenIn((await visit(session.url)).text)
    await send(session.url, { ...filledIn(CARDS.declined), token })
    const other = await send(session.url, { ...filledIn(), token })
    assert.strictEqual(other.status, 409)
    // The new form does not contain the card.
    assert.include(other.text, "Please check your card and pay again")
    assert.strictEqual((await retrieve(session.id)).status, "open")
    assert.strictEqual((await send(session.url, { ...filledIn(), token: tokenIn(other.text) })).status, 303)
  })

  it("is reported differently from a processor that does not respond", async () => {
    const session = await openSession(server)
    const { status, text } = await pay(session, filledIn(CARDS.faulty))
    assert.strictEqual(status, 500)
    assert.include(text, "You have not been charged")
    assert.strictEqual((await pay(session)).status, 303)
  })
})

/** The test card with this decline code. */
const numberOf = (code: DeclineCode) =>
  TEST_CARDS.find(({ result }) => result.kind === "declines" && result.declineCode === code)!.numbers[0]

describe("checkout.attempts: a failed attempt", () => {
  /** Advice beside the marked fields, by field. */
  const marked = (text: string) =>
    [...text.matchAll(/<input\s+id="([a-z_0-9]+)"[^>]*aria-invalid="true"[^>]*>/g)].map(([tag, field]) => ({
      field: field!,
      focused: tag.includes("autofocus"),
      text: new RegExp(`id="${field}-error">([^<]*)`).exec(text)![1]!
    }))

  // A payer on the page is asked to authenticate instead (semantics payment_intents.off_session).
  const codes = (Object.keys(DECLINE_MESSAGES) as Array<DeclineCode>).filter(
    (code) => code !== "authentication_required"
  )

  it.each(codes)("for %s marks a field with advice, and keeps everything but card data", async (code) => {
    const session = await openSession(server, {
      billing_address_collection: "required",
      phone_number_collection: { enabled: true }
    })
    const address = { line1: "1 High St", line2: "Flat 2", city: "Leeds", postal_code: "LS1 1AA", country: "GB" }
    const details = { email: "ana@example.com", name: "Ana Lima", phone: "+44 1", ...address }
    const declined = await pay(session, { ...filledIn(numberOf(code)), ...details })
    for (const { status, text } of [declined, await visit(session.url)]) {
      assert.strictEqual(status, text === declined.text ? 402 : 200)
      const { field, text: advice } = ADVICE[code]
      assert.deepStrictEqual(marked(text), [{ field, focused: true, text: ENGLISH.text(advice) }])
      assert.strictEqual(text.split("autofocus").length, 2)
      assert.include(text.replaceAll("&#39;", "'"), `${ENGLISH.text(DECLINES[code])} You have not been charged.`)
      for (const [name, value] of Object.entries(details).filter(([name]) => name !== "country")) {
        assert.match(text, new RegExp(`name="${name}"[^>]*value="${value.replace("+", "\\+")}"`))
      }
      assert.include(text, '<option value="GB" selected>')
      for (const name of ["card_number", "card_expiry", "card_cvc"]) {
        assert.notMatch(text, new RegExp(`name="${name}"[^>]*value=`))
      }
    }
  })

  it("does not reveal a lost or stolen card", () => {
    assert.deepStrictEqual([ADVICE.lost_card, ADVICE.stolen_card], [ADVICE.generic_decline, ADVICE.generic_decline])
  })

  it("to authenticate shows advice too", async () => {
    const session = await openSession(server)
    const challenge = (await pay(session, filledIn(CARDS.challenged))).headers.get("location")!
    await answerChallenge(challenge, "failure")
    const { text } = await visit(session.url)
    assert.include(text, "Your bank could not confirm that it was you. You have not been charged.")
    const advice = ENGLISH.text(AFTER_AUTHENTICATION.text)
    assert.deepStrictEqual(marked(text), [{ field: AFTER_AUTHENTICATION.field, focused: true, text: advice }])
    assert.include(text, 'value="ana@example.com"')
  })

  it("closes the form for an hour after 20 attempts, and shows until when", async () => {
    const session = await openSession(server)
    const confirm = { payment_method: "pm_card_declined", customer_details: { email: "ana@example.com" } }
    const path = `/v1/checkout_sessions/${session.id}/confirm`
    for (let i = 0; i < 19; i++) await server.post(path, confirm, { status: 402 })
    const form = { token: tokenIn((await visit(session.url)).text), ...filledIn(CARDS.declined) }
    const other = { token: tokenIn((await visit(session.url)).text), ...filledIn() }
    // A repeated submission is not an attempt.
    const closed = await send(session.url, form)
    const told = [closed, await send(session.url, form), await send(session.url, other), await visit(session.url)]
    for (const { status, text } of told) {
      assert.strictEqual(status, 429)
      assert.include(text, "Too many failed payments")
      assert.match(text, /try again on this page at \d{1,2}:\d\d\s[AP]M UTC, within an hour/)
      assert.include(text, "You have not been charged.")
      assert.include(text, `href="${server.url}/healthz?canceled"`)
      assert.notInclude(text, "card_number")
    }
    const { charges } = await server.get(`/v1/payment_intents/${session.payment_intent}`)
    assert.strictEqual(charges.data[0].amount, 2450)
    assert.isTrue(charges.has_more)
    await server.post("/v1/test_helpers/clock/advance", { seconds: 3599 })
    assert.strictEqual((await visit(session.url)).status, 429)
    await server.post("/v1/test_helpers/clock/advance", { seconds: 1 })
    assert.strictEqual((await pay(session)).status, 303)
  })

  it("says that a session that expires within the hour accepts no more payments", async () => {
    const expires_at = Math.floor(Date.now() / 1000) + 3 * 3600
    const session = await openSession(server, { expires_at })
    await server.post("/v1/test_helpers/clock/advance", { seconds: 3600 })
    const confirm = { payment_method: "pm_card_declined", customer_details: { email: "ana@example.com" } }
    for (let i = 0; i < 20; i++) {
      await server.post(`/v1/checkout_sessions/${session.id}/confirm`, confirm, { status: 402 })
    }
    const { status, text } = await visit(session.url)
    assert.strictEqual(status, 429)
    assert.include(text, "This checkout no longer accepts payments.")
  })
})

describe("a session that can no longer be paid", () => {
  it("says that it is paid, with a link back", async () => {
    const session = await openSession(server)
    await pay(session)
    const { headers, status, text } = await visit(session.url)
    assert.strictEqual(status, 410)
    assert.include(text, "This order is paid")
    assert.include(text, "$24.50")
    assert.include(text, `href="${server.url}/healthz?session=${session.id}"`)
    assert.strictEqual(headers.get("cache-control"), "no-store")
  })

  it("shows the refunded amount", async () => {
    const session = await openSession(server)
    await pay(session)
    const { payment_intent } = await retrieve(session.id)
    await server.post("/v1/refunds", { payment_intent, amount: 450 })
    const partly = (await visit(session.url)).text
    assert.include(partly, "This order is paid")
    assert.include(partly, "has refunded $4.50.")
    await server.post("/v1/refunds", { payment_intent })
    const { text } = await visit(session.url)
    assert.include(text, "This order was refunded")
    assert.include(text, "has refunded $24.50.")
  })

  it("says that it has expired without a charge, also in response to its form", async () => {
    const session = await openSession(server)
    const form = { token: tokenIn((await visit(session.url)).text), ...filledIn() }
    await server.post(`/v1/checkout_sessions/${session.id}/expire`, {})
    for (const { status, text } of [await visit(session.url), await send(session.url, form)]) {
      assert.strictEqual(status, 410)
      assert.include(text, "This checkout has expired")
      assert.include(text, "You have not been charged")
    }
  })

  it("shows that the bank's answer is pending, and then the answer", async () => {
    const session = await openSession(server)
    assert.strictEqual((await pay(session, filledIn(CARDS.processing))).status, 303)
    assert.include((await visit(session.url)).text, "Your payment is being processed")
  })

  it("shows the bank's refusal, with a link to the cart instead of the success page", async () => {
    const session = await openSession(server)
    await pay(session, filledIn(CARDS.processingThenDeclined))
    await server.post("/v1/test_helpers/clock/advance", { seconds: 2 })
    const { text } = await visit(session.url)
    assert.include(text, "Your payment did not go through")
    assert.deepStrictEqual(linksIn(text), [`${server.url}/healthz?canceled`])
  })

  it.each([true, false])("says that a reserved amount was released; with a cart to return to: %j", async (hasCart) => {
    const parameters = { payment_intent_data: { capture_method: "manual" }, ...(!hasCart && { cancel_url: null }) }
    const session = await openSession(server, parameters)
    await pay(session)
    await server.post(`/v1/payment_intents/${session.payment_intent}/cancel`, {})
    const { text } = await visit(session.url)
    assert.include(text, "Your payment was canceled")
    assert.deepStrictEqual(linksIn(text), hasCart ? [`${server.url}/healthz?canceled`] : [])
  })
})

describe("the page's script", () => {
  const asScript = { accept: "application/json" }

  it("gets the same outcomes as data", async () => {
    const session = await openSession(server)
    const token = tokenIn((await visit(session.url)).text)
    const wrong = await send(session.url, { token, ...filledIn(), email: "" }, asScript)
    assert.strictEqual(wrong.status, 400)
    assert.deepStrictEqual(JSON.parse(wrong.text).errors, { email: "Enter your email address." })
    const declined = await send(session.url, { token, ...filledIn(CARDS.declined) }, asScript)
    assert.strictEqual(declined.status, 402)
    const answer = JSON.parse(declined.text)
    assert.strictEqual(answer.message, "Your card was declined. You have not been charged.")
    assert.deepStrictEqual(answer.errors, { card_number: ENGLISH.text(ADVICE.generic_decline.text) })
    assert.deepStrictEqual(Object.keys(answer).toSorted(), ["again", "errors", "message", "token"])
    assert.deepStrictEqual(answer.again, ["card_number", "card_expiry", "card_cvc"])
    const paid = await send(session.url, { ...filledIn(), token: answer.token }, asScript)
    assert.deepStrictEqual(JSON.parse(paid.text), { location: `${server.url}/healthz?session=${session.id}` })
    const again = await send(session.url, { ...filledIn(), token }, asScript)
    assert.strictEqual(again.status, 410)
    assert.deepStrictEqual(JSON.parse(again.text), { reload: true })
  })
})

describe("a form from another site", () => {
  it("pays nothing if it has no token of this session", async () => {
    const [session, other] = [await openSession(server), await openSession(server)]
    const foreign = tokenIn((await visit(other.url)).text)
    const [nonce, mac] = foreign.split(".")
    for (const token of ["", foreign, `${nonce}.`, nonce!, `${mac}.${nonce}`, "a.b"]) {
      assert.strictEqual((await send(session.url, { ...filledIn(), token })).status, 400)
    }
    assert.strictEqual((await retrieve(session.id)).status, "open")
  })

  it.each(["cross-site", "same-site"])("pays nothing if the browser reports %s", async (site) => {
    const session = await openSession(server)
    const form = { ...filledIn(), token: tokenIn((await visit(session.url)).text) }
    assert.strictEqual((await send(session.url, form, { "sec-fetch-site": site })).status, 403)
    assert.strictEqual((await retrieve(session.id)).status, "open")
  })

  it("pays nothing with another content type or if it is too long", async () => {
    const { url } = await openSession(server)
    assert.strictEqual((await send(url, filledIn(), { "content-type": "text/plain" })).status, 400)
    assert.strictEqual((await send(url, { email: "a".repeat(70_000) })).status, 413)
  })
})

describe("live mode", () => {
  const live = (from: MemoryTillWithPages, parameters = {}, amount = 2450) =>
    openSession(from, parameters, { amount, key: from.secretLive })

  it("keys.live_processor: without a processor, says that the shop cannot take cards yet, without a form", async () => {
    const { url } = await live(server)
    const { headers, status, text } = await visit(url)
    assert.strictEqual(status, 200)
    assert.strictEqual(headers.get("cache-control"), "no-store")
    assert.include(text, "House Espresso")
    assert.include(text, "$24.50")
    assert.include(text, "This shop cannot take cards yet")
    assert.deepStrictEqual(linksIn(text), [`${server.url}/healthz?canceled`, `${server.url}/healthz?canceled`])
    assert.notMatch(text, /<form|<input|<script|test mode|4242/i)
  })

  it("keys.live_processor: says so in a frame as well", async () => {
    const named = await start({ merchantName: "Shop", embedOrigins: new Set(["https://shop.example"]) })
    const { client_secret, id } = await live(named, { ui_mode: "embedded", cancel_url: null })
    const query = new URLSearchParams({ client_secret, origin: "https://shop.example" })
    const { status, text } = await visit(`${named.url}/checkout/${id}?${query}`)
    assert.strictEqual(status, 200)
    assert.include(text, 'data-embedder="https://shop.example" data-status="open"')
    assert.include(text, "This shop cannot take cards yet")
    assert.notInclude(text, "<form")
    await named.close()
  })

  it("keys.live_processor: without a processor, refuses the form and keeps the session open", async () => {
    const { id, payment_intent, url } = await live(server)
    const token = tokenIn((await visit((await live(server, {}, 0)).url)).text)
    for (const values of [filledIn(), { ...filledIn(), token }, {}]) {
      const refused = await send(url, values)
      assert.strictEqual(refused.status, 400)
      assert.include(refused.text, "This shop cannot take cards yet")
      const asData = await send(url, values, { accept: "application/json" })
      assert.strictEqual(asData.status, 400)
    }
    assert.strictEqual((await server.get(`/v1/checkout_sessions/${id}`, server.secretLive)).status, "open")
    const { charges } = await server.get(`/v1/payment_intents/${payment_intent}`, server.secretLive)
    assert.deepStrictEqual(charges.data, [])
  })

  it("keys.live_processor: without a processor, completes a free order", async () => {
    const session = await live(server, {}, 0)
    const { text } = await visit(session.url)
    assert.include(text, "Complete order")
    assert.notInclude(text, "cannot take cards")
    const { headers, status } = await pay(session, { email: "ana@example.com", name: "Ana Lima" })
    assert.strictEqual(status, 303)
    assert.strictEqual(headers.get("location"), `${server.url}/healthz?session=${session.id}`)
  })

  // Semantics keys.live_processor.
  it("shows no test-mode panel, and charges cards if there is a processor", async () => {
    const simulating = await start({ merchantName: "Shop", liveProcessor: "simulator" })
    const session = await live(simulating)
    const { text } = await visit(session.url)
    assert.notMatch(text, /cannot take cards|test mode|4242/i)
    assert.strictEqual((await pay(session)).status, 303)
    const paid = await simulating.get(`/v1/checkout_sessions/${session.id}`, simulating.secretLive)
    assert.strictEqual(paid.payment_status, "paid")
    await simulating.close()
  })
})

describe("card data", () => {
  it("is only in the request", async () => {
    const session = await openSession(server)
    const declined = await pay(session, { ...filledIn(CARDS.declined), card_cvc: "8157" })
    const paid = await send(session.url, {
      ...filledIn("5555555555554444"),
      card_cvc: "8157",
      token: tokenIn(declined.text)
    })
    const shown = [declined.text, JSON.stringify([...paid.headers]), (await visit(session.url)).text]
    for (const place of [...shown, await server.journal()]) {
      assert.notMatch(
        place.replaceAll(/4000 0000 0000 0002|5555 5555 5555 4444/g, ""),
        /4000000000000002|5555555555554444/
      )
      // Ids and times may contain these digits by chance, so only separate values count.
      assert.notMatch(place, /(?<![0-9A-Za-z_-])8157(?![0-9A-Za-z_-])/)
    }
  })
})

describe("a merchant's text", () => {
  const hostile = `</title></script><script>alert(1)</script><img src=x onerror=alert(1)>"'><svg/onload=alert(1)>`

  it("stays text on every page", async () => {
    const evil = await start({ merchantName: hostile })
    try {
      const session = await openSession(
        evil,
        {
          success_url: `https://shop.example/?q="'><script>alert(1)</script>{CHECKOUT_SESSION_ID}`,
          cancel_url: `https://shop.example/"onmouseover="alert(1)`,
          customer_email: `"><b>@example.com`,
          client_reference_id: "<b>",
          metadata: { "<b>": "<b>" },
          payment_intent_data: { description: hostile }
        },
        { name: hostile }
      )
      const open = (await visit(session.url)).text
      const challenged = await pay(session, filledIn(CARDS.challenged))
      const challenge = (await visit(challenged.headers.get("location")!)).text
      await evil.post(`/v1/checkout_sessions/${session.id}/expire`, {})
      const expired = (await visit(session.url)).text
      for (const text of [open, challenge, expired]) {
        assert.include(text, "&lt;script&gt;alert(1)")
        assert.notMatch(text, /<script>|<img|<svg\/|onmouseover="|<b>/)
      }
    } finally {
      await evil.close()
    }
  })

  it.each(["javascript:alert(1)", "data:text/html,x", "vbscript:x", " java\nscript:alert(1)"])(
    "%j is no URL to lead a payer to",
    async (success_url) => {
      const product = await server.post("/v1/products", { name: "Coffee" })
      const line_items = [{ price_data: { currency: "usd", product: product.id, unit_amount: 1 } }]
      const body = { mode: "payment", line_items, success_url }
      const { error } = await server.post("/v1/checkout_sessions", body, { status: 400 })
      assert.deepInclude(error, { code: "parameter_invalid", param: "success_url" })
    }
  )

  it("an app's own scheme is one", async () => {
    const session = await openSession(server, { success_url: "shop-app://paid/{CHECKOUT_SESSION_ID}" })
    assert.include((await visit(session.url)).headers.get("content-security-policy")!, "form-action 'self' shop-app:;")
    assert.strictEqual((await pay(session)).headers.get("location"), `shop-app://paid/${session.id}`)
  })
})

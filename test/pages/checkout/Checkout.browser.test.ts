/** A shopper in a real browser pays, from the checkout page to the shop, with and without scripts. */
import { afterAll, afterEach, assert, beforeAll, describe, it, vi } from "@effect/vitest"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { PAGE_LANGUAGES } from "../../../src/domain/CheckoutSession.ts"
import type { TextKey } from "../../../src/html/texts/Catalogue.ts"
import { CATALOGUES, Translation } from "../../../src/html/Translation.ts"
import { accessibilityProblems, connect, hasBrowser, overflows, setTextSize } from "../Browser.ts"
import { type Answer, type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { CARDS, openSession } from "../../support/fixtures/CheckoutPages.ts"
import { openShop, type ShopWindow } from "../../support/fixtures/ShopWindow.ts"

describe.skipIf(!hasBrowser)("the checkout in a browser", () => {
  let server: MemoryTillWithPages
  let shop: ShopWindow
  let browser: Browser
  beforeAll(async () => {
    ;[server, shop, browser] = await Promise.all([start(), openShop(), connect()])
  })
  afterAll(async () => {
    await browser.close()
    await Promise.all([server.close(), shop.close()])
  })
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())))

  const newSession = (parameters: Readonly<Record<string, unknown>> = {}): Promise<Answer> =>
    openSession(server, {
      success_url: `${shop.url}/thanks?session={CHECKOUT_SESSION_ID}`,
      cancel_url: `${shop.url}/cart`,
      ...parameters
    })

  /** Currency and product of a line. */
  const goods = async () => ({ currency: "usd", product: (await server.post("/v1/products", { name: "Cups" })).id })

  /** A line whose amount the payer chooses. */
  const customLine = async () => {
    const { currency, product } = await goods()
    const custom_unit_amount = { enabled: true, minimum: 100 }
    return { price: (await server.post("/v1/prices", { product, currency, custom_unit_amount })).id }
  }

  /** A page with its browser errors, and its requests to others than Till and the shop. */
  interface Watched {
    readonly page: Page
    readonly complaints: Array<string>
  }

  const open = async (session: Answer, options: BrowserContextOptions = {}): Promise<Watched> => {
    const context = await browser.newContext({ locale: "en-US", ...options })
    context.setDefaultTimeout(120_000)
    const page = await context.newPage()
    const complaints: Array<string> = []
    page.on("pageerror", (error) => complaints.push(String(error)))
    page.on("console", (message) => {
      // Expected: refusals by status.
      if (message.type() === "error" && !/status of 4\d\d/.test(message.text())) complaints.push(message.text())
    })
    page.on("dialog", (dialog) => {
      complaints.push(`dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
    page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url())
      if (protocol !== "data:" && origin !== server.url && origin !== shop.url) complaints.push(`to ${request.url()}`)
    })
    await page.goto(session.url)
    return { page, complaints }
  }

  const fillCard = async (page: Page, number: string = CARDS.approved) => {
    await page.getByLabel("Card number").fill(number)
    await page.getByLabel("Expiry date").fill("12 / 34")
    await page.getByLabel("Security code").fill("123")
  }

  const fill = async (page: Page, number?: string) => {
    await page.getByLabel("Email").fill("ana@example.com")
    await fillCard(page, number)
  }

  const payButton = (page: Page) => page.getByRole("button", { name: /^Pay / })

  const atShop = async (page: Page, session: Answer) => {
    await page.waitForURL(`${shop.url}/thanks?session=${session.id}`)
    assert.strictEqual((await server.get(`/v1/checkout_sessions/${session.id}`)).payment_status, "paid")
  }

  const chargesOf = async (session: Answer): Promise<number> =>
    (await server.get(`/v1/payment_intents/${session.payment_intent}`)).charges.data.length

  const ways: ReadonlyArray<readonly [string, BrowserContextOptions]> = [
    ["with script", {}],
    ["without script", { javaScriptEnabled: false }]
  ]

  describe.each(ways)("%s", (_, options) => {
    // axe waits for timers of the page, which do not run without scripts. The page is the same, though.
    const problemsOf = async (page: Page) => (options.javaScriptEnabled === false ? [] : accessibilityProblems(page))

    it("charges a card and redirects to the shop", async () => {
      const session = await newSession()
      const { complaints, page } = await open(session, options)
      await fill(page)
      await payButton(page).click()
      await atShop(page, session)
      assert.deepStrictEqual(complaints, [])
    })

    it("keeps the form after a decline, but not a card that was refused", async () => {
      const session = await newSession()
      const { page } = await open(session, options)
      await fill(page, CARDS.declined)
      await payButton(page).click()
      await page.getByText("Your card was declined.").waitFor()
      assert.strictEqual(await page.getByLabel("Email").inputValue(), "ana@example.com")
      for (const label of ["Card number", "Expiry date", "Security code"]) {
        assert.strictEqual(await page.getByLabel(label).inputValue(), "")
      }
      assert.strictEqual(page.url(), session.url)
      await fillCard(page)
      await payButton(page).click()
      await atShop(page, session)
    })

    it("redirects to an authentication and back to the shop", async () => {
      const session = await newSession()
      const { complaints, page } = await open(session, options)
      await fill(page, CARDS.challenged)
      await payButton(page).click()
      await page.getByRole("button", { name: "Complete authentication" }).click()
      await atShop(page, session)
      assert.deepStrictEqual(complaints, [])
    })

    it.each([
      ["a payment", CARDS.approved],
      ["an authentication", CARDS.challenged]
    ])("follows the shop's own redirects to another site after %s", async (_, number) => {
      const other = `${server.url}/healthz?elsewhere`
      const session = await newSession({ success_url: `${shop.url}/onward?${encodeURIComponent(other)}` })
      const { page } = await open(session, options)
      await fill(page, number)
      await payButton(page).click()
      if (number === CARDS.challenged) await page.getByRole("button", { name: "Complete authentication" }).click()
      await page.waitForURL(other)
      assert.strictEqual(await chargesOf(session), 1)
    })

    it("accepts another card after a failed authentication", async () => {
      const session = await newSession()
      const { page } = await open(session, options)
      await fill(page, CARDS.challenged)
      await payButton(page).click()
      await page.getByRole("button", { name: "Fail authentication" }).click()
      await page.getByText("Your bank could not confirm that it was you.").waitFor()
      assert.strictEqual(page.url(), session.url)
      await fillCard(page)
      await payButton(page).click()
      await atShop(page, session)
    })

    it("reports a session that has expired in between", async () => {
      const session = await newSession()
      const { page } = await open(session, options)
      await fill(page)
      await server.post(`/v1/checkout_sessions/${session.id}/expire`, {})
      await payButton(page).click()
      await page.getByRole("heading", { name: "This checkout has expired" }).waitFor()
      await page.getByText("You have not been charged.").waitFor()
      assert.strictEqual(await chargesOf(session), 0)
    })

    it("pays once for a double click", async () => {
      const session = await newSession()
      const { page } = await open(session, options)
      await fill(page)
      await payButton(page).dblclick()
      // Without scripts, the second click may cancel the first navigation and take its place.
      await vi.waitFor(() => atShop(page, session), { timeout: 120_000 })
      assert.strictEqual(await chargesOf(session), 1)
    })

    it("shows that the session is paid after going back", async () => {
      const session = await newSession()
      const { page } = await open(session, options)
      await fill(page)
      await payButton(page).click()
      await atShop(page, session)
      await page.goBack()
      await page.getByRole("heading", { name: "This order is paid" }).waitFor()
      assert.notInclude(await page.content(), CARDS.approved)
    })

    it("links back to the shop's cart", async () => {
      const session = await newSession()
      const { page } = await open(session, options)
      await page.getByRole("link", { name: "Back to Lumen Coffee" }).click()
      await page.waitForURL(`${shop.url}/cart`)
      assert.strictEqual((await server.get(`/v1/checkout_sessions/${session.id}`)).status, "open")
    })

    it("shows missing values beside the fields, and focuses the first", async () => {
      const { page } = await open(await newSession({ billing_address_collection: "required" }), options)
      await page.getByLabel("Country").selectOption("")
      await payButton(page).click()
      for (const text of [
        "Enter your email address.",
        "Choose your country.",
        "Enter your address.",
        "Enter your city.",
        "Enter your card number.",
        "Enter your card's expiry date.",
        "Enter your card's security code."
      ]) {
        await page.getByText(text).waitFor()
      }
      assert.strictEqual(await page.locator(":focus").getAttribute("name"), "email")
      assert.strictEqual(await page.locator("[aria-invalid=true]").count(), 7)
    })

    it("pages.declines: marks the card field after a decline, with advice and the focus", async () => {
      const session = await newSession({ billing_address_collection: "required" })
      const { page } = await open(session, options)
      await page.getByLabel("Country").selectOption("GB")
      await page.getByLabel("Address").fill("1 High St")
      await page.getByLabel(/City|Town/).fill("Leeds")
      // Without a script, the labels are those of the preselected country.
      await page.getByLabel(/Postal code|ZIP code/).fill("LS1 1AA")
      for (const [number, name, text] of [
        ["4000000000000127", "card_cvc", "Enter the security code that is printed on your card."],
        ["4000000000000069", "card_expiry", "Check the date on your card, or pay with another card."],
        ["4000000000009995", "card_number", "Pay with another card, or top this one up first."]
      ] as const) {
        await fill(page, number)
        await payButton(page).click()
        const advice = page.getByText(text)
        await advice.waitFor()
        const alert = page.getByRole("alert")
        assert.match((await alert.textContent())!.trim(), /^Your card.* You have not been charged\.$/)
        const focused = page.locator(":focus")
        assert.strictEqual(await focused.getAttribute("name"), name)
        assert.strictEqual(await focused.getAttribute("aria-describedby"), await advice.getAttribute("id"))
        assert.deepStrictEqual(
          await page.locator("[aria-invalid=true]").evaluateAll((all) => all.map(({ id }) => id)),
          [name]
        )
        assert.deepStrictEqual(await problemsOf(page), [])
      }
      for (const [label, value] of [
        ["Email", "ana@example.com"],
        ["Country", "GB"],
        ["Address", "1 High St"],
        ["Town or city", "Leeds"],
        ["Postal code", "LS1 1AA"],
        ["Card number", ""]
      ] as const) {
        assert.strictEqual(await page.getByLabel(label).inputValue(), value)
      }
      await fillCard(page)
      await payButton(page).click()
      await atShop(page, session)
    })

    it("checkout.attempts: closes after 20 failed attempts, and shows until when", async () => {
      const session = await newSession()
      const { page } = await open(session, options)
      const confirm = { payment_method: "pm_card_declined", customer_details: { email: "ana@example.com" } }
      for (let i = 0; i < 19; i++) {
        await server.post(`/v1/checkout_sessions/${session.id}/confirm`, confirm, { status: 402 })
      }
      await fill(page, CARDS.declined)
      await payButton(page).click()
      await page.getByRole("heading", { name: "Too many failed payments" }).waitFor()
      await page.getByText(/try again on this page at \d{1,2}:\d\d\s[AP]M UTC, within an hour/).waitFor()
      assert.strictEqual(await page.getByRole("textbox").count(), 0)
      assert.deepStrictEqual(await problemsOf(page), [])
    })

    it.each([
      ["US", ["Country", "Address", "Apartment", "City", "State", "ZIP code"], "Enter your ZIP code."],
      ["GB", ["Country", "Address", "Apartment", "Town or city", "Postal code"], "Enter your postal code."],
      ["JP", ["Country", "Postal code", "Prefecture", "Address", "Apartment"], "Enter your prefecture."],
      ["HK", ["Country", "Area", "District", "Address", "Apartment"], "Enter your area."],
      ["AE", ["Country", "Address", "Apartment", "Emirate"], "Enter your emirate."],
      ["IE", ["Country", "Address", "Apartment", "City", "County", "Eircode"], "Enter your city."]
    ])("pages.address: asks for an address in the format of %s", async (country, labels, missing) => {
      const session = await newSession({ billing_address_collection: "required" })
      const { complaints, page } = await open(session, options)
      await page.getByLabel("Country").selectOption(country)
      await fill(page)
      await payButton(page).click()
      await page.getByText(missing).waitFor()
      const group = page.getByRole("group", { name: "Billing address" })
      const shown = await group.locator("label:visible").evaluateAll((all) => all.map((label) => label.textContent!))
      assert.deepStrictEqual(
        shown.map((label, index) => (label.startsWith(labels[index]!) ? labels[index] : label)),
        labels
      )
      assert.strictEqual(await page.locator(":focus").count(), 1)
      // The keyboard order is the visual order.
      await page.getByLabel("Country").focus()
      const reached: Array<string> = ["Country"]
      for (const _ of labels.slice(1)) {
        await page.keyboard.press("Tab")
        reached.push(await page.locator(":focus").evaluate((input: HTMLInputElement) => input.labels![0]!.textContent!))
      }
      assert.deepStrictEqual(reached, shown)
      // Between countries, only field names differ.
      if (country === "JP") assert.deepStrictEqual(await problemsOf(page), [])
      for (const label of shown.slice(1).filter((label) => !label.endsWith("optional"))) {
        await page.getByLabel(label, { exact: true }).fill(`my ${label}`)
      }
      if (options.javaScriptEnabled === false) await fillCard(page)
      await payButton(page).click()
      await atShop(page, session)
      const { address } = (await server.get(`/v1/checkout_sessions/${session.id}`)).customer_details
      assert.strictEqual(address.country, country)
      assert.strictEqual(address.line1, "my Address")
      assert.deepStrictEqual(complaints, [])
    })
  })

  it("pages.address: follows the country as soon as it is chosen, and keeps what was entered", async () => {
    const session = await newSession({ billing_address_collection: "required", customer_email: "ana@example.com" })
    const { page } = await open(session)
    const country = page.getByLabel("Country")
    const values = { Address: "1 Main St", City: "Reno", State: "NV", "ZIP code": "89501" }
    await country.selectOption("US")
    for (const [label, value] of Object.entries(values)) await page.getByLabel(label, { exact: true }).fill(value)
    await country.selectOption("AE")
    assert.isTrue(await country.isVisible(), "a browser has lost it once, as the fields around it were moved")
    assert.isFalse(await page.getByLabel("City").isVisible())
    assert.strictEqual(await page.getByLabel("Emirate").inputValue(), "NV")
    await country.selectOption("GB")
    assert.strictEqual(await page.locator("#state").isVisible(), false)
    assert.strictEqual(await page.getByLabel("Town or city").inputValue(), "Reno")
    await country.selectOption("US")
    for (const [label, value] of Object.entries(values)) {
      assert.strictEqual(await page.getByLabel(label, { exact: true }).inputValue(), value)
    }
    // Fields that the country does not use are not sent.
    await country.selectOption("GB")
    await fillCard(page)
    await payButton(page).click()
    await atShop(page, session)
    const { address } = (await server.get(`/v1/checkout_sessions/${session.id}`)).customer_details
    assert.deepInclude(address, { country: "GB", state: null, city: "Reno" })
  })

  it("pages.address: shows entered values of unused fields without scripts", async () => {
    const session = await newSession({ billing_address_collection: "required", customer_email: "ana@example.com" })
    const { page } = await open(session, { javaScriptEnabled: false })
    await page.getByLabel("Country").selectOption("JP")
    await page.getByLabel("City").fill("Minato")
    await payButton(page).click()
    await page.getByText("Enter your prefecture.").waitFor()
    assert.strictEqual(await page.getByLabel("City").inputValue(), "Minato")
    assert.strictEqual(await page.locator("label[for=city]").textContent(), "City optional")
    await page.getByLabel("Country").selectOption("US")
    await page.getByLabel("Prefecture").fill("NV")
    await payButton(page).click()
    await page.getByText("Enter your ZIP code.").waitFor()
    assert.strictEqual(await page.getByLabel("City", { exact: true }).inputValue(), "Minato")
    assert.strictEqual(await page.getByLabel("State", { exact: true }).inputValue(), "NV")
  })

  it("shows the card's scheme and groups its digits as they are typed", async () => {
    const { page } = await open(await newSession())
    const number = page.getByLabel("Card number")
    for (const [digits, shown, brand] of [
      ["4242424242424242", "4242 4242 4242 4242", "Visa"],
      ["378282246310005", "3782 822463 10005", "American Express"],
      ["5555555555554444", "5555 5555 5555 4444", "Mastercard"],
      ["2720990000000000", "2720 9900 0000 0000", "Mastercard"],
      ["6011111111111117", "6011 1111 1111 1117", "Discover"],
      ["3056930009020004", "3056 9300 0902 0004", "Diners Club"],
      ["3566002020360505", "3566 0020 2036 0505", "JCB"],
      ["6200000000000005", "6200 0000 0000 0005", "UnionPay"]
    ] as const) {
      await number.fill("")
      await number.pressSequentially(digits)
      assert.strictEqual(await number.inputValue(), shown)
      assert.strictEqual(await page.locator("#brand").textContent(), brand)
    }
    // In the middle of the number, the caret keeps its position.
    await number.fill("4242 4242 4242 4242")
    await number.evaluate((input: HTMLInputElement) => input.setSelectionRange(2, 2))
    await number.pressSequentially("99")
    assert.strictEqual(await number.inputValue(), "4299 4242 4242 4242 42")
    assert.strictEqual(await number.evaluate((input: HTMLInputElement) => input.selectionStart), 4)
    const expiry = page.getByLabel("Expiry date")
    for (const [typed, shown] of [
      ["1234", "12 / 34"],
      ["534", "05 / 34"],
      ["1/34", "01 / 34"],
      ["2034-12", "12 / 34"],
      ["122034", "12 / 34"]
    ] as const) {
      await expiry.fill("")
      await expiry.pressSequentially(typed)
      assert.strictEqual(await expiry.inputValue(), shown)
    }
    await expiry.press("Backspace")
    await expiry.press("Backspace")
    await expiry.press("Backspace")
    assert.strictEqual(await expiry.inputValue(), "12 /")
    await expiry.pressSequentially("56")
    assert.strictEqual(await expiry.inputValue(), "12 / 56")
  })

  it("deletes digit after digit with the Delete key, across gaps", async () => {
    const { page } = await open(await newSession())
    const [number, expiry] = [page.getByLabel("Card number"), page.getByLabel("Expiry date")]
    const deleteFrom = async (field: typeof number, from: number, times: number) => {
      await field.evaluate((input: HTMLInputElement, caret) => input.setSelectionRange(caret, caret), from)
      for (let i = 0; i < times; i++) await field.press("Delete")
      return field.evaluate(({ selectionStart, value }: HTMLInputElement) => [value, selectionStart])
    }
    await number.fill("4242 4242 4242 4243")
    assert.deepStrictEqual(await deleteFrom(number, 4, 1), ["4242 4242 4242 4243", 5])
    assert.deepStrictEqual(await deleteFrom(number, 4, 2), ["4242 2424 2424 243", 5])
    assert.deepStrictEqual(await deleteFrom(number, 3, 1), ["4242 4242 4242 43", 3])
    await expiry.fill("12 / 34")
    assert.deepStrictEqual(await deleteFrom(expiry, 2, 1), ["12 / 34", 5])
    assert.deepStrictEqual(await deleteFrom(expiry, 2, 2), ["12 / 4", 5])
    // A leading zero is restored until no month is possible.
    await expiry.fill("12 / 34")
    assert.deepStrictEqual((await deleteFrom(expiry, 0, 5))[0], "0 / ")
  })

  it("pages.card_fields: reads autofill and input methods like the server", async () => {
    const session = await newSession({ customer_email: "ana@example.com" })
    const { complaints, page } = await open(session)
    const fields = {
      "Card number": ["４２４２４２４２４２４２４２４２", "4242 4242 4242 4242"],
      "Expiry date": ["2034-12", "12 / 34"],
      "Security code": ["１２３", "123"]
    } as const
    for (const [label, [filled, shown]] of Object.entries(fields)) {
      await page.getByLabel(label).fill(filled)
      assert.strictEqual(await page.getByLabel(label).inputValue(), shown)
    }
    // Excess digits are kept: cut off, they would read as another code.
    await page.getByLabel("Security code").fill("12345")
    await page.getByLabel("Security code").press("Tab")
    await page.getByText("The security code has 3 digits").waitFor()
    await page.getByLabel("Security code").fill("123")
    await payButton(page).click()
    await atShop(page, session)
    assert.deepStrictEqual(complaints, [])
  })

  it("pages.card_fields: accepts autofill without scripts", async () => {
    const session = await newSession({ customer_email: "ana@example.com" })
    const { page } = await open(session, { javaScriptEnabled: false })
    await page.getByLabel("Card number").fill("４２４２ ４２４２ ４２４２ ４２４２")
    await page.getByLabel("Expiry date").fill("2034-12")
    await page.getByLabel("Security code").fill("123")
    await payButton(page).click()
    await atShop(page, session)
  })

  it("reports an invalid card number on leaving the field until it is corrected", async () => {
    const { page } = await open(await newSession())
    const number = page.getByLabel("Card number")
    await number.fill("4242424242424241")
    await number.press("Tab")
    await page.getByText("This card number is not valid.").waitFor()
    assert.strictEqual(await number.getAttribute("aria-invalid"), "true")
    await number.fill("4242424242424242")
    assert.isNull(await number.getAttribute("aria-invalid"))
  })

  it("payment_methods.create: requires the security code's length of the card's brand", async () => {
    const session = await newSession({ customer_email: "ana@example.com" })
    const { page } = await open(session)
    const cvc = page.getByLabel("Security code")
    const isWrong = () => cvc.getAttribute("aria-invalid")
    await cvc.fill("1234")
    await page.getByLabel("Card number").fill("4242424242424242")
    await page.getByLabel("Card number").press("Tab")
    await page.getByText("The security code has 3 digits, or 4 on American Express.").waitFor()
    await page.getByLabel("Card number").fill("378282246310005")
    await page.getByLabel("Card number").press("Tab")
    assert.isNull(await isWrong())
    await cvc.fill("123")
    await cvc.press("Tab")
    assert.strictEqual(await isWrong(), "true")
    await cvc.fill("1234")
    await page.getByLabel("Expiry date").fill("12 / 34")
    await payButton(page).click()
    await atShop(page, session)
  })

  it("fills in a test card with one click", async () => {
    const session = await newSession({ customer_email: "ana@example.com" })
    const { page } = await open(session)
    await page.getByText("Test cards").click()
    await page.getByRole("button", { name: /4242 4242 4242 4242/ }).click()
    await payButton(page).click()
    await atShop(page, session)
  })

  it("is paid by keyboard alone", async () => {
    const session = await newSession()
    const { page } = await open(session)
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute("name"))
    const reach = async (name: string) => {
      for (let presses = 0; (await focused()) !== name; presses++) {
        assert.isBelow(presses, 10, `${name} is not reached`)
        await page.keyboard.press("Tab")
      }
    }
    for (const [name, text] of [
      ["email", "ana@example.com"],
      ["card_number", CARDS.approved],
      ["card_expiry", "1234"],
      ["card_cvc", "123"]
    ] as const) {
      await reach(name)
      await page.keyboard.type(text)
    }
    await page.keyboard.press("Tab")
    assert.strictEqual(await page.locator(":focus").getAttribute("type"), "submit")
    await page.keyboard.press("Enter")
    await atShop(page, session)
  })

  it("shows progress and blocks a second submission", async () => {
    const session = await newSession()
    const { page } = await open(session)
    let requests = 0
    let answer = (): void => {}
    const held = new Promise<void>((resolve) => (answer = resolve))
    await page.route(`**/checkout/${session.id}`, async (route) => {
      requests++
      await held
      await route.continue()
    })
    await fill(page)
    await payButton(page).click()
    const button = page.locator("button[type=submit]")
    await page.getByText("Processing…").waitFor()
    assert.strictEqual(await button.getAttribute("aria-disabled"), "true")
    await button.click({ force: true })
    await page.getByLabel("Security code").press("Enter")
    answer()
    await atShop(page, session)
    assert.strictEqual(requests, 1)
  })

  it("pays once if the response is lost and the payer retries", async () => {
    const session = await newSession()
    const { page } = await open(session)
    let lost = false
    await page.route(`**/checkout/${session.id}`, async (route) => {
      if (lost) return route.continue()
      lost = true
      await route.fetch()
      await route.abort()
    })
    await fill(page)
    await payButton(page).click()
    await page.getByText("Try again: you will not be charged twice.").waitFor()
    await payButton(page).click()
    await atShop(page, session)
    assert.strictEqual(await chargesOf(session), 1)
  })

  it("reports a decline without reloading the page", async () => {
    const { page } = await open(await newSession())
    await page.evaluate(() => Object.assign(globalThis, { stillHere: true }))
    await fill(page, CARDS.insufficientFunds)
    await payButton(page).click()
    await page.getByText("Your card has insufficient funds.").waitFor()
    assert.isTrue(await page.evaluate(() => (globalThis as unknown as { stillHere?: boolean }).stillHere))
    assert.strictEqual(await page.locator(":focus").getAttribute("id"), "card_number")
  })

  it.each<[string, string, Array<string>]>([
    ["the security code", "4000000000000127", ["card_cvc"]],
    ["the expiry date", "4000000000000069", ["card_expiry"]],
    ["nothing", "4000000000000119", []],
    ["the whole card", CARDS.declined, ["card_number", "card_expiry", "card_cvc"]]
  ])("pages.declines: empties only what has to be typed again: %s", async (_, number, again) => {
    const session = await newSession()
    const { page } = await open(session)
    await fill(page, number)
    await payButton(page).click()
    await page.getByText("You have not been charged.").waitFor()
    const fields = page.locator(".card input")
    const empty = await fields.evaluateAll((all) =>
      all.flatMap((field) => ((field as HTMLInputElement).value === "" ? [field.id] : []))
    )
    assert.deepStrictEqual(empty, again)
    assert.strictEqual(await page.locator("#brand").textContent(), again.includes("card_number") ? "" : "Visa")
    await fillCard(page)
    await payButton(page).click()
    await atShop(page, session)
  })

  it("keeps the card if the server refuses another field", async () => {
    const session = await newSession()
    const { page } = await open(session)
    await fill(page)
    // The script does not count a name's characters.
    await page.getByLabel("Full name").fill("n".repeat(257))
    await payButton(page).click()
    await page.getByText("Enter a name of at most 256 characters.").waitFor()
    assert.strictEqual(await page.getByLabel("Card number").inputValue(), "4242 4242 4242 4242")
    await page.getByLabel("Full name").fill("Ana Lima")
    await payButton(page).click()
    await atShop(page, session)
  })

  it("shows that it is paid if the success_url opens an app", async () => {
    const session = await newSession({ success_url: "shop-app://paid/{CHECKOUT_SESSION_ID}" })
    const { page } = await open(session)
    await fill(page)
    await payButton(page).click()
    await page.getByRole("heading", { name: "This order is paid" }).waitFor()
    const link = page.getByRole("link", { name: "Go back to Lumen Coffee" })
    assert.strictEqual(await link.getAttribute("href"), `shop-app://paid/${session.id}`)
  })

  it("cannot be framed by another site", async () => {
    const session = await newSession()
    const { page } = await open({ url: `${shop.url}/frame?${encodeURIComponent(session.url)}` })
    const frame = page.frames()[1]!
    assert.notInclude(await frame.content(), "House Espresso")
  })

  it("runs no code in a merchant's texts", async () => {
    const hostile = `"><script>alert(1)</script><img src=x onerror="alert(2)"><svg onload="alert(3)">'`
    const product = await server.post("/v1/products", { name: hostile })
    const line_items = [{ price_data: { currency: "usd", product: product.id, unit_amount: 100 } }]
    const session = await newSession({ line_items, customer_email: `"><script>@example.com` })
    const { complaints, page } = await open(session)
    await page.getByText(hostile).waitFor()
    assert.strictEqual(await page.locator("img, svg:not(.pay svg)").count(), 0)
    assert.deepStrictEqual(complaints, [])
  })

  describe.each([
    ["a desk", { viewport: { width: 1280, height: 900 } }],
    ["a phone in the dark", { viewport: { width: 360, height: 740 }, colorScheme: "dark" }],
    ["a phone in forced colours", { viewport: { width: 360, height: 740 }, forcedColors: "active" }],
    ["a phone with large text", { viewport: { width: 390, height: 844 }, textPixels: 32 }]
  ] satisfies ReadonlyArray<readonly [string, BrowserContextOptions & { readonly textPixels?: number }]>)(
    "on %s",
    (_, given) => {
      const { textPixels, ...options } = given as BrowserContextOptions & { readonly textPixels?: number }
      const requireGood = async (page: Page, state: string) => {
        assert.isFalse(await overflows(page), `${state} is too wide`)
        assert.deepStrictEqual(await accessibilityProblems(page), [], state)
      }

      it("is accessible and fits in every state", async () => {
        const name = `A remarkably long product name with a Wordthatdoesnotendbeforethewindowdoes${"x".repeat(60)}`
        const long = await server.post("/v1/products", { name })
        const line_items = [
          { price_data: { currency: "usd", product: long.id, unit_amount: 999_999_999 }, quantity: 3 }
        ]
        const session = await newSession({ billing_address_collection: "required", line_items })
        const { page } = await open(session, options)
        if (textPixels !== undefined) await setTextSize(page, textPixels)
        await requireGood(page, "open")
        await page.getByText("Test cards").click()
        await requireGood(page, "with test cards")
        await payButton(page).click()
        await requireGood(page, "with errors")
        await server.post(`/v1/checkout_sessions/${session.id}/expire`, {})
        await page.reload()
        await requireGood(page, "expired")

        const other = await newSession({ customer_email: "ana@example.com" })
        await page.goto(other.url)
        await fillCard(page, CARDS.declined)
        await payButton(page).click()
        await page.getByText("Your card was declined.").waitFor()
        await requireGood(page, "declined")
        await fillCard(page, CARDS.challenged)
        await payButton(page).click()
        await page.getByRole("heading", { name: "Confirm your payment" }).waitFor()
        await requireGood(page, "challenged")
        await page.getByRole("button", { name: "Complete authentication" }).click()
        await atShop(page, other)
        await page.goto(other.url)
        await requireGood(page, "paid")
        await page.goto(`${server.url}/checkout/cs_unknown`)
        await requireGood(page, "unknown")
      })
    }
  )

  describe.each(PAGE_LANGUAGES)("pages.languages: in %s", (language) => {
    const { direction } = new Translation(language, language)
    const text = (key: TextKey) => CATALOGUES[language][key]

    it("is paid, accessible and as wide as a phone, with what the script writes in the language, too", async () => {
      const line_items = [await customLine(), { price_data: { ...(await goods()), unit_amount: 1200 }, quantity: 3 }]
      const session = await newSession({
        line_items,
        locale: language,
        billing_address_collection: "required",
        phone_number_collection: { enabled: true }
      })
      const { complaints, page } = await open(session, { locale: "sv-SE", viewport: { width: 360, height: 740 } })
      assert.strictEqual(await page.evaluate(() => getComputedStyle(document.body).direction), direction)
      await page.locator("#country").selectOption("US")
      await page.locator("#amount").fill("x")
      await page.locator("button.pay").click()
      const errors = await page.locator(".error:not(:empty)").allTextContents()
      assert.includeMembers(errors, [
        text("contact.email_missing"),
        text("contact.phone_missing"),
        text("card.number_missing"),
        new Translation(language, language).text("address.missing", { name: text("part.zip") })
      ])
      assert.strictEqual(errors.length, 10)
      assert.isFalse(await overflows(page))
      assert.deepStrictEqual(await accessibilityProblems(page), [])
      for (const [field, value] of Object.entries({
        amount: "5",
        email: "ana@example.com",
        phone: "+1 555",
        line1: "1 Main St",
        city: "Reno",
        state: "NV",
        postal_code: "89501"
      })) {
        await page.locator(`#${field}`).fill(value)
      }
      await page.locator("#card_number").fill(CARDS.declined)
      await page.locator("#card_expiry").fill("1234")
      await page.locator("#card_cvc").fill("123")
      await page.locator("button.pay").click()
      await page.getByText(text("failure.card_declined")).waitFor()
      assert.include(await page.title(), text("checkout.title").split("{")[0]!.trim())
      assert.deepStrictEqual(await accessibilityProblems(page), [])
      await page.locator("#card_number").fill(CARDS.challenged)
      await page.locator("#card_expiry").fill("1234")
      await page.locator("#card_cvc").fill("123")
      await page.locator("button.pay").click()
      await page.getByRole("heading", { name: text("authentication.title") }).waitFor()
      assert.isFalse(await overflows(page))
      assert.deepStrictEqual(await accessibilityProblems(page), [])
      await page.getByRole("button", { name: text("authentication.complete") }).click()
      await atShop(page, session)
      await page.goto(session.url)
      await page.getByRole("heading", { name: text("paid.title") }).waitFor()
      assert.isFalse(await overflows(page))
      assert.deepStrictEqual(complaints, [])
    })
  })

  it("pages.languages: writes digits from left to right in a page from right to left", async () => {
    const { page } = await open(await newSession({ locale: "ar" }))
    await page.locator("#card_number").fill("4242424242424242")
    for (const field of ["email", "card_number", "card_expiry", "card_cvc"]) {
      assert.strictEqual(await page.locator(`#${field}`).evaluate((input) => getComputedStyle(input).direction), "ltr")
    }
    const [number, mark] = [
      await page.locator("#card_number").boundingBox(),
      await page.locator("#brand").boundingBox()
    ]
    assert.isBelow(mark!.x, number!.x + number!.width / 2)
  })

  it("takes three requests", async () => {
    const session = await newSession({ billing_address_collection: "required" })
    const context = await browser.newContext({ locale: "en-US" })
    const page = await context.newPage()
    const loaded: Array<string> = []
    page.on("request", (request) => {
      if (!request.url().startsWith("data:")) loaded.push(request.url())
    })
    await page.goto(session.url, { waitUntil: "networkidle" })
    assert.strictEqual(loaded.length, 3, loaded.join(" "))
  })

  it("detects accessibility problems", async () => {
    const { page } = await open(await newSession())
    await page.evaluate(() => document.querySelector("label")?.remove())
    const problems = await accessibilityProblems(page)
    assert.isTrue(
      problems.some((problem) => problem.startsWith("label: ")),
      problems.join()
    )
    assert.isFalse(await overflows(page))
    await page.evaluate(() => (document.querySelector("main")!.style.minWidth = "3000px"))
    assert.isTrue(await overflows(page))
  })

  it.each([
    ["a small phone", 320, 16],
    ["large text", 360, 32]
  ])("covers no digit with the card's brand: %s", async (_, width, textPixels) => {
    const { page } = await open(await newSession(), { viewport: { width, height: 740 } })
    await setTextSize(page, textPixels)
    const number = page.getByLabel("Card number")
    await number.fill("378282246310005")
    const [field, scheme] = [(await number.boundingBox())!, (await page.locator("#brand").boundingBox())!]
    assert.isAtMost(scheme.y + scheme.height, field.y)
    const label = await page.evaluate(() => {
      const text = document.createRange()
      text.selectNodeContents(document.querySelector("label[for=card_number]")!)
      return text.getBoundingClientRect().right
    })
    assert.isAtLeast(scheme.x, label)
    // The field's own text grows too, and is not cut off on a phone.
    const input = await number.evaluate((element) => [getComputedStyle(element).fontSize, element.scrollWidth] as const)
    assert.strictEqual(input[0], `${textPixels}px`)
    if (textPixels === 16) assert.isAtMost(input[1], field.width)
  })

  it.each([
    ["usd", 2450],
    ["usd", 123_456_789],
    ["idr", 1_250_000_000],
    ["usd", 999_999_999_000],
    ["idr", 999_999_999_999]
  ])("breaks no amount and no name inside: %s %i", async (currency, amount) => {
    const product = await server.post("/v1/products", { name: "House Espresso" })
    const line_items = [{ price_data: { currency, product: product.id, unit_amount: amount } }]
    const { page } = await open(await newSession({ line_items }), { viewport: { width: 320, height: 740 } })
    await page.locator(".order summary").click()
    for (const width of [320, 360, 390, 896, 1280]) {
      await page.setViewportSize({ width, height: 740 })
      // On a phone the total is in the summary line of the order.
      const total = page.locator(width < 896 ? ".order summary strong" : ".total strong")
      const [lines, text] = await total.evaluate((element) => {
        const text = document.createRange()
        text.selectNodeContents(element)
        return [text.getClientRects().length, element.textContent] as const
      })
      const where = `${text} at ${width} px`
      assert.strictEqual(lines, 1, where)
      assert.isFalse(await overflows(page), where)
      // The amount leaves room for the item's name.
      assert.isAtLeast((await page.locator(".what").boundingBox())!.width, 9 * 16, where)
    }
  })

  it("shows the button's outline without colours", async () => {
    const { page } = await open(await newSession(), { forcedColors: "active" })
    const [style, color, background] = await payButton(page).evaluate((button) => {
      const { backgroundColor, borderTopColor, borderTopStyle } = getComputedStyle(button)
      return [borderTopStyle, borderTopColor, backgroundColor]
    })
    assert.strictEqual(style, "solid")
    assert.notStrictEqual(color, background)
  })

  it("writes a name from right to left beside an amount from left to right", async () => {
    const product = await server.post("/v1/products", { name: "קפה שחור!" })
    const line_items = [{ price_data: { currency: "usd", product: product.id, unit_amount: 100 } }]
    const { page } = await open(await newSession({ line_items }))
    const [first, last] = await page.getByText(product.name).evaluate((element) => {
      const text = element.firstChild!
      return [0, text.textContent!.length - 1].map((index) => {
        const character = document.createRange()
        character.setStart(text, index)
        character.setEnd(text, index + 1)
        return character.getBoundingClientRect().x
      }) as [number, number]
    })
    assert.isBelow(last, first)
  })

  it("is dark in dark mode", async () => {
    const brightness = async (colorScheme: "light" | "dark") => {
      const { page } = await open(await newSession(), { colorScheme })
      const color = await page.evaluate(() => getComputedStyle(document.body).backgroundColor)
      return [...color.matchAll(/\d+/g)].slice(0, 3).reduce((sum, [part]) => sum + Number(part), 0)
    }
    assert.isBelow(await brightness("dark"), 100)
    assert.isAbove(await brightness("light"), 600)
  })

  it.each([
    ["on a desk", { viewport: { width: 1280, height: 800 } }],
    ["on a phone, in the dark", { viewport: { width: 360, height: 740 }, colorScheme: "dark" }]
  ] as const)("keys.live_processor: says that a shop cannot take cards yet, %s", async (_, options) => {
    const parameters = { success_url: `${shop.url}/thanks`, cancel_url: `${shop.url}/cart` }
    const session = await openSession(server, parameters, { key: server.secretLive })
    const { complaints, page } = await open(session, options)
    const said = page.getByRole("region", { name: "This shop cannot take cards yet" })
    await said.waitFor()
    assert.strictEqual(await page.getByRole("textbox").count(), 0)
    assert.isFalse(await overflows(page))
    assert.deepStrictEqual(await accessibilityProblems(page), [])
    await said.getByRole("link", { name: "Go back to" }).click()
    await page.waitForURL(`${shop.url}/cart`)
    assert.deepStrictEqual(complaints, [])
  })
})

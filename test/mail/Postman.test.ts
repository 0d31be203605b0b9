/**
 * Mails of a whole Till over a real mail server (semantics mail.receipts, mail.receipts_by_hand, mail.shown): receipts
 * of payments, repetition after refusals, and what the dashboard shows of them.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Transaction } from "../../src/engine/actor/Transaction.ts"
import * as Receipts from "../../src/payments/mail/Receipts.ts"
import { type Answer, type RunningMailServer, startMailServer } from "../support/MailServer.ts"
import { type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { filledIn, openSession, send, tokenIn, visit } from "../support/fixtures/CheckoutPages.ts"
import { formTo, signedIn, type Tab } from "../dashboard/People.ts"
import { textOf } from "../dashboard/support.ts"

let mails: RunningMailServer
let till: MemoryTillWithPages
let tab: Tab
let answer: Answer = null
let recipientAnswer: (address: string) => Answer = () => null

beforeAll(async () => {
  mails = await startMailServer({ onData: () => answer, onRecipient: (address) => recipientAnswer(address) })
  const from = { name: "Till", address: "till@pay.example" }
  till = await start({ mail: { server: mails.server, from }, liveProcessor: "simulator" })
  tab = await signedIn(till)
})
afterAll(async () => {
  await till.close()
  await mails.close()
})

const run = <A, E>(account: string, command: Effect.Effect<A, E, Transaction>): Promise<A> =>
  Effect.runPromise(till.accounts.run(account, command) as Effect.Effect<A>)

const live = () => `${till.merchantId}:live`
const test = () => `${till.merchantId}:test`

/** Moves the clock of the test environment, so that due attempts begin. */
const wait = (seconds: number) =>
  run(
    test(),
    Effect.map(Transaction, (transaction) => transaction.advanceClock(seconds * 1000))
  )

const submit = async (path: string, end: string, entered: Readonly<Record<string, string>> = {}) => {
  const { action, values } = formTo(await tab.get(path), end)
  return await tab.post(action, { ...values, ...entered })
}

/** The mails to an address so far. */
const to = (address: string) => mails.received.filter((mail) => mail.to.includes(address))

const until = async (isDone: () => boolean | Promise<boolean>): Promise<void> => {
  for (let tries = 0; tries < 1000; tries++) {
    if (await isDone()) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error("It did not happen in ten seconds")
}

/** A card whose payments succeed, or are declined; live mode has no ready-made payment methods. */
const card = (number = "4242424242424242") => ({
  payment_method_data: { type: "card", card: { number, exp_month: 12, exp_year: 2040, cvc: "123" } }
})

const pay = (key: string, parameters: object = {}) =>
  till.post("/v1/payment_intents", { amount: 1250, currency: "eur", ...card(), confirm: true, ...parameters }, { key })

const customer = async (email: string | null, key = till.secretLive) =>
  (await till.post("/v1/customers", email === null ? {} : { email }, { key })).id as string

/** Pays a live checkout session in a language. */
const checkOut = async (email: string, locale: string | undefined) => {
  const key = till.secretLive
  const { default_price } = await till.post(
    "/v1/products",
    { name: "Tea <b>strong</b>", default_price_data: { currency: "eur", unit_amount: 450 } },
    { key }
  )
  const session = await till.post(
    "/v1/checkout_sessions",
    {
      mode: "payment",
      success_url: "https://shop.example/",
      customer_email: email,
      line_items: [{ price: default_price, quantity: 3 }],
      ...(locale !== undefined && { locale })
    },
    { key }
  )
  return await till.post(
    `/v1/checkout_sessions/${session.id}/confirm`,
    { ...card(), client_secret: session.client_secret },
    { key }
  )
}

describe("receipts", () => {
  it("are off until they are turned on, and then go to every payer of a live payment who gave an address", async () => {
    await pay(till.secretLive, { customer: await customer("early@example.com") })
    const page = await submit("/dashboard/test/developers/mail", "/set", { receipts: "on" })
    assert.include(textOf(page), "Saved.")
    assert.include(page.text, '<option value="on" selected')
    await pay(till.secretLive, { customer: await customer("payer@example.com") })
    await until(() => to("payer@example.com").length === 1)
    // Neither a guest nor a customer without an address has one, and a declined payment is none.
    await pay(till.secretLive)
    await pay(till.secretLive, { customer: await customer(null) })
    await pay(till.secretTest, { customer: await customer("test@example.com", till.secretTest) })
    const declined = { customer: await customer("poor@example.com"), ...card("4000000000000002") }
    await till.post(
      "/v1/payment_intents",
      { amount: 1250, currency: "eur", confirm: true, ...declined },
      { key: till.secretLive, status: 402 }
    )
    await pay(till.secretLive, { customer: await customer("last@example.com") })
    await until(() => to("last@example.com").length === 1)
    assert.deepStrictEqual(
      mails.received.map((mail) => mail.to[0]),
      ["payer@example.com", "last@example.com"]
    )
    const { from, headers, text } = to("payer@example.com")[0]!
    assert.strictEqual(from, "till@pay.example")
    assert.strictEqual(headers.get("from"), "Lumen Coffee <till@pay.example>")
    assert.strictEqual(headers.get("subject"), "Your receipt from Lumen Coffee")
    for (const part of ["You paid €12.50 to Lumen Coffee.", "Total: €12.50", "Card: Visa •••• 4242"]) {
      assert.include(text, part)
    }
    assert.notInclude(text, "Test mode")
  })

  it("have the language of their Checkout Session and its lines, and the brand", async () => {
    await checkOut("kundin@example.com", "de")
    await checkOut("arabic@example.com", "ar")
    await checkOut("auto@example.com", undefined)
    await until(() =>
      ["kundin@example.com", "arabic@example.com", "auto@example.com"].every((each) => to(each).length === 1)
    )
    const german = to("kundin@example.com")[0]!
    assert.strictEqual(german.headers.get("subject"), "Ihr Beleg von Lumen Coffee")
    assert.include(german.text, "Sie haben 13,50\u00a0€ an Lumen Coffee bezahlt.".replace("\u00a0", " "))
    assert.include(german.text, "Tea <b>strong</b> × 3: 13,50")
    assert.include(german.html, '<html lang="de" dir="ltr">')
    assert.include(german.html, "Tea &lt;b&gt;strong&lt;/b&gt; × 3")
    const arabic = to("arabic@example.com")[0]!
    assert.include(arabic.html, '<html lang="ar" dir="rtl">')
    assert.include(arabic.headers.get("subject")!, "إيصالك")
    assert.include(to("auto@example.com")[0]!.text, "You paid")
  })

  it("have the language in which the payer saw the checkout page", async () => {
    const session = await openSession(till, { locale: "auto" }, { currency: "eur", key: till.secretLive })
    const language = { "accept-language": "fr-CH, en;q=0.5" }
    const page = await visit(session.url, language)
    await send(session.url, { token: tokenIn(page.text), ...filledIn(), email: "payeuse@example.com" }, language)
    await until(() => to("payeuse@example.com").length === 1)
    const { headers, text } = to("payeuse@example.com")[0]!
    assert.strictEqual(headers.get("subject"), "Votre reçu de Lumen Coffee")
    assert.match(text, /House Espresso: 24,50\s€/u)
  })

  it("are sent once each, whatever happens to the payment afterwards", async () => {
    const { id } = await pay(till.secretLive, {
      customer: await customer("once@example.com"),
      capture_method: "manual"
    })
    assert.lengthOf(to("once@example.com"), 0)
    await till.post(`/v1/payment_intents/${id}/capture`, {}, { key: till.secretLive })
    await until(() => to("once@example.com").length === 1)
    await till.post("/v1/refunds", { payment_intent: id, amount: 250 }, { key: till.secretLive })
    await till.post(`/v1/payment_intents/${id}`, { metadata: { order: "1" } }, { key: till.secretLive })
    const page = await tab.get(`/dashboard/live/payments/${id}`)
    assert.include(textOf(page), "once@example.com sent")
    assert.lengthOf(to("once@example.com"), 1)
  })

  it("end with the setting", async () => {
    await submit("/dashboard/live/developers/mail", "/set", { receipts: "off" })
    await pay(till.secretLive, { customer: await customer("late@example.com") })
    await run(live(), Receipts.setReceipts(true))
    await pay(till.secretLive, { customer: await customer("after@example.com") })
    await until(() => to("after@example.com").length === 1)
    assert.lengthOf(to("late@example.com"), 0)
  })
})

describe("a receipt by hand", () => {
  const sendBy = async (address: string) => {
    const { id } = await pay(till.secretTest)
    const path = `/dashboard/test/payments/${id}`
    const page = await submit(path, "/receipt", { email: address })
    assert.include(textOf(page), "The receipt is on its way.")
    return path
  }
  const statusOf = async (path: string) => textOf(await tab.get(path))

  it("goes to the entered address, also in test mode, where it says so", async () => {
    await sendBy("hand@example.com")
    await until(() => to("hand@example.com").length === 1)
    const { html, text } = to("hand@example.com")[0]!
    for (const form of [html, text]) assert.include(form, "Test mode: No real money moves.")
  })

  it("is refused for an address that is none, and absent on payments that have not succeeded", async () => {
    const { id } = await pay(till.secretTest)
    const wrong = await submit(`/dashboard/test/payments/${id}`, "/receipt", { email: "a@example.com, b@example.com" })
    assert.strictEqual(wrong.status, 400)
    assert.include(textOf(wrong), "Enter an email address.")
    const open = await till.post("/v1/payment_intents", { amount: 100, currency: "usd" })
    assert.notInclude((await tab.get(`/dashboard/test/payments/${open.id}`)).text, "/receipt")
  })

  it("that the server refuses for now is sent again, as the same mail, and its page says what happens", async () => {
    answer = 451
    const path = await sendBy("grey@example.com")
    await until(async () => (await statusOf(path)).includes("The mail server answered: 451"))
    assert.match(await statusOf(path), /grey@example\.com pending/)
    answer = null
    await wait(60)
    await until(async () => (await statusOf(path)).includes("grey@example.com sent"))
    const [first, second, ...more] = to("grey@example.com").map(({ headers }) => headers.get("message-id"))
    assert.strictEqual(first, second)
    assert.lengthOf(more, 0)
    assert.notInclude(await statusOf(path), "451")
  })

  it("that the server refuses for good is given up at once, and its page says why", async () => {
    recipientAnswer = (address) => (address === "gone@example.com" ? 550 : null)
    const path = await sendBy("gone@example.com")
    await until(async () => (await statusOf(path)).includes("gone@example.com failed"))
    assert.include(await statusOf(path), "The mail server answered: 550 refused with 550")
    await wait(7 * 24 * 3600)
    assert.lengthOf(to("gone@example.com"), 0)
  })

  it("whose connection was cut after its last byte is sent again as the same mail", async () => {
    answer = "cut"
    const path = await sendBy("cut@example.com")
    await until(() => to("cut@example.com").length === 1)
    await until(async () => (await statusOf(path)).includes("cut@example.com pending The connection"))
    answer = null
    await wait(60)
    await until(async () => (await statusOf(path)).includes("cut@example.com sent"))
    const ids = new Set(to("cut@example.com").map(({ headers }) => headers.get("message-id")))
    assert.strictEqual(ids.size, 1)
  })

  it("is sent once when time passes during its attempt", async () => {
    await sendBy("busy@example.com")
    for (let i = 0; i < 5; i++) await wait(600)
    await until(() => to("busy@example.com").length > 0)
    await wait(3600)
    assert.lengthOf(to("busy@example.com"), 1)
  })

  it("and many more at once all arrive", async () => {
    const { id } = await pay(till.secretTest)
    const addresses = Array.from({ length: 60 }, (_, i) => `many${i}@example.com`)
    await Promise.all(addresses.map((address) => run(test(), Effect.orDie(Receipts.send(id, address)))))
    await until(() => addresses.every((address) => to(address).length === 1))
    const ids = addresses.map((address) => to(address)[0]!.headers.get("message-id"))
    assert.strictEqual(new Set(ids).size, addresses.length)
  })
})

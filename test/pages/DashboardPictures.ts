/** The pictures of the dashboard in README.md: a shop's week in test mode, made through the API of a real service. */
import { Effect } from "effect"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import type { Browser, Page } from "playwright-core"
import { signInBy } from "../dashboard/People.ts"
import { startTill, till, type TillProcess, until } from "../support/TillProcess.ts"

const DAYS = 7
const DAY_SECONDS = 86_400
/** Payments of each day, and how many of them are declined. */
const PAYMENTS = [11, 9, 13, 12, 9, 11, 10] as const
const DECLINED = [4, 2, 0, 2, 1, 2, 0] as const
const BASKETS = [1450, 2450, 3800, 5200, 6100, 2900] as const

/** A shop's receivers of webhooks: one that works, and one that answers with an error. */
const startReceivers = async (): Promise<{ readonly server: Server; readonly url: string }> => {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(request.url === "/webhooks" ? 204 : 500).end()
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return { server, url: `http://localhost:${(server.address() as AddressInfo).port}/webhooks` }
}

/** Sends a payment, which may be declined. */
const pay = (server: TillProcess, parameters: object) =>
  server.request("POST", "/v1/payment_intents", {
    body: { currency: "usd", payment_method: "pm_card_visa", confirm: true, ...parameters }
  })

const week = async (server: TillProcess, url: string): Promise<string> => {
  const all = { url, enabled_events: ["*"] }
  const stock = { url: `${url}/stock`, enabled_events: ["payment_intent.succeeded", "charge.refunded"] }
  for (const endpoint of [all, stock]) await server.post("/v1/webhook_endpoints", endpoint)
  for (let day = 0; day < DAYS; day++) {
    for (let number = 0; number < PAYMENTS[day]!; number++) {
      const amount = BASKETS[(day + 2 * number) % BASKETS.length]!
      const reason = number % 3 === 0 ? "pm_card_expired" : "pm_card_insufficient_funds"
      await pay(server, { amount, ...(number < DECLINED[day]! && { payment_method: reason }) })
    }
    if (day === 0) {
      const { body } = await pay(server, { amount: 4350 })
      await server.post("/v1/refunds", { payment_intent: body.id })
    }
    if (day === 3) await pay(server, { amount: 5900, currency: "eur" })
    if (day < DAYS - 1) await server.post("/v1/test_helpers/clock/advance", { seconds: DAY_SECONDS })
  }
  await pay(server, { amount: 7800, capture_method: "manual" })
  return await order(server)
}

/** A payment that is declined first, then made with another card, then refunded in part. Returns its ID. */
const order = async (server: TillProcess): Promise<string> => {
  const customer = await server.post("/v1/customers", { name: "Ada Lindqvist", email: "ada@lindqvist.example" })
  const description = "Order 1124: Grinder, espresso, tasting set"
  const { id } = await server.post("/v1/payment_intents", {
    amount: 15_300,
    currency: "usd",
    customer: customer.id,
    description
  })
  const confirm = (payment_method: string, idempotencyKey: string) =>
    server.request("POST", `/v1/payment_intents/${id}/confirm`, { body: { payment_method }, idempotencyKey })
  await confirm("pm_card_insufficient_funds", "order-1124-pay")
  await confirm("pm_card_mastercard", "order-1124-again")
  const refund = { payment_intent: id, amount: 3800, reason: "requested_by_customer" }
  await server.post("/v1/refunds", refund, { idempotencyKey: "refund-1124" })
  return id
}

/** Signs in as the owner. */
const signIn = async (page: Page, server: TillProcess) => {
  const [, link] = /(http:\S+\/dashboard\/link\/\S+)/u.exec((await till(["dashboard"], server.variables)).stdout)!
  await signInBy(page, link!)
}

/** Shoots the home page and a payment's page. */
export const dashboardPictures = (browser: Browser, folder: string): Promise<void> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* startTill()
        const { url, server: receivers } = yield* Effect.promise(startReceivers)
        yield* Effect.promise(async () => {
          const listed = JSON.parse((await till(["merchants", "list", "--json"], server.variables)).stdout)
          const [merchant] = listed.merchants
          await till(["merchants", "rename", merchant.id, "Lumen Coffee"], server.variables)
          const payment = await week(server, url)
          const context = await browser.newContext({
            locale: "en-US",
            timezoneId: "UTC",
            reducedMotion: "reduce",
            viewport: { width: 1280, height: 900 }
          })
          const page = await context.newPage()
          await signIn(page, server)
          await page.goto(`${server.baseUrl}/dashboard/test/payments/${payment}`)
          await until("all webhooks were sent", async () => {
            await page.reload()
            return !/Pending|Sending/u.test(await page.locator("main").innerText())
          })
          await page.screenshot({ path: `${folder}/dashboard-payment.png` })
          await page.setViewportSize({ width: 1280, height: 960 })
          await page.goto(`${server.baseUrl}/dashboard/test`)
          await page.getByText("Updates live").waitFor()
          await page.screenshot({ path: `${folder}/dashboard-home.png` })
          await context.close()
        })
        receivers.close()
      })
    )
  )

/** The steps of a merchant's shop and of its payers, for tests of pages. */
import type { Answer, PagesServer } from "./PagesServer.ts"

/** A session for coffee of 24.50 dollars, unless said otherwise. */
export const openSession = async (
  { post, secretTest, url }: PagesServer,
  parameters: Readonly<Record<string, unknown>> = {},
  { amount = 2450, currency = "usd", name = "House Espresso", key = secretTest } = {}
): Promise<Answer> => {
  const product = await post("/v1/products", { name }, { key })
  const body = {
    mode: "payment",
    // A page of Till's own that is never paid for stands for the shop's.
    success_url: `${url}/healthz?session={CHECKOUT_SESSION_ID}`,
    cancel_url: `${url}/healthz?canceled`,
    line_items: [{ price_data: { currency, product: product.id, unit_amount: amount } }],
    ...parameters
  }
  return post("/v1/checkout_sessions", body, { key })
}

export const CARDS = {
  approved: "4242424242424242",
  declined: "4000000000000002",
  insufficientFunds: "4000000000009995",
  challenged: "4000000000003220",
  challengedThenDeclined: "4000008260003178",
  processing: "4000000000006017",
  processingThenDeclined: "4000000000006025",
  faulty: "4000000000006033"
} as const

/** A form filled in as it should be. */
export const filledIn = (number: string = CARDS.approved): Record<string, string> => ({
  email: "ana@example.com",
  name: "Ana Lima",
  card_number: number,
  card_expiry: "12 / 34",
  card_cvc: "123"
})

/** Opens an address as a browser without script does, but follows no redirect. */
export const visit = async (url: string, headers: Readonly<Record<string, string>> = {}) => {
  const response = await fetch(url, { redirect: "manual", headers })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** Sends a form as a browser does. */
export const send = async (
  url: string,
  values: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {}
) => {
  const response = await fetch(url, {
    method: "POST",
    redirect: "manual",
    headers: { "content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin", ...headers },
    body: new URLSearchParams(values).toString()
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** The token of the form in a page. */
/** The hidden fields of a page's form. */
export const formIn = (page: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...page.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(([, name, value]) => [name!, value!])
  )

export const tokenIn = (page: string): string => {
  const found = /name="token" value="([^"]+)"/.exec(page)?.[1]
  if (found === undefined) throw new Error(`No form: ${page}`)
  return found
}

/** The addresses of a page's links. */
export const linksIn = (page: string): ReadonlyArray<string> =>
  [...page.matchAll(/<a [^>]*href="([^"]+)"/g)].map(([, address]) => address!)

/** Opens a session's page and sends its form. */
export const pay = async (session: Answer, values: Readonly<Record<string, string>> = filledIn()) =>
  send(session.url, { token: tokenIn((await visit(session.url)).text), ...values })

/** Opens the page of a challenge and answers. */
export const answerChallenge = async (url: string, outcome: string) =>
  send(url.split("?")[0]!, { ...formIn((await visit(url)).text), outcome })

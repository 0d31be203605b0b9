/**
 * The part of a corpus that the API cannot make: people with passwords and a second factor, mails, notes, a logo and
 * the audit log, made by the forms of the dashboard as a browser sends them; visits of a payment link; and a processor.
 */
import { Redacted } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import * as Totp from "../../src/domain/Totp.ts"
import { formTo, openTab, type Tab } from "../dashboard/People.ts"
import type { ExampleGateway } from "../processors/protocol/ExampleGateway.ts"
import { formIn, send, visit } from "../support/fixtures/CheckoutPages.ts"
import { png } from "../support/fixtures/Images.ts"
import type { RunningMailServer } from "../support/MailServer.ts"
import { KEYS, till, type TillProcess, until } from "../support/TillProcess.ts"

const PASSWORD = "correct horse battery"
const OWNER = "owner@shop.example"
const CARD = { type: "card", card: { number: "4242424242424242", exp_month: 12, exp_year: 2040, cvc: "123" } }

const command = async (server: TillProcess, ...args: ReadonlyArray<string>): Promise<string> => {
  const { code, stderr, stdout } = await till(args, server.variables)
  if (code !== 0) throw new Error(`till ${args.join(" ")}: ${stderr}`)
  return stdout
}

/** Sends the form of a page whose address ends like this. */
const submit = async (tab: Tab, path: string, end: string, entered: Readonly<Record<string, string | Blob>> = {}) => {
  const { action, values } = formTo(await tab.get(path), end)
  const page = await tab.post(action, { ...values, ...entered })
  if (page.status !== 200) throw new Error(`${path} ${end}: ${page.status} ${page.text}`)
  return page
}

/** Signs the first owner in, and sets email and password. */
const signIn = async (server: TillProcess): Promise<Tab> => {
  const { link } = JSON.parse(await command(server, "dashboard", "--json")) as { readonly link: string }
  const tab = openTab({ url: server.baseUrl })
  await tab.signIn(link)
  await submit(tab, "/dashboard/test/account", "/credentials", { email: OWNER, password: PASSWORD })
  return tab
}

/** Decodes base32, as an app does with an entered key. */
const bytesOf = (key: string): Uint8Array => {
  const bits = [...key.replaceAll(/\s/g, "")]
    .map((digit) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(digit).toString(2).padStart(5, "0"))
    .join("")
  return Uint8Array.from(bits.match(/.{8}/g)!, (byte) => Number.parseInt(byte, 2))
}

const turnOnTwoStep = async (tab: Tab): Promise<void> => {
  const page = await tab.get("/dashboard/test/account/two-step")
  const secret = bytesOf(/Key: <code class="copy">([A-Z2-7 ]+)</.exec(page.text)![1]!)
  const { action, values } = formTo(page, "/two-step/on")
  await tab.post(action, { ...values, code: Totp.codeOf(secret, Totp.stepAt(Date.now() / 1000)) })
}

/** Invites a person, whose mail arrives, and another one, whose mail stays pending. */
const invite = async (tab: Tab, mails: RunningMailServer): Promise<void> => {
  await submit(tab, "/dashboard/test/team", "/add", { email: "support@shop.example", role: "support" })
  const mailOf = () => mails.received.find(({ to }) => to.includes("support@shop.example"))
  await until("the invitation has arrived", () => mailOf() !== undefined)
  const link = /http:\/\/\S+\/dashboard\/link\/\S+/u.exec(mailOf()!.text)![0]
  const invited = openTab({ url: new URL(link).origin })
  await invited.signIn(link)
  await submit(invited, "/dashboard/test/account", "/credentials", {
    email: "support@shop.example",
    password: PASSWORD
  })
  await submit(invited, "/dashboard/test/account", "/time-zone", { time_zone: "Europe/Berlin" })
  await turnOnTwoStep(invited)
  await mails.close()
  await submit(tab, "/dashboard/test/team", "/add", { email: "pending@shop.example", role: "developer" })
}

/** Adds a person, who signs in and is removed, and erases the person's data. */
const part = async (server: TillProcess, tab: Tab, mails: RunningMailServer): Promise<void> => {
  const former = "former@shop.example"
  await submit(tab, "/dashboard/test/team", "/add", { email: former, role: "support" })
  const mailOf = () => mails.received.find(({ to }) => to.includes(former))
  await until("the invitation has arrived", () => mailOf() !== undefined)
  const link = /http:\/\/\S+\/dashboard\/link\/\S+/u.exec(mailOf()!.text)![0]
  await openTab({ url: new URL(link).origin }).signIn(link)
  const { text } = await tab.get("/dashboard/test/team")
  for (const [, person] of text.matchAll(/\/team\/(per_\w+)/gu)) {
    const page = `/dashboard/test/team/${person}`
    if (!(await tab.get(page)).text.includes(former)) continue
    await submit(tab, page, "/remove")
    await command(server, "erase", person!)
    return
  }
  throw new Error(`The team has nobody with the address ${former}`)
}

/** Signs in by password, so that the use of a session is noted. */
const signInAgain = async (server: TillProcess): Promise<void> => {
  const tab = openTab({ url: server.baseUrl })
  await submit(tab, "/dashboard/sign-in", "/sign-in", { email: OWNER, password: PASSWORD })
}

/** Makes a live payment with a receipt, of which a part is refunded, and a note. */
const workOnPayments = async (server: TillProcess, tab: Tab): Promise<void> => {
  const key = KEYS.secretLive
  const { id: payment_method } = await server.post("/v1/payment_methods", CARD, { key })
  const payment = { amount: 5000, currency: "usd", payment_method, confirm: true }
  const live = await server.post("/v1/payment_intents", payment, { key })
  const path = `/dashboard/live/payments/${live.id}`
  await submit(tab, path, "/notes", { text: "The payer called about the delivery." })
  await submit(tab, path, "/receipt", { email: "payer@example.com" })
  await submit(tab, path, "/refund", { amount: "12.34", reason: "requested_by_customer" })
}

/** Makes payment links, and pays for a session of one of them. */
const sellByLink = async (server: TillProcess): Promise<void> => {
  const { default_price: price } = await server.post("/v1/products", {
    name: "Lantern",
    default_price_data: { currency: "usd", unit_amount: 1250 }
  })
  const line_items = [{ price, quantity: 2, adjustable_quantity: { enabled: true } }]
  const link = await server.post("/v1/payment_links", {
    line_items,
    after_completion: { type: "redirect", redirect: { url: "https://shop.example/thanks" } },
    inactive_message: "Sold out",
    restrictions: { completed_sessions: { limit: 5 } },
    metadata: { a: "b" }
  })
  const off = await server.post("/v1/payment_links", { line_items: [{ price }] })
  await server.post(`/v1/payment_links/${off.id}`, { active: false })
  await send(link.url, formIn((await visit(link.url)).text))
  const [session] = (await server.get(`/v1/checkout_sessions?payment_link=${link.id}`)).data
  await server.post(`/v1/checkout_sessions/${session.id}/confirm`, {
    payment_method: "pm_card_visa",
    customer_details: { email: "payer@example.com", name: "Payer" }
  })
}

/**
 * Adds a processor to another merchant, so that the first one's payments stay with the simulator, and pays through it:
 * one operation has its outcome, another one waits for the payer.
 */
const addProcessor = async (server: TillProcess, gateway: ExampleGateway): Promise<void> => {
  const made = JSON.parse(await command(server, "merchants", "create", "Another shop", "--json")) as {
    readonly merchants: ReadonlyArray<{ readonly id: string }>
    readonly keys: ReadonlyArray<{ readonly secret: string; readonly type: string; readonly livemode: boolean }>
  }
  const file = Path.join(server.folder, "credentials.json")
  fs.writeFileSync(file, JSON.stringify({ secret: Redacted.value(gateway.secret) }), { mode: 0o600 })
  const merchant = made.merchants[0]!.id
  const flags = ["--mode", "test", "--kind", "http", "--url", gateway.url, "--credentials", file]
  await command(server, "processors", "add", merchant, ...flags)
  const { secret: key } = made.keys.find(({ livemode, type }) => type === "secret" && !livemode)!
  for (const token of ["tok_approve", "tok_challenge"]) {
    const payment = { amount: 700, currency: "usd", confirm: true, payment_method_data: { type: "card", token } }
    await server.post("/v1/payment_intents", payment, { key })
  }
}

export const furnish = async (
  server: TillProcess,
  mails: RunningMailServer,
  gateway: ExampleGateway
): Promise<void> => {
  const tab = await signIn(server)
  await submit(tab, "/dashboard/test/settings", "/logo", {
    logo: new Blob([png({ width: 8, height: 8 })], { type: "image/png" })
  })
  await submit(tab, "/dashboard/live/developers/mail", "/set", { receipts: "on" })
  await sellByLink(server)
  await part(server, tab, mails)
  await addProcessor(server, gateway)
  await invite(tab, mails)
  await workOnPayments(server, tab)
  await signInAgain(server)
  const isPending = async () => (await tab.get("/dashboard/test/team")).text.includes("pending@shop.example")
  await until("the team has three people", isPending)
}

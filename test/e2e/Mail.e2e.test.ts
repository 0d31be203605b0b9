/**
 * Mail of the real service through kills (semantics mail.attempts): between the record of a mail and its sending, and
 * between its sending and the record of that. The log of all of it has no address, password or link.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { once } from "node:events"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { formTo, openTab, type Tab } from "../dashboard/People.ts"
import { textOf } from "../dashboard/support.ts"
import { type MailServerOptions, type RunningMailServer, startMailServer } from "../support/MailServer.ts"
import { KEYS, startTill, till, type TillProcess, until } from "../support/TillProcess.ts"

const LOGIN = { user: "mailer@shop.example", password: "secret-of-the-mailer" }

/** Live webhooks may go to this machine. */
const WEBHOOKS = { TILL_WEBHOOK_ALLOW_PRIVATE: "true" }

/** A server that accepts connections and says nothing, on a port that the next server gets. */
const startSilent = async () => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => {})
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  const close = async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  }
  return { port, connections: () => sockets.size, close }
}

/** Kills the process, and asserts that its log keeps everything that a mail contains to itself. */
const kill = async (server: TillProcess): Promise<void> => {
  await server.kill("SIGKILL")
  for (const text of ["before@example.com", "after@example.com", LOGIN.password, "/dashboard/link/"]) {
    assert.notInclude(server.stderr, text)
  }
}

/** Lets the time of a lost attempt pass. */
const wait = (server: TillProcess) => server.post("/v1/test_helpers/clock/advance", { seconds: 301 })

const signIn = async (server: TillProcess): Promise<Tab> => {
  const { stdout } = await till(["dashboard", "--json"], server.variables)
  const { link } = JSON.parse(stdout) as { readonly link: string }
  const tab = openTab({ url: new URL(link).origin })
  await tab.signIn(link)
  return tab
}

const sendReceipt = async (server: TillProcess, tab: Tab, email: string): Promise<string> => {
  const payment = { amount: 1250, currency: "eur", payment_method: "pm_card_visa", confirm: true }
  const { id } = await server.post("/v1/payment_intents", payment)
  const path = `/dashboard/test/payments/${id}`
  const { action, values } = formTo(await tab.get(path), "/receipt")
  await tab.post(action, { ...values, email })
  return path
}

const isSent = async (tab: Tab, path: string, email: string) => textOf(await tab.get(path)).includes(`${email} sent`)

const run = async (server: TillProcess, silent: Awaited<ReturnType<typeof startSilent>>) => {
  const tab = await signIn(server)
  await notesOutage(server, tab)
  const path = await sendReceipt(server, tab, "before@example.com")
  await until("an attempt has begun", () => silent.connections() > 0)
  await kill(server)
  await silent.close()
  let answers = true
  const options: MailServerOptions = {
    port: silent.port,
    login: LOGIN,
    onData: () => (answers ? null : new Promise(() => {}))
  }
  const mails = await startMailServer(options)
  try {
    await server.start()
    await wait(server)
    await mails.waitFor(1)
    await until("the mail is recorded as sent", () => isSent(tab, path, "before@example.com"))
    await wait(server)
    answers = false
    await afterSending(server, tab, mails, () => (answers = true))
  } finally {
    await mails.close()
  }
}

/** The outcome of a live delivery is recorded with the outage that it begins. */
const notesOutage = async (server: TillProcess, tab: Tab) => {
  const live = { key: KEYS.secretLive }
  const endpoint = { url: "https://127.0.0.1:9/hooks", enabled_events: ["*"] }
  const { id } = await server.post("/v1/webhook_endpoints", endpoint, live)
  await server.post("/v1/customers", {}, live)
  await until("the outage is noted", async () =>
    textOf(await tab.get(`/dashboard/live/webhooks/${id}`)).includes("Failing since")
  )
}

/** The mail server has the mail, but the process is killed before it gets the answer. */
const afterSending = async (server: TillProcess, tab: Tab, mails: RunningMailServer, answer: () => void) => {
  const path = await sendReceipt(server, tab, "after@example.com")
  await mails.waitFor(2)
  await kill(server)
  answer()
  await server.start()
  await wait(server)
  await until("the mail is recorded as sent", () => isSent(tab, path, "after@example.com"))
  await wait(server)
  const byAddress = (email: string) =>
    mails.received.filter(({ to }) => to.includes(email)).map(({ headers }) => headers.get("message-id"))
  assert.lengthOf(byAddress("before@example.com"), 1)
  const [first, second, ...more] = byAddress("after@example.com")
  assert.match(first!, /^<mail_\w{24}@pay\.example>$/)
  assert.strictEqual(second, first)
  assert.lengthOf(more, 0)
}

describe("mail", () => {
  it.live(
    "is sent after a kill between its record and its sending, and again, as the same mail, after one behind that",
    () =>
      Effect.gen(function* () {
        const silent = yield* Effect.promise(startSilent)
        const url = new URL(`smtp://127.0.0.1:${silent.port}`)
        url.username = encodeURIComponent(LOGIN.user)
        url.password = LOGIN.password
        const variables = { TILL_SMTP_URL: url.href, TILL_MAIL_FROM: "Till <till@pay.example>", ...WEBHOOKS }
        const server = yield* startTill({ variables })
        yield* Effect.promise(() => run(server, silent))
        const verified = yield* Effect.promise(async () => {
          await server.kill("SIGTERM")
          return await till(["verify"], server.variables)
        })
        assert.strictEqual(verified.code, 0, verified.stderr)
      }),
    300_000
  )
})

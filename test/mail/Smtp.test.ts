/** Mails over a real mail server (semantics mail.attempts, mail.content, mail.server). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { createServer, type AddressInfo } from "node:net"
import { once } from "node:events"
import { ENGLISH, Translation } from "../../src/html/Translation.ts"
import { type Letter, PLAIN } from "../../src/mail/Letter.ts"
import * as Smtp from "../../src/mail/Smtp.ts"
import { type MailServerOptions, type RunningMailServer, startMailServer } from "../support/MailServer.ts"
import { AUTHORITY } from "../webhooks/Certificates.ts"

const FROM = { name: "Till", address: "till@pay.example" }

const LETTER: Letter = {
  ...PLAIN,
  translation: ENGLISH,
  subject: "A subject",
  title: "A title",
  paragraphs: ["First.", "Second."],
  button: { label: "Open", url: "https://till.example/dashboard/link/abc?to=%2Ftest%2Faccount" },
  rows: [["Tea", "€3.00"] as const],
  facts: [["Date", "today"] as const],
  notes: ["A note."],
  links: [["Support", "https://shop.example/help"] as const]
}

const message = (letter: Partial<Letter> = {}, to = "payer@example.com"): Smtp.Message => ({
  id: "mail_000000000000000000000001",
  to,
  created: 1_790_000_000,
  letter: { ...LETTER, ...letter }
})

const withServer = async (
  options: MailServerOptions,
  use: (
    server: RunningMailServer,
    send: (sent?: Smtp.Message, more?: Partial<Smtp.SmtpOptions>) => Promise<object>
  ) => Promise<void>
) => {
  const server = await startMailServer(options)
  const send = (sent = message(), more: Partial<Smtp.SmtpOptions> = {}) =>
    Effect.runPromise(Smtp.send({ server: server.server, from: FROM, certificates: AUTHORITY, ...more }, sent))
  try {
    await use(server, send)
  } finally {
    await server.close()
  }
}

const ACCEPTED = { _tag: "Accepted" }

describe("a mail", () => {
  it("arrives as plain text and as HTML, with its headers", () =>
    withServer({}, async ({ received }, send) => {
      assert.deepStrictEqual(await send(), ACCEPTED)
      const { from, headers, html, isEncrypted, text, to } = received[0]!
      assert.deepStrictEqual([from, to, isEncrypted], ["till@pay.example", ["payer@example.com"], false])
      assert.deepStrictEqual([...headers.keys()].toSorted(), [
        "auto-submitted",
        "content-type",
        "date",
        "from",
        "message-id",
        "mime-version",
        "subject",
        "to",
        "x-auto-response-suppress"
      ])
      assert.strictEqual(headers.get("message-id"), "<mail_000000000000000000000001@pay.example>")
      assert.strictEqual(headers.get("from"), "Till <till@pay.example>")
      assert.strictEqual(headers.get("to"), "payer@example.com")
      assert.strictEqual(headers.get("date"), "Mon, 21 Sep 2026 14:13:20 +0000")
      assert.strictEqual(
        text.trimEnd(),
        `A title

First.

Second.

Open:
https://till.example/dashboard/link/abc?to=%2Ftest%2Faccount

Tea: €3.00

Date: today

-- 
A note.
Support: https://shop.example/help`
      )
      for (const part of ["First.", "€3.00", 'href="https://shop.example/help"', "A note."]) assert.include(html, part)
      assert.notMatch(html, /<(?:img|script|link|iframe|object|embed|form)\b|url\(|@import|\bsrc=/iu)
    }))

  it("uses STARTTLS where it is offered, and TLS from the start with smtps", async () => {
    const login = { user: "mailer@shop.example", password: "p@ss/w:rd" }
    for (const options of [{ offersTls: true, login }, { secure: true, login }, { offersTls: true }]) {
      await withServer(options, async ({ received }, send) => {
        assert.deepStrictEqual(await send(), ACCEPTED)
        assert.isTrue(received[0]!.isEncrypted)
        assert.strictEqual(received[0]!.user, "login" in options ? login.user : null)
      })
    }
  })

  it("is tried again later if the server's certificate is not trusted, or the password is wrong", async () => {
    for (const options of [{ offersTls: true }, { secure: true }]) {
      await withServer(options, async ({ received }, send) => {
        const outcome = await send(message(), { certificates: undefined as never })
        assert.deepStrictEqual(outcome, {
          _tag: "Deferred",
          error: "No secure connection to the mail server could be made."
        })
        assert.lengthOf(received, 0)
      })
    }
    const login = { user: "mailer", password: "right" }
    await withServer({ offersTls: true, login }, async ({ received, server }, send) => {
      const outcome = await send(message(), { server: { ...server, password: Redacted.make("wrong-password") } })
      assert.deepStrictEqual(outcome, {
        _tag: "Deferred",
        error: "The mail server refused the user name or password in TILL_SMTP_URL."
      })
      assert.lengthOf(received, 0)
    })
  })

  it.each([421, 450, 451, 452])("that a server refuses for now, with %i, is tried again", (status) =>
    withServer({ onData: () => status }, async (_, send) => {
      const outcome = await send()
      assert.deepInclude(outcome, { _tag: "Deferred" })
      assert.include(JSON.stringify(outcome), `The mail server answered: ${status} refused with ${status}`)
    })
  )

  it.each([550, 552, 554])(
    "that a server refuses for good, with %i, is given up, and its reason has no link",
    (status) =>
      withServer({ onRecipient: () => status }, async ({ received }, send) => {
        const outcome = await send()
        assert.deepInclude(outcome, { _tag: "Refused" })
        const text = JSON.stringify(outcome)
        assert.include(text, `${status} refused with ${status}`)
        assert.notInclude(text, "https://")
        assert.notMatch(text, /\\[rn]/)
        assert.lengthOf(received, 0)
      })
  )

  it("whose connection is lost after its last byte is tried again under the same Message-ID", () => {
    let cuts = 1
    return withServer({ onData: () => (cuts-- > 0 ? "cut" : null) }, async ({ received }, send) => {
      assert.deepInclude(await send(), { _tag: "Deferred" })
      assert.deepStrictEqual(await send(), ACCEPTED)
      const [first, second] = received.map(({ headers }) => headers.get("message-id"))
      assert.strictEqual(first, second)
      assert.isString(first)
    })
  })

  it("is tried again if nothing listens, or if the server stays silent or speaks another protocol", async () => {
    const silent = createServer((socket) => socket.on("error", () => {}))
    silent.listen(0, "127.0.0.1")
    await once(silent, "listening")
    const { port } = silent.address() as AddressInfo
    const server = { host: "127.0.0.1", port, isSecure: false, user: null, password: Redacted.make("") }
    const send = (certificates: string) =>
      Effect.runPromise(Smtp.send({ server, from: FROM, certificates, silenceMillisMax: 100 }, message()))
    assert.deepStrictEqual(await send(AUTHORITY), {
      _tag: "Deferred",
      error: "The mail server did not answer in time."
    })
    silent.on("connection", (socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"))
    assert.deepInclude(await send(AUTHORITY), { _tag: "Deferred" })
    await new Promise((resolve) => silent.close(resolve))
    assert.deepStrictEqual(await send(AUTHORITY), {
      _tag: "Deferred",
      error: "The mail server could not be reached."
    })
  })

  it("closes its connection when it is interrupted", async () => {
    let connections = 0
    const closed: Array<Promise<unknown>> = []
    const silent = createServer((socket) => {
      connections++
      socket.on("error", () => {})
      closed.push(once(socket, "close"))
    })
    silent.listen(0, "127.0.0.1")
    await once(silent, "listening")
    const { port } = silent.address() as AddressInfo
    const server = { host: "127.0.0.1", port, isSecure: false, user: null, password: Redacted.make("") }
    await Effect.runPromise(Effect.timeoutOption(Smtp.send({ server, from: FROM }, message()), 200))
    await Promise.all(closed)
    assert.strictEqual(connections, 1)
    await new Promise((resolve) => silent.close(resolve))
  })
})

describe("texts from outside", () => {
  const HOSTILE = [
    "Shop\r\nBcc: victim@example.com",
    "Shop\nSubject: another",
    "Shop\0\u2028X-Injected: yes\u2029",
    'Shop" <spoof@example.com>, "x',
    "Shop\u202Etxet\u200B",
    `${"=?utf-8?Q?".repeat(30)}?=`,
    "ショップ 🍵 متجر"
  ]

  it.each(HOSTILE)("add no header, recipient or part: %j", (text) =>
    withServer({}, async ({ received }, send) => {
      const letter = {
        sender: text,
        subject: text,
        title: text,
        paragraphs: [text],
        replyTo: text,
        warning: text,
        rows: [[text, text] as const],
        facts: [[text, text] as const],
        notes: [text],
        translation: new Translation("ar", "ar")
      }
      assert.deepStrictEqual(await send(message(letter)), ACCEPTED)
      const { headers, raw, to } = received[0]!
      assert.deepStrictEqual(to, ["payer@example.com"])
      const head = raw.slice(0, raw.indexOf("\r\n\r\n"))
      const names = head
        .split("\r\n")
        .filter((line) => !/^[ \t]/.test(line))
        .map((line) => line.split(":", 1)[0])
      assert.deepStrictEqual(names.toSorted(), [
        "Auto-Submitted",
        "Content-Type",
        "Date",
        "From",
        "MIME-Version",
        "Message-ID",
        "Subject",
        "To",
        "X-Auto-Response-Suppress"
      ])
      assert.match(headers.get("from")!, /<till@pay\.example>$/)
      assert.lengthOf(raw.split(`--${/boundary="([^"]+)"/.exec(raw)![1]!}`), 4)
    })
  )

  it.each([
    "a@example.com,b@example.com",
    "a@example.com\r\nRCPT TO:<b@example.com>",
    "<a@example.com>",
    '"a b"@example.com',
    "a@example.com> SIZE=1",
    `${"a".repeat(65)}@example.com`,
    "not an address"
  ])("are no address: %j", (address) =>
    withServer({}, async ({ received }, send) => {
      assert.deepStrictEqual(await send(message({}, address)), {
        _tag: "Refused",
        error: "Mail cannot be sent to this address."
      })
      assert.lengthOf(received, 0)
    })
  )

  it("are escaped in HTML and stay in their line of the plain text", () =>
    withServer({}, async ({ received }, send) => {
      const evil = '<script src="https://evil.example/x.js"></script><img src=x onerror=alert(1)>\n\nTotal: €0.00'
      await send(message({ paragraphs: [evil], rows: [[evil, "€3.00"] as const], button: null }))
      const { html, text } = received[0]!
      assert.notMatch(html, /<script|<img/iu)
      assert.notMatch(text, /^Total: €0\.00/mu)
    }))
})

/**
 * The receivers of `examples/webhooks`, each run unchanged. They process each event that Till signed once, and no
 * other. The tests of a language that is not installed are skipped, with the reason in their titles.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { createHmac } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as Path from "node:path"
import { build, isThere, type Language, LANGUAGES, nameOf, Receiver } from "./ReceiverProcess.ts"

const SECRET = "whsec_4f7a0bT9xQ2mLpZrYc8VdK1sWgHjN6eU"
const ROLLED = "whsec_0ther000000000000000000000000000"

const nowSeconds = () => Math.floor(Date.now() / 1000)

const signatureOf = (body: string | Buffer, time: number, secret = SECRET): string =>
  createHmac("sha256", secret).update(`v1=${time}.`).update(body).digest("hex")

const headerOf = (body: string | Buffer, time = nowSeconds(), secret = SECRET): string =>
  `t=${time},v1=${signatureOf(body, time, secret)}`

/** Returns an event that no parser would serialize like this, so that only the original bytes verify. */
const eventText = (id: string, more = ""): string =>
  `{ "type":"payment_intent.succeeded",\n\t"id" : "${id}", "amount": 1.50e3, "name":"Zo\\u00eb Tšœ 日本 \\/ 💳"${more}}`

/** Deliveries that a receiver must reject. */
const FORGERIES: Readonly<Record<string, (body: string) => { readonly header: string | undefined; body: string }>> = {
  "no header": (body) => ({ body, header: undefined }),
  "an empty header": (body) => ({ body, header: "" }),
  "no header that can be read": (body) => ({ body, header: "=,,t,v1;=" }),
  "no time": (body) => ({ body, header: `v1=${signatureOf(body, nowSeconds())}` }),
  "no signature": (body) => ({ body, header: `t=${nowSeconds()}` }),
  "an empty signature": (body) => ({ body, header: `t=${nowSeconds()},v1=` }),
  "half a signature": (body) => ({ body, header: headerOf(body).slice(0, -32) }),
  "a signature and more": (body) => ({ body, header: `${headerOf(body)}00` }),
  "a signature that is no number": (body) => ({ body, header: `t=${nowSeconds()},v1=${"z".repeat(64)}` }),
  "a signature with another character": (body) => ({ body, header: headerOf(body).replace(/.$/u, "ä") }),
  "another scheme alone": (body) => ({ body, header: headerOf(body).replace("v1=", "v0=") }),
  "another secret": (body) => ({ body, header: headerOf(body, nowSeconds(), "whsec_wrong") }),
  "another body": (body) => ({ header: headerOf(body), body: body.replace("1.50e3", "1.51e3") }),
  "a byte more": (body) => ({ header: headerOf(body), body: `${body}\n` }),
  "another time than the signed one": (body) => {
    const time = nowSeconds()
    return { body, header: `t=${time - 1},v1=${signatureOf(body, time)}` }
  },
  "a time that is too long ago": (body) => ({ body, header: headerOf(body, nowSeconds() - 301) }),
  "a time that is yet to come": (body) => ({ body, header: headerOf(body, nowSeconds() + 360) }),
  "a time that is no number": (body) => {
    const signature = createHmac("sha256", SECRET).update(`v1=soon.${body}`).digest("hex")
    return { body, header: `t=soon,v1=${signature}` }
  },
  "a negative time": (body) => ({ body, header: headerOf(body, -nowSeconds()) })
}

const NO_REQUESTS: ReadonlyArray<string> = [
  "",
  "\r\n\r\n\r\n",
  String.fromCharCode(...Array.from({ length: 256 }, (_, byte) => byte)),
  "POST /hooks HTTP/1.1\r\n\r",
  "POST /hooks HTTP/1.1\r\nHost: a\r\nno header\r\n\r\n",
  ...["", "x", "-5", "1e3", "99999999999999999999", "100"].map(
    (length) => `POST /hooks HTTP/1.1\r\nHost: a\r\nX-Signature: t=\xff\r\nContent-Length: ${length}\r\n\r\n{}`
  )
]

const describeReceiver = (language: Language) => {
  let folder = ""
  const receivers: Array<Receiver> = []
  const start = (secrets: string) => {
    const receiver = new Receiver(language.command(folder), secrets)
    receivers.push(receiver)
    return receiver
  }

  // Hooks do not run for a language that is not installed, so nothing is created before.
  beforeAll(() => {
    folder = fs.mkdtempSync(Path.join(os.tmpdir(), "till-receiver-"))
    build(language, folder)
  }, 600_000)

  afterAll(async () => {
    await Promise.all(receivers.map((receiver) => receiver.end()))
    fs.rmSync(folder, { recursive: true })
  })

  it("processes the events that Till signed, each once", async () => {
    const receiver = start(SECRET)
    const post = (text: string, header: string, cut?: number) => {
      const bytes = Buffer.from(text)
      const pieces = cut === undefined ? [bytes] : [bytes.subarray(0, cut), bytes.subarray(cut)]
      return receiver.post({ "x-signature": header }, ...pieces)
    }
    const text = eventText("evt_1")
    assert.strictEqual(await post(text, headerOf(text)), 200)
    // Later attempts: another time and signature, within the tolerance.
    assert.strictEqual(await post(text, headerOf(text, nowSeconds() - 240)), 200)
    assert.strictEqual(await post(text, headerOf(text, nowSeconds() + 240)), 200)
    // A rolled secret also signs, in either position.
    const second = eventText("evt_2")
    const time = nowSeconds()
    const [own, other] = [signatureOf(second, time), signatureOf(second, time, ROLLED)]
    assert.strictEqual(await post(second, `t=${time},v1=${other},v1=${own}`), 200)
    assert.strictEqual(await post(second, `t=${time},v1=${own},v1=${other}`), 200)
    // A large body, cut within a character.
    const third = eventText("evt_3", `, "more": "${"é".repeat(100_000)}"`)
    assert.strictEqual(await post(third, headerOf(third), Buffer.from(third).length - 101), 200)
    // Concurrent attempts.
    const fourth = eventText("evt_4")
    const statuses = await Promise.all(Array.from({ length: 20 }, () => post(fourth, headerOf(fourth))))
    assert.deepStrictEqual(new Set(statuses), new Set([200]))
    const handled = ["evt_1", "evt_2", "evt_3", "evt_4"].map((id) => `${id} payment_intent.succeeded`)
    assert.deepStrictEqual(await receiver.end(), handled)
  })

  it("refuses everything else, and continues", async () => {
    const receiver = start(SECRET)
    const text = eventText("evt_forged")
    for (const [name, forge] of Object.entries(FORGERIES)) {
      const { body, header } = forge(text)
      const headers = header === undefined ? {} : { "x-signature": Buffer.from(header).toString("latin1") }
      assert.strictEqual(await receiver.post(headers, Buffer.from(body)), 400, name)
    }
    // A genuine signature, but a body that cannot be processed: not acknowledged either.
    for (const body of [Buffer.from(""), Buffer.from("{"), Buffer.from([0xff, 0xfe])]) {
      assert.isAtLeast(await receiver.post({ "x-signature": headerOf(body) }, body), 400, String(body))
    }
    // A receiver can refuse a body that is too long before its end.
    const long = Buffer.from(eventText("evt_long", `, "more": "${"x".repeat(2 ** 21)}"`))
    assert.isAtLeast(await receiver.post({ "x-signature": headerOf(long) }, long).catch(() => 413), 400)
    // PHP's built-in development server runs out of memory for absurd lengths.
    for (const bytes of language.isServed ? [] : NO_REQUESTS) await receiver.send(Buffer.from(bytes, "latin1"))
    const genuine = eventText("evt_genuine")
    assert.strictEqual(await receiver.post({ "x-signature": headerOf(genuine) }, Buffer.from(genuine)), 200)
    assert.deepStrictEqual(await receiver.end(), ["evt_genuine payment_intent.succeeded"])
  })

  it("accepts either of two secrets", async () => {
    const receiver = start(`${ROLLED},${SECRET}`)
    for (const [secret, status] of [
      [SECRET, 200],
      [ROLLED, 200],
      ["", 400],
      [`${ROLLED},${SECRET}`, 400]
    ] as const) {
      const body = eventText(`evt_${secret}`)
      const header = headerOf(body, nowSeconds(), secret)
      assert.strictEqual(await receiver.post({ "x-signature": header }, Buffer.from(body)), status, secret)
    }
    assert.strictEqual((await receiver.end()).length, 2)
  })

  it(`does not ${language.isServed ? "respond" : "start"} without a secret: an empty one is no secret`, async () => {
    for (const secrets of ["", ","]) {
      const receiver = start(secrets)
      if (language.isServed) {
        const body = eventText("evt_unsigned")
        const header = headerOf(body, nowSeconds(), "")
        assert.strictEqual(await receiver.post({ "x-signature": header }, Buffer.from(body)), 500)
        assert.deepStrictEqual(await receiver.end(), [])
        continue
      }
      const port = await receiver.port.catch((error: unknown) => error)
      assert.instanceOf(port, Error)
      assert.include(port.message, "TILL_WEBHOOK_SECRET")
    }
  })
}

describe.each(LANGUAGES)("the receiver", (language) => {
  describe.runIf(isThere(language))(`in ${nameOf(language)}`, () => {
    describeReceiver(language)
  })
})

/**
 * Returns the receiver of README.md, on a port that the system chooses, with the client's sources, because the package
 * may not be built.
 */
const receiverOfReadme = (): string => {
  const readme = fs.readFileSync(Path.resolve(import.meta.dirname, "../../README.md"), "utf8")
  const code = /^## Webhooks$[\s\S]*?^```ts$([\s\S]*?)^```$/mu.exec(readme)![1]!
  const listening = `.listen(0, "127.0.0.1", function () { console.log("Listening on http://127.0.0.1:" + this.address().port) })`
  assert.strictEqual(code.split(".listen(3000)").length, 2)
  const client = new URL("../../src/client/index.ts", import.meta.url)
  return code.replace(".listen(3000)", listening).replace('"till-payments-client"', JSON.stringify(client.href))
}

describe("the receiver in the README", () => {
  it("accepts only genuine webhooks", async () => {
    const args = ["--no-warnings", "--input-type=module-typescript", "--eval", receiverOfReadme()]
    const receiver = new Receiver([process.execPath, ...args], SECRET)
    try {
      const object = { id: "pi_1", object: "payment_intent", amount_received: 5000 }
      const body = JSON.stringify({ id: "evt_1", type: "payment_intent.succeeded", data: { object } })
      assert.strictEqual(await receiver.post({ "x-signature": headerOf(body) }, Buffer.from(body)), 204)
      assert.strictEqual(await receiver.post({ "x-signature": headerOf(body) }, Buffer.from(`${body} `)), 400)
      assert.strictEqual(await receiver.post({}, Buffer.from(body)), 400)
      assert.deepStrictEqual(await receiver.end(), ["evt_1 5000"])
    } finally {
      await receiver.end()
    }
  })
})

/** Editing metadata on objects' pages, without scripts (semantics dashboard.editing). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { mergeMetadata, type Metadata } from "../../../src/domain/Metadata.ts"
import type { Answer } from "../../support/MemoryTillWithPages.ts"
import { formTo, type Page, signedIn } from "../People.ts"
import { openDashboard } from "../support.ts"

/** Few keys, so that edits collide; some are properties of objects, or change in HTML and forms. */
const KEYS = ["color", "a b", "__proto__", "constructor", "%41", "line\nend", '"><i>&amp;', "größe", "+", " x "]
const VALUES = ["green", "blue", "two\nlines", " spaced ", "<b>&quot;</b>", "100%", "🙂", "a+b", "\n", "x\r\ny"]
const key = Schema.Literals(KEYS)
const entries = Schema.Array(Schema.Tuple([key, Schema.Literals(VALUES)])).check(Schema.isMaxLength(8))
/** Entered values: trimmed, with the browser's line breaks. */
const edits = Schema.Array(Schema.Tuple([key, Schema.Literals(["", "green", "blue", "two\nlines", "🙂"])])).check(
  Schema.isMaxLength(4)
)

const valueOf = (metadata: Metadata, key: string): string => (Object.hasOwn(metadata, key) ? metadata[key]! : "")
/** A value as shown in the form. */
const seen = (value: string): string => value.replaceAll(/\r\n?/g, "\n").trim()

const fieldFor = (key: string): string => `metadata[${encodeURIComponent(key)}]`

const { server, tab } = await openDashboard()

describe("metadata on the dashboard", () => {
  const customer = async (metadata: Metadata) => `${(await server.post("/v1/customers", { metadata })).id}`
  const formOf = async (id: string) => formTo(await tab.get(`/dashboard/test/customers/${id}`), "/metadata")
  const metadataOf = async (id: string): Promise<Metadata> => (await server.get(`/v1/customers/${id}`)).metadata

  /** Sends a form like browsers, which rewrite all line breaks. */
  const send = async (action: string, values: Readonly<Record<string, string>>): Promise<Page> =>
    await tab.post(
      action,
      Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.replaceAll(/\r\n?|\n/g, "\r\n")]))
    )

  /** The form with edits; edits of keys without a row go into its empty rows. */
  const filledIn = (values: Readonly<Record<string, string>>, edits: ReadonlyMap<string, string>) => {
    const filled = { ...values }
    let row = 0
    for (const [key, value] of edits) {
      if (fieldFor(key) in values) filled[fieldFor(key)] = value
      else if (value !== "" && key === key.trim() && !key.includes("\n") && row < 3) {
        filled[`new[${row}][key]`] = key
        filled[`new[${row++}][value]`] = value
      } else edits = new Map([...edits].filter(([other]) => other !== key))
    }
    return { filled, sent: edits }
  }

  it.effect.prop(
    "is changed in edited keys only, with any concurrent changes",
    { before: entries, mine: edits, theirs: edits },
    ({ before, mine, theirs }) =>
      Effect.promise(async () => {
        const opened: Metadata = Object.fromEntries(before)
        const id = await customer(opened)
        const { action, values } = await formOf(id)
        const { filled, sent } = filledIn(values, new Map(mine))
        await server.post(`/v1/customers/${id}`, { metadata: Object.fromEntries(theirs) })
        const now = mergeMetadata(opened, Object.fromEntries(theirs))
        assert.deepStrictEqual(await metadataOf(id), now)
        const changed = [...sent].filter(([key, value]) => value !== seen(valueOf(opened, key)))
        const lost = changed.filter(([key]) => seen(valueOf(now, key)) !== seen(valueOf(opened, key)))
        const page = await send(action, filled)
        if (lost.length === 0) {
          assert.strictEqual(page.status, 200)
          assert.deepStrictEqual(await metadataOf(id), mergeMetadata(now, Object.fromEntries(changed)))
          return
        }
        assert.strictEqual(page.status, 400)
        assert.deepStrictEqual(await metadataOf(id), now)
        assert.lengthOf(
          page.text.match(/class="error"[^>]*>This (?:key )?was \w+ [^<]*while you were editing/g)!,
          lost.length
        )
        // Saving again after the message overwrites. A key that exists now has its own row.
        const again = formTo(page, "/metadata")
        const [taken] = lost.filter(([key]) => !(fieldFor(key) in values))
        const second = await send(again.action, again.values)
        assert.strictEqual(second.status, taken === undefined ? 200 : 400)
        const expected = taken === undefined ? mergeMetadata(now, Object.fromEntries(changed)) : now
        assert.deepStrictEqual(await metadataOf(id), expected)
      }),
    { arbitrary: { runs: 60 } }
  )

  const pay = (parameters: object = {}): Promise<Answer> =>
    server.post("/v1/payment_intents", { amount: 4321, currency: "usd", ...parameters })

  const tea = () =>
    server.post("/v1/products", { name: "Tea", default_price_data: { currency: "usd", unit_amount: 1250 } })

  it.each<readonly [string, () => Promise<readonly [page: string, path: string]>]>([
    [
      "a payment that is canceled",
      async () => {
        const { id } = await pay()
        await server.post(`/v1/payment_intents/${id}/cancel`, {})
        return [`payments/${id}`, `payment_intents/${id}`]
      }
    ],
    [
      "a payment of a checkout session",
      async () => {
        const { default_price } = await tea()
        const line_items = [{ price: default_price, quantity: 1 }]
        const body = { mode: "payment", success_url: "https://shop.example/", line_items }
        const { payment_intent } = await server.post("/v1/checkout_sessions", body)
        return [`payments/${payment_intent}`, `payment_intents/${payment_intent}`]
      }
    ],
    [
      "a checkout session that has expired",
      async () => {
        const { default_price } = await tea()
        const line_items = [{ price: default_price, quantity: 1 }]
        const body = { mode: "payment", success_url: "https://shop.example/", line_items }
        const { id } = await server.post("/v1/checkout_sessions", body)
        await server.post(`/v1/checkout_sessions/${id}/expire`, {})
        return [`checkout-sessions/${id}`, `checkout_sessions/${id}`]
      }
    ],
    [
      "a refund",
      async () => {
        const { id: payment_intent } = await pay({ payment_method: "pm_card_visa", confirm: true })
        const { id } = await server.post("/v1/refunds", { payment_intent })
        return [`refunds/${id}`, `refunds/${id}`]
      }
    ],
    [
      "an archived product",
      async () => {
        const { id } = await server.post("/v1/products", { name: "Tea", active: false })
        return [`products/${id}`, `products/${id}`]
      }
    ],
    [
      "a price",
      async () => {
        const { default_price } = await tea()
        return [`prices/${default_price}`, `prices/${default_price}`]
      }
    ]
  ])("of %s is added, changed and removed", async (_, make) => {
    const [page, path] = await make()
    const metadata = async () => (await server.get(`/v1/${path}`)).metadata
    const edit = async (entered: Readonly<Record<string, string>>) => {
      const { action, values } = formTo(await tab.get(`/dashboard/test/${page}`), "/metadata")
      return await send(action, { ...values, ...entered })
    }
    const added = await edit({
      "new[0][key]": "color",
      "new[0][value]": "green",
      "new[2][key]": "size",
      "new[2][value]": "L"
    })
    assert.include(added.text, "Metadata saved.")
    assert.deepStrictEqual(await metadata(), { color: "green", size: "L" })
    await edit({ "metadata[color]": "blue", "metadata[size]": "" })
    assert.deepStrictEqual(await metadata(), { color: "blue" })
    const last = await edit({ "metadata[color]": "" })
    assert.deepStrictEqual(await metadata(), {})
    assert.match(last.text, /<h2>Metadata<\/h2>[\s\S]*?<p class="hint">None\.<\/p>/)
  })

  it("reports errors at the field, and keeps the entered values", async () => {
    const id = await customer({ color: "green" })
    const { action, values } = await formOf(id)
    for (const [entered, said] of [
      [{ "new[0][key]": "size" }, /-new\[0\]\[value\]-error">Enter a value/],
      [{ "new[1][value]": "L" }, /-new\[1\]\[key\]-error">Enter a key/],
      [{ "new[0][key]": "color", "new[0][value]": "blue" }, /-new\[0\]\[key\]-error">This key already exists above/],
      [
        { "new[0][key]": "a", "new[0][value]": "1", "new[1][key]": "a", "new[1][value]": "2" },
        /-new\[1\]\[key\]-error">This key already exists above/
      ],
      [{ "new[2][key]": "a[b]", "new[2][value]": "x" }, /-new\[2\]\[key\]-error">[^<]*without square brackets/],
      [{ "new[0][key]": "k".repeat(41), "new[0][value]": "x" }, /-new\[0\]\[key\]-error">[^<]*1 to 40 characters/],
      [{ "new[0][key]": "a b", "new[0][value]": "x".repeat(501) }, /-new\[0\]\[value\]-error">[^<]*500 characters/],
      [{ "metadata[color]": "x".repeat(501) }, /-metadata\[color\]-error">[^<]*500 characters/]
    ] as const) {
      const wrong = await send(action, { ...values, ...entered })
      assert.strictEqual(wrong.status, 400, JSON.stringify(entered))
      assert.match(wrong.text, said)
      const again = formTo(wrong, "/metadata").values
      for (const [name, value] of Object.entries(entered)) assert.strictEqual(again[name], value, name)
    }
    assert.deepStrictEqual(await metadataOf(id), { color: "green" })
  })

  it("reports too many keys, and accepts the maximum", async () => {
    const full = Object.fromEntries(
      Array.from({ length: 50 }, (_, i) => [`${"🙂".repeat(38)}${i + 10}`, "🙂".repeat(500)])
    )
    const id = await customer(full)
    const { action, values } = await formOf(id)
    const more = await send(action, { ...values, "new[0][key]": "a", "new[0][value]": "x" })
    assert.strictEqual(more.status, 400)
    assert.match(more.text, /role="alert">[^<]*at most 50 keys/)
    const [first] = Object.keys(full)
    const saved = await send(action, { ...values, [fieldFor(first!)]: "🙃".repeat(500) })
    assert.include(saved.text, "Metadata saved.")
    assert.deepStrictEqual(await metadataOf(id), { ...full, [first!]: "🙃".repeat(500) })
  })

  it("is changed by one of several concurrent edits of a key, and by all edits of other keys", async () => {
    const colors = ["blue", "red", "white", "black"]
    const id = await customer({ color: "green" })
    const page = await tab.get(`/dashboard/test/customers/${id}`)
    const forms = await Promise.all(colors.map(() => formOf(id)))
    const answers = await Promise.all(
      colors.map((color, i) =>
        send(forms[i]!.action, {
          ...forms[i]!.values,
          "metadata[color]": color,
          "new[0][key]": color,
          "new[0][value]": "x"
        })
      )
    )
    const won = answers.findIndex(({ status }) => status === 200)
    assert.deepStrictEqual(answers.map(({ status }) => status).toSorted(), [200, 400, 400, 400])
    assert.deepStrictEqual(await metadataOf(id), { color: colors[won]!, [colors[won]!]: "x" })
    for (const { status, text } of answers) {
      if (status !== 200) assert.include(text, `This was changed to “${colors[won]!}” while you were editing.`)
    }
    const { action, values } = formTo(page, "/metadata")
    const others = colors.map((key) => ({ ...values, token: "", "new[0][key]": `by ${key}`, "new[0][value]": "y" }))
    const fresh = await Promise.all(others.map(() => formOf(id)))
    await Promise.all(others.map((other, i) => send(action, { ...other, token: fresh[i]!.values["token"]! })))
    for (const color of colors) assert.strictEqual((await metadataOf(id))[`by ${color}`], "y")
  })

  it("refuses a form with thousands of fields", async () => {
    const id = await customer({})
    const { action, values } = await formOf(id)
    const fields = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`f${i}`, ""]))
    const page = await send(action, { ...fields, ...values })
    assert.strictEqual(page.status, 413)
    assert.include(page.text, "Nothing was changed.")
  })

  it("is shown to support, without the form", async () => {
    const id = await customer({ color: "green" })
    const page = await (await signedIn(server, "support")).get(`/dashboard/test/customers/${id}`)
    assert.match(page.text, /<dt>color<\/dt>\s*<dd>green<\/dd>/)
    assert.notInclude(page.text, "Edit metadata")
  })
})

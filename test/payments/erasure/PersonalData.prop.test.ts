/** The removal of a customer's data from records (semantics erasure.data). The service is tested in Erasures.pg. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { type Change, type JournalRecord, seal } from "../../../src/engine/log/Record.ts"
import { KINDS } from "../../../src/payments/Formats.ts"
import { PersonalData } from "../../../src/payments/erasure/PersonalData.ts"

const CUSTOMER = "cus_1"
const PAYMENT = "pi_1"

const changeOf = (kind: string, value: { readonly id: string }, hidden?: object): Change => ({
  id: value.id,
  kind,
  document: JSON.stringify(value),
  hidden: hidden === undefined ? null : JSON.stringify(hidden),
  labels: { email: "jane@example.com", subject: PAYMENT },
  format: 1,
  created: false
})

const recordOf = (changes: ReadonlyArray<Change>, more: Partial<JournalRecord> = {}): JournalRecord => ({
  account: "mer_1:test",
  version: 1,
  at: 0,
  now: 0,
  clock: 0,
  advanced: 0,
  wiped: false,
  sequence: 0,
  request: null,
  changes,
  events: [],
  apiVersion: null,
  timers: [],
  subscriptions: [],
  deliveries: [],
  attempts: [],
  hastened: [],
  response: null,
  ...more
})

const contact = { email: "Jane1", name: "Jane2", phone: "Jane3", address: { line1: "Jane4", country: "DE" } }

const theirs: ReadonlyArray<Change> = [
  changeOf("customer", { id: CUSTOMER, ...contact, object: "customer", metadata: { Jane5: "Jane6" } } as never),
  changeOf("mail", { id: "mail_1", object: "mail", subject: PAYMENT, to: "Jane1", error: "550 Jane1" } as never),
  changeOf("payment_note", { id: "note_1", object: "payment_note", payment_intent: PAYMENT, text: "Jane7" } as never),
  changeOf("audit_entry", { id: "aud_1", object: "audit_entry", subject: PAYMENT, detail: "Jane8" } as never),
  changeOf(
    "operation",
    { id: "op_1", object: "operation", payment_intent: PAYMENT, outcome: { message: "Jane9" } } as never,
    {
      request: { description: "Jane", billingDetails: contact, returnUrl: "https://x/Jane", descriptor: "Jane" },
      source: { billingDetails: contact },
      refund: { metadata: { a: "Jane" } },
      evidence: [{ outcome: "declined", detail: "Jane" }],
      sealedChallenge: "Jane"
    }
  ),
  changeOf(
    "checkout.session",
    { id: "cs_1", object: "checkout.session", customer: CUSTOMER, customer_details: contact } as never,
    {
      collected: contact,
      customAmount: { line: 1, paymentIntentData: { description: "Jane", metadata: { a: "Jane" } } }
    }
  )
]

interface AnyKind {
  readonly name: string
  readonly shape: { readonly value: Schema.Codec<{ readonly id: string }>; readonly hidden?: Schema.Codec<unknown> }
}
const kinds = KINDS as unknown as ReadonlyArray<AnyKind>

const personal = () => new PersonalData(CUSTOMER, [PAYMENT])

describe("the data of a customer", () => {
  it("erasure.data: leaves documents, their hidden parts and labels", () => {
    const erased = personal().without(recordOf(theirs))!
    assert.notInclude(JSON.stringify(erased), "Jane")
    assert.deepStrictEqual(
      erased.changes.map(({ id }) => id),
      theirs.map(({ id }) => id)
    )
    assert.deepStrictEqual(JSON.parse(erased.changes[0]!.document!), {
      id: CUSTOMER,
      email: null,
      name: null,
      phone: null,
      address: null,
      object: "customer",
      metadata: {}
    })
    assert.deepStrictEqual(erased.changes[0]!.labels, { subject: PAYMENT })
    assert.strictEqual(personal().without(erased), erased)
  })

  it("erasure.data: leaves stored answers, in errors and expanded objects too, and not what is another's", () => {
    const product = { id: "prod_1", object: "product", name: "Jane's lamp", metadata: { a: "b" } }
    const other = { id: "cus_2", object: "customer", name: "Otto" }
    const body = (name: string | null) => ({
      error: {
        message: "Your card was declined.",
        payment_intent: {
          id: PAYMENT,
          object: "payment_intent",
          description: name,
          customer: { id: CUSTOMER, object: "customer", name },
          product,
          other
        }
      }
    })
    const answered = (name: string | null) =>
      recordOf([], { response: { status: 402, body: JSON.stringify(body(name)) } })
    assert.deepStrictEqual(personal().without(answered("Jane"))!.response, answered(null).response)
  })

  it("erasure.data: leaves events, previous values and responses of webhooks' receivers", () => {
    const object = JSON.stringify({ id: CUSTOMER, object: "customer", name: "Jane", metadata: { a: "Jane" } })
    const event = { id: "evt_1", type: "customer.updated", object, format: 1, previous: { name: "Jane" } }
    const delivery = { id: "whd_1", destination: "we_1", event: "evt_1", eventVersion: 1 }
    const attempt = {
      id: "whd_1",
      destination: "we_1",
      attempt: 1,
      startedAt: 0,
      durationMillis: 1,
      status: 500,
      error: null,
      body: "Jane",
      state: "pending",
      nextAttemptAt: 1
    } as const
    const others = { ...attempt, id: "whd_2" }
    const data = personal()
    const first = data.without(recordOf([], { events: [event], deliveries: [delivery] }))!
    const second = data.without(recordOf([], { attempts: [attempt, others] }))!
    assert.notInclude(JSON.stringify(first), "Jane")
    assert.deepStrictEqual(first.events[0]!.previous, { name: null })
    assert.deepStrictEqual(
      second.attempts.map(({ body }) => body),
      [undefined, "Jane"]
    )
    assert.isTrue(data.found.has("evt_1"))
  })

  it("leaves records of others as they are", () => {
    const other = changeOf("customer", { id: "cus_2", object: "customer", name: "Otto" } as never)
    assert.isUndefined(personal().without(recordOf([other])))
  })

  describe.each(kinds)("of the kind $name", ({ name, shape }) => {
    it.prop("leaves values that fit the schemas", { value: shape.value }, ({ value }) => {
      const erased = new PersonalData(CUSTOMER, [value.id]).value(value)
      Schema.decodeUnknownSync(shape.value, { onExcessProperty: "error" })(erased)
    })

    if (shape.hidden !== undefined) {
      const schema = shape.hidden
      it.prop("leaves hidden parts that fit the schemas", { hidden: schema }, ({ hidden }) => {
        Schema.decodeUnknownSync(schema, { onExcessProperty: "error" })(personal().hidden(name, hidden))
      })
    }
  })

  it("erasure.course: is looked for in each record that names the customer or one of the objects", () => {
    const longer = (text: string) =>
      text.replaceAll(/\b([a-z]+)_(\d)\b/g, (_, prefix, digit) => `${prefix}_${digit.repeat(24)}`)
    const object = JSON.stringify({ id: "ch_1", object: "charge", payment_intent: PAYMENT })
    const delivery = { id: "whd_1", destination: "we_1", event: "evt_1", eventVersion: 1 }
    const attempt = { startedAt: 0, durationMillis: 1, status: 500, error: null, nextAttemptAt: null }
    const body = JSON.stringify({ object: "list", data: [{ id: "ref_1", object: "refund", payment_intent: PAYMENT }] })
    const records = [
      ...theirs.map((change) => recordOf([change])),
      recordOf([{ ...theirs[0]!, document: null, hidden: null }]),
      recordOf([], { events: [{ id: "evt_1", type: "charge.succeeded", object, format: 1, previous: null }] }),
      recordOf([], { deliveries: [delivery] }),
      recordOf([], { attempts: [{ ...attempt, id: "whd_1", destination: "we_1", attempt: 1, state: "exhausted" }] }),
      recordOf([], { response: { status: 200, body } }),
      recordOf([{ ...changeOf("customer", { id: "cus_2", object: "customer", name: "Otto" } as never), labels: {} }])
    ].map((record) => JSON.parse(longer(JSON.stringify(record))) as JournalRecord)
    const data = new PersonalData(longer(CUSTOMER), [longer(PAYMENT)])
    const looks = records.map((record) => {
      const mayConcern = data.mayConcern(seal("", record))
      return [mayConcern, data.without(record) !== undefined]
    })
    // A delivery has no data, but an attempt of it may.
    const expected = records.map(({ deliveries }) => [true, deliveries.length === 0])
    assert.deepStrictEqual(looks, [...expected.slice(0, -1), [false, false]])
  })
})

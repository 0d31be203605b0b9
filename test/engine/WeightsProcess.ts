/**
 * Writes the memory that documents use, and their weights, as JSON to standard output. A process of its own, with
 * `--expose-gc`, because other objects in memory would be measured too.
 */
import { stored, type StoredTexts, weightOf } from "../../src/engine/log/Document.ts"
import { EntryCache } from "../../src/engine/actor/EntryCache.ts"

export interface Measured {
  readonly what: string
  /** Memory in bytes. */
  readonly taken: number
  readonly weight: number
}

const heapUsed = (): number => {
  for (let i = 0; i < 3; i++) globalThis.gc!()
  return process.memoryUsage().heapUsed
}

const COUNT = 20_000

/** A text that shares no memory with others, like a text from the database. */
const fresh = (text: string): string => Buffer.from(text).toString()

const intent = (id: string) => ({
  id,
  object: "payment_intent",
  amount: 2000,
  amount_capturable: 0,
  amount_received: 0,
  currency: "usd",
  capture_method: "automatic",
  confirmation_method: "automatic",
  charges: { object: "list", data: [], has_more: false, url: `/v1/charges?payment_intent=${id}` },
  client_secret: `${id}_secret_0123456789abcdefghijklmn`,
  created: 1_773_014_400,
  customer: null,
  description: "Order 6735",
  last_payment_error: null,
  livemode: false,
  metadata: { order: id },
  payment_method: null,
  payment_method_types: ["card"],
  status: "requires_payment_method"
})

interface Held {
  readonly what: string
  readonly text: (id: string) => string
  readonly more?: Partial<StoredTexts>
  readonly isLookedInto: boolean
}

const HELD: ReadonlyArray<Held> = [
  { what: "as they are read", text: (id) => JSON.stringify(intent(id)), isLookedInto: false },
  { what: "that somebody has looked into", text: (id) => JSON.stringify(intent(id)), isLookedInto: true },
  {
    what: "with hidden parts",
    text: (id) => JSON.stringify(intent(id)),
    more: { hidden: JSON.stringify({ secret: "x".repeat(300) }) },
    isLookedInto: false
  },
  { what: "that are short", text: (id) => JSON.stringify({ id, price: id }), isLookedInto: true }
]

const measure = ({ isLookedInto, more, text, what }: Held): Measured => {
  const cache = new EntryCache({ weightOf, capacity: () => Infinity, projected: () => Infinity })
  const before = heapUsed()
  for (let i = 0; i < COUNT; i++) {
    const id = fresh(`pi_0mabcdefghij${String(i).padStart(11, "0")}`)
    const hidden = more?.hidden == null ? null : fresh(more.hidden)
    const labels = { customer: fresh(`cus_${i}`) }
    const kind = "payment_intent"
    const document = stored({
      id,
      kind,
      version: 1_000_000 + i,
      format: 1,
      labels,
      document: fresh(text(id)),
      hidden
    })
    if (isLookedInto && !document.deleted) void document.value
    cache.set(id, document)
  }
  return { what, taken: heapUsed() - before, weight: cache.weight }
}

process.stdout.write(JSON.stringify(HELD.map(measure)))

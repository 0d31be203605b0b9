/**
 * The practical limit of a durable service in one Node process: `node:http`, JSON parsed and rendered, and one row per
 * request. Requests that arrive during an INSERT share the next one. One table, one connection, no idempotency, no
 * events.
 */
import { Client } from "pg"
import { newPaymentIntent } from "./PaymentIntent.ts"
import { bodyOf, serve } from "./serve.ts"

interface Waiting {
  readonly id: string
  readonly idempotencyKey: string
  readonly document: string
  readonly done: PromiseWithResolvers<string>
}

const database = new Client({ connectionString: process.env["DATABASE_URL"] })
await database.connect()
await database.query(`CREATE TABLE IF NOT EXISTS payment_intents (
  id text COLLATE "C" PRIMARY KEY, idempotency_key text NOT NULL, document text NOT NULL)`)

let queue: Array<Waiting> = []
let flushing = false

const flush = async (): Promise<void> => {
  flushing = true
  while (queue.length > 0) {
    const batch = queue
    queue = []
    try {
      await database.query({
        name: "insert",
        text: "INSERT INTO payment_intents SELECT * FROM unnest($1::text[], $2::text[], $3::text[])",
        values: [
          batch.map(({ id }) => id),
          batch.map(({ idempotencyKey }) => idempotencyKey),
          batch.map(({ document }) => document)
        ]
      })
      for (const { document, done } of batch) done.resolve(document)
    } catch (error) {
      for (const { done } of batch) done.reject(error)
    }
  }
  flushing = false
}

serve(async (request) => {
  const intent = newPaymentIntent(JSON.parse(await bodyOf(request)))
  const done = Promise.withResolvers<string>()
  const idempotencyKey = String(request.headers["idempotency-key"])
  queue.push({ id: intent.id, idempotencyKey, document: JSON.stringify(intent), done })
  if (!flushing) void flush()
  return done.promise
})

/**
 * The idiomatic alternative: `node:http` and a `pg` pool of 20, one transaction per POST that inserts the idempotency
 * key, the objects and the events. It does what such services do for the same guarantees, in the plainest way; it does
 * not authenticate, validate or keep states, so it is cheaper than a real one.
 *
 * A create inserts 3 rows in 3 statements. A create that confirms inserts the intent and its charge, and 3 events.
 */
import { Pool } from "pg"
import { type CreateBody, listText, newEvent, newPaymentIntent } from "./PaymentIntent.ts"
import { bodyOf, serve } from "./serve.ts"

const pool = new Pool({ connectionString: process.env["DATABASE_URL"], max: 20 })
const table = (text: string) => pool.query(`CREATE TABLE IF NOT EXISTS ${text}`)
await table("idempotency_keys (key text PRIMARY KEY, status int NOT NULL, response text NOT NULL)")
await table(`objects (id text COLLATE "C" PRIMARY KEY, kind text NOT NULL, document text NOT NULL)`)
await table(`events (id text COLLATE "C" PRIMARY KEY, type text NOT NULL, document text NOT NULL)`)

const create = async (key: string, body: CreateBody): Promise<string> => {
  const intent = newPaymentIntent(body)
  const document = JSON.stringify(intent)
  const [charge] = intent.charges.data
  const events = [newEvent("payment_intent.created", intent, intent.created)]
  const client = await pool.connect()
  const insertObject = (id: string, kind: string, text: string) =>
    client.query("INSERT INTO objects (id, kind, document) VALUES ($1, $2, $3)", [id, kind, text])
  try {
    await client.query("BEGIN")
    await client.query("INSERT INTO idempotency_keys (key, status, response) VALUES ($1, $2, $3)", [key, 200, document])
    await insertObject(intent.id, "payment_intent", document)
    if (charge !== undefined) {
      await insertObject(charge.id, "charge", JSON.stringify(charge))
      events.push(newEvent("charge.succeeded", charge, intent.created))
      events.push(newEvent("payment_intent.succeeded", intent, intent.created))
    }
    for (const event of events) {
      const row = [event.id, event.type, JSON.stringify(event)]
      await client.query("INSERT INTO events (id, type, document) VALUES ($1, $2, $3)", row)
    }
    await client.query("COMMIT")
  } catch (error) {
    await client.query("ROLLBACK")
    throw error
  } finally {
    client.release()
  }
  return document
}

const retrieve = async (id: string): Promise<string> => {
  const { rows } = await pool.query<{ document: string }>("SELECT document FROM objects WHERE id = $1", [id])
  return rows[0]!.document
}

const list = async (limit: number): Promise<string> => {
  const { rows } = await pool.query<{ document: string }>(
    "SELECT document FROM objects WHERE id LIKE 'pi\\_%' ORDER BY id DESC LIMIT $1",
    [limit]
  )
  return listText(rows.map(({ document }) => document))
}

serve(async (request) => {
  if (request.method === "POST") {
    return create(String(request.headers["idempotency-key"]), JSON.parse(await bodyOf(request)))
  }
  const url = new URL(request.url!, "http://localhost")
  const id = url.pathname.split("/")[3]
  return id === undefined ? list(Number(url.searchParams.get("limit"))) : retrieve(id)
})

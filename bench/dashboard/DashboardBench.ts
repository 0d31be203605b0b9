/**
 * The run of the bench of the dashboard: an account with a million payments. What does each page take? What do five
 * hundred pages that are open cost the requests of the API, and what does the log of requests?
 */
import { Console, Effect } from "effect"
import { BenchFailure, failureOf } from "../BenchFailure.ts"
import type { StartedServer } from "../Contender.ts"
import { contenders, start } from "../Contender.ts"
import * as Database from "../Database.ts"
import * as Load from "../load/Load.ts"
import { percentile } from "../load/Percentiles.ts"
import * as Machine from "../Machine.ts"
import * as ProcessTime from "../ProcessTime.ts"
import { intentBody, INTENTS } from "../scenarios/Scenario.ts"
import * as Seed from "../Seed.ts"
import { around } from "../SpentTime.ts"
import { verify } from "../Verification.ts"
import type { CreatesPair, DashboardResults, PageFigures } from "./DashboardResults.ts"
import type { Visitor } from "./Visitors.ts"
import { signIn } from "./Visitors.ts"

export interface DashboardPace {
  readonly payments: number
  readonly loadsPerPage: number
  readonly openPages: number
  readonly warmUpSeconds: number
  readonly secondsPerRound: number
  readonly rounds: number
}

const NAME = "till"
const CONNECTIONS = 64
/** A browser's session has no more streams. */
const PAGES_PER_SESSION = 20
const CUSTOMERS = 200
const WARM_UP_LOADS = 10

interface Ground {
  readonly database: Database.Database
  readonly databaseUrl: string
  readonly account: Seed.Account
}

const makeGround = Effect.fnUntraced(function* (payments: number) {
  const database = yield* Database.make
  const databaseUrl = yield* database.create(NAME)
  const [account] = yield* Seed.accounts(databaseUrl, { merchants: 1, objects: payments })
  return { database, databaseUrl, account: account! } satisfies Ground as Ground
})

const startOn = ({ databaseUrl }: Ground, dataFolder: string, variables: Readonly<Record<string, string>> = {}) =>
  start(contenders.till, { databaseUrl, dataFolder, nodeOptions: [], variables })

/** Makes what the lifecycles leave beside payments: customers who have paid, declines, refunds, an endpoint. */
const furnish = ({ account: { apiKey } }: Ground, { port }: StartedServer) =>
  Effect.tryPromise({
    try: async () => {
      const authorization = `Basic ${Buffer.from(`${apiKey}:`).toString("base64")}`
      const post = async (path: string, body: object): Promise<{ readonly id: string }> => {
        const headers = { authorization, "content-type": "application/json", "idempotency-key": crypto.randomUUID() }
        const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
          method: "POST",
          headers,
          body: JSON.stringify(body)
        })
        if (!answer.ok && answer.status !== 402) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
        return (await answer.json()) as { readonly id: string }
      }
      const events = ["payment_intent.succeeded"]
      await post("/v1/webhook_endpoints", { url: "http://127.0.0.1:9/", enabled_events: events })
      const pay = (customer: string, card: string) =>
        post(INTENTS, { ...intentBody, customer, payment_method: card, confirm: true })
      const customers: Array<string> = []
      const payments: Array<string> = []
      for (let i = 0; i < CUSTOMERS; i++) {
        const { id } = await post("/v1/customers", { email: `payer-${i}@example.com`, name: `Payer ${i}` })
        const payment = await pay(id, "pm_card_visa")
        if (i % 10 === 0) await post("/v1/refunds", { payment_intent: payment.id, amount: 100 })
        if (i % 5 === 0) await pay(id, "pm_card_declined")
        customers.push(id)
        payments.push(payment.id)
      }
      return { customers, payments }
    },
    catch: failureOf("The account cannot be furnished")
  })

type Furniture = Effect.Success<ReturnType<typeof furnish>>

interface Page {
  readonly title: string
  readonly pathOf: (i: number) => string
  /** Text that the page has; a fast wrong page is not a result. */
  readonly expect?: string
}

const search = (path: string, query: Readonly<Record<string, string>>) => `${path}?${new URLSearchParams(query)}`

const pagesOf = ({ customers, payments }: Furniture, deep: string): ReadonlyArray<Page> => [
  ...["24h", "7d", "30d", "90d"].map((range) => ({
    title: `home, ${range}`,
    pathOf: () => search("", { range })
  })),
  { title: "payments", pathOf: () => "/payments" },
  { title: "payments, a later page", pathOf: () => search("/payments", { after: deep }) },
  { title: "payments, by status", pathOf: () => search("/payments", { status: "requires_capture" }) },
  { title: "payments, by amount", pathOf: (i) => search("/payments", { amount: `${i + 5}.${10 + i}` }) },
  { title: "payments, by metadata", pathOf: (i) => search("/payments", { metadata: `order_id:${i * 997}` }) },
  {
    title: "payments, by customer",
    pathOf: (i) => search("/payments", { customer: customers[i % CUSTOMERS]! }),
    expect: "20.00"
  },
  { title: "payments, by decline", pathOf: () => search("/payments", { decline: "generic_decline" }), expect: "20.00" },
  {
    title: "payments, searched by an email",
    pathOf: (i) => search("/payments", { query: `payer-${i % CUSTOMERS}@example.com` }),
    expect: "20.00"
  },
  {
    title: "payments, searched by a query",
    pathOf: (i) => search("/payments", { query: `amount>${99_000 + i}` }),
    expect: "USD"
  },
  { title: "a payment", pathOf: (i) => `/payments/${payments[i % payments.length]!}` },
  { title: "customers", pathOf: () => "/customers" },
  { title: "a customer", pathOf: (i) => `/customers/${customers[i % CUSTOMERS]!}` },
  { title: "products", pathOf: () => "/products" },
  { title: "events", pathOf: () => "/events" },
  { title: "webhooks", pathOf: () => "/webhooks" },
  { title: "requests", pathOf: () => "/requests" },
  { title: "requests, errors", pathOf: () => search("/requests", { status: "4xx" }) },
  { title: "developers", pathOf: () => "/developers" }
]

const loadPage = (visitor: Visitor, { expect = "</html>", pathOf, title }: Page, i: number) =>
  Effect.tryPromise({
    try: async () => {
      const { millis, status, text } = await visitor.load(pathOf(i))
      if (status !== 200 || !text.includes(expect)) throw new Error(`${status}, or not with ${expect}`)
      return millis
    },
    catch: failureOf(title)
  })

/** One load after the other; the first ones warm up. */
const measurePage = Effect.fnUntraced(function* (
  {
    database,
    page,
    server,
    visitor
  }: { database: Database.Database; page: Page; server: StartedServer; visitor: Visitor },
  loads: number
) {
  for (let i = 0; i < WARM_UP_LOADS; i++) yield* loadPage(visitor, page, i)
  const measured = { server, database, workers: [] }
  const { spent, value } = yield* around(
    measured,
    Effect.forEach(Array.from({ length: loads }), (_, i) => loadPage(visitor, page, WARM_UP_LOADS + i))
  )
  const ascending = value.toSorted((a, b) => a - b)
  return {
    title: page.title,
    p50Millis: percentile(ascending, 50),
    p95Millis: percentile(ascending, 95),
    maxMillis: ascending.at(-1)!,
    ...(spent.serverMicros !== undefined && { serverMillis: spent.serverMicros / loads / 1000 }),
    ...(spent.postgresMicros !== undefined && { postgresMillis: spent.postgresMicros / loads / 1000 })
  } satisfies PageFigures as PageFigures
})

/** Creates in the account, in a closed loop; gives how many there were per second. */
const creates = ({ account }: Ground, { port }: StartedServer, load: Load.Load, seconds: number) =>
  Effect.map(
    load.run({
      port,
      connections: CONNECTIONS,
      seconds,
      requests: { method: "POST", paths: [INTENTS], apiKeys: [account.apiKey], body: JSON.stringify(intentBody) },
      expect: `"object":"payment_intent"`
    }),
    ({ requestsPerSecond }) => requestsPerSecond
  )

/** Rounds of both in turn; who is first changes. */
const inTurn = Effect.fnUntraced(function* <E, R>(
  rounds: number,
  measureWith: Effect.Effect<number, E, R>,
  measureWithout: Effect.Effect<number, E, R>
) {
  const pairs: Array<CreatesPair> = []
  for (let round = 0; round < rounds; round++) {
    const isFirst = round % 2 === 0
    const first = yield* isFirst ? measureWith : measureWithout
    const second = yield* isFirst ? measureWithout : measureWith
    pairs.push(isFirst ? { with: first, without: second } : { with: second, without: first })
  }
  return pairs
})

/** Opens so many pages, home and payments in turn; each loads itself again when it is told to, as its script does. */
const openPages = Effect.fnUntraced(function* (
  visitors: ReadonlyArray<Visitor>,
  count: number,
  loaded: (isGood: boolean) => void
) {
  yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        Promise.all(
          Array.from({ length: count }, (_, i) => {
            const visitor = visitors[Math.floor(i / PAGES_PER_SESSION)]!
            const path = i % 2 === 0 ? "" : "/payments"
            let isLoading = false
            return visitor.listen(() => {
              if (isLoading) return
              isLoading = true
              visitor
                .load(path)
                .then(
                  ({ status, text }) => loaded(status === 200 && text.includes("</html>")),
                  () => loaded(false)
                )
                .finally(() => (isLoading = false))
            })
          })
        ),
      catch: failureOf("The pages cannot be opened")
    }),
    (closes) => Effect.sync(() => closes.forEach((close) => close()))
  )
})

const measureLive = Effect.fnUntraced(function* (
  { ground, load, server }: { ground: Ground; load: Load.Load; server: StartedServer },
  merchant: string,
  pace: DashboardPace
) {
  const sessions = Math.ceil(pace.openPages / PAGES_PER_SESSION)
  const visitors = yield* Effect.replicateEffect(signIn(server, merchant, PAGES_PER_SESSION), sessions)
  yield* creates(ground, server, load, pace.warmUpSeconds)
  const before = ProcessTime.residentBytesOf(server.pid)
  let loads = 0
  let wrong = 0
  let counted = 0
  let seconds = 0
  const round = creates(ground, server, load, pace.secondsPerRound)
  const withPages = Effect.scoped(
    Effect.gen(function* () {
      yield* openPages(visitors, pace.openPages, (isGood) => {
        if (isGood) loads++
        else wrong++
      })
      yield* creates(ground, server, load, pace.warmUpSeconds / 2)
      const [loadsBefore, began] = [loads, performance.now()]
      const perSecond = yield* round
      seconds += (performance.now() - began) / 1000
      counted += loads - loadsBefore
      return perSecond
    })
  )
  const pairs = yield* inTurn(pace.rounds, withPages, round)
  if (wrong > 0) return yield* new BenchFailure({ problem: `${wrong} open pages were not given what they show.` })
  const after = ProcessTime.residentBytesOf(server.pid)
  return {
    pairs,
    loadsPerSecond: counted / seconds,
    ...(before !== undefined && after !== undefined && { residentBytes: [before, after] as const })
  }
}, Effect.scoped)

/** Two processes, one with the log and one without; both on databases of their own, which are empty. */
const measureRequestLog = Effect.fnUntraced(function* (load: Load.Load, pace: DashboardPace) {
  const sides = yield* Effect.forEach(["15", "0"], (days) =>
    Effect.gen(function* () {
      const ground = yield* makeGround(0)
      const server = yield* startOn(ground, yield* Database.temporaryFolder, { TILL_REQUEST_LOG_DAYS: days })
      return creates.bind(undefined, ground, server, load)
    })
  )
  const [withLog, withoutLog] = sides
  for (const side of sides) yield* side(pace.warmUpSeconds)
  return yield* inTurn(pace.rounds * 2, withLog!(pace.secondsPerRound), withoutLog!(pace.secondsPerRound))
}, Effect.scoped)

const deepCursor = (visitor: Visitor) =>
  Effect.tryPromise({
    try: async () => {
      const { text } = await visitor.load("/payments")
      const [cursor] = [...text.matchAll(/[?&;]after=(pi_\w+)/g)].map(([, id]) => id!)
      if (cursor === undefined) throw new Error("there is none")
      return cursor
    },
    catch: failureOf("The next page of payments")
  })

export const run = Effect.fnUntraced(function* (pace: DashboardPace) {
  const ground = yield* makeGround(pace.payments)
  const load = yield* Load.make
  const machine = Machine.describe(ground.database.version)
  const merchant = ground.account.id.split(":")[0]!
  const server = yield* startOn(ground, yield* Database.temporaryFolder)
  const furniture = yield* furnish(ground, server)
  const visitor = yield* signIn(server, merchant, 1)
  const pages: Array<PageFigures> = []
  for (const page of pagesOf(furniture, yield* deepCursor(visitor))) {
    yield* Console.log(`  ${page.title} …`)
    pages.push(yield* measurePage({ database: ground.database, page, server, visitor }, pace.loadsPerPage))
  }
  yield* Console.log(`  ${pace.openPages} pages are opened …`)
  const { pairs, ...live } = yield* measureLive({ ground, load, server }, merchant, pace)
  if (live.loadsPerSecond === 0) return yield* new BenchFailure({ problem: "No open page was told of any change." })
  yield* verify(server.installation)
  yield* Console.log("  the log of requests …")
  const requestLog = yield* measureRequestLog(load, pace)
  const at = new Date().toISOString()
  const { openPages, payments } = pace
  const results = { at, machine, payments, pages, openPages, live: pairs, ...live, requestLog }
  return results satisfies DashboardResults as DashboardResults
}, Effect.scoped)

/**
 * The judge of payments through a gateway: compares Till's payments, refunds and operations with the gateway's file,
 * and every answer with a repetition of its request.
 */
import type { Change } from "../processors/protocol/ExampleGateway.ts"
import { type Answer, type HttpExchange, inParallel } from "../support/HttpExchange.ts"
import type { Findings } from "./Finding.ts"
import type { GatewayTraffic } from "./GatewayTraffic.ts"
import { show } from "./Traffic.ts"

type LedgerPayment = NonNullable<Change["payment"]>

// oxlint-disable-next-line typescript/no-explicit-any -- an object of the API
type Thing = any

interface Money {
  readonly held: number
  readonly captured: number
  readonly refunded: number
}

const REPEATS_AT_ONCE = 8
const MONEY = ["held", "captured", "refunded"] as const

/** The present state of everything, from both sides. */
export interface Books {
  readonly payments: ReadonlyArray<Thing>
  readonly refunds: ReadonlyArray<Thing>
  readonly operations: ReadonlyArray<Thing>
  readonly events: ReadonlyArray<Thing>
  readonly lines: ReadonlyArray<Change>
}

/** Operations that a person decides about. */
export const undecided = ({ operations }: Books): ReadonlyArray<Thing> =>
  operations.filter(({ status }) => status === "decide")

/** Compares the books; operations that are to be decided, and their payments, may differ. */
export const compare = (books: Books, findings: Findings): void => {
  const ofGateway = new Map(
    books.lines.flatMap(({ payment }) => (payment === undefined ? [] : [[payment.id, payment]]))
  )
  const open = new Set(undecided(books).map(({ payment_intent }) => payment_intent))
  for (const payment of books.payments) {
    if (!open.has(payment.id)) comparePayment(books, payment, ofGateway.get(payment.id), findings)
    ofGateway.delete(payment.id)
  }
  for (const [id, { captured = 0, held = 0 }] of ofGateway) {
    if (captured + held > 0) findings.add("lost", id, `the gateway has the payment ${id}, and Till has not`)
  }
  compareOperations(books, findings)
  countEvents(books, findings)
}

const moneyAtTill = ({ refunds }: Books, payment: Thing): Money => ({
  held: payment.amount_capturable,
  captured: payment.amount_received,
  refunded: refunds
    .filter(({ payment_intent, status }) => payment_intent === payment.id && status !== "failed")
    .reduce((sum, { amount }) => sum + amount, 0)
})

const moneyAtGateway = (payment: LedgerPayment | undefined): Money => ({
  held: payment?.status === "held" ? payment.held! : 0,
  captured: payment?.captured ?? 0,
  refunded: payment?.refunded ?? 0
})

const comparePayment = (books: Books, payment: Thing, known: LedgerPayment | undefined, findings: Findings): void => {
  const { id, status } = payment
  const [till, gateway] = [moneyAtTill(books, payment), moneyAtGateway(known)]
  // Till has given back what was approved after all.
  if (till.captured + till.held + gateway.held === 0 && gateway.captured === gateway.refunded) return
  for (const name of MONEY) {
    if (till[name] === gateway[name]) continue
    const text = `${id} is ${status}: ${name} are ${till[name]} at Till and ${gateway[name]} at the gateway`
    findings.add(gateway[name] > till[name] ? "doubled" : "wrong", `${id} ${name}`, text)
  }
  if (till.refunded > till.captured) findings.add("doubled", id, `${id}: more is refunded than was captured`)
}

const compareOperations = ({ lines, operations }: Books, findings: Findings): void => {
  const states = new Map(lines.flatMap(({ operation }) => (operation ? [[operation.state.id, operation.state]] : [])))
  const effects = lines
    .filter(({ operation }) => operation?.state.status === "approved")
    .map(({ operation }) => operation!)
  const known = new Set(operations.map(({ id }) => id))
  for (const [id, count] of countOf(effects.map(({ state }) => state.id))) {
    if (count > 1) findings.add("doubled", id, `the operation ${id} was approved ${count} times`)
    if (!known.has(id)) findings.add("doubled", id, `the gateway has approved ${id}, which Till does not have`)
  }
  for (const { id, outcome, status } of operations) {
    if (status !== "final" && status !== "decide") findings.add("wrong", id, `the operation ${id} is still ${status}`)
    if (status !== "final") continue
    const isApproved = states.get(id)?.status === "approved"
    const text = `the operation ${id} is final and ${outcome?.kind} at Till, and ${states.get(id)?.status} at the gateway`
    if (isApproved !== (outcome?.kind === "approved")) findings.add(isApproved ? "doubled" : "wrong", id, text)
  }
}

/** A payment succeeds once, and tells it once. */
const countEvents = ({ events, payments }: Books, findings: Findings): void => {
  const succeeded = countOf(
    events.filter(({ type }) => type === "payment_intent.succeeded").map(({ data }) => data.object.id)
  )
  for (const { id, status } of payments) {
    const count = succeeded.get(id) ?? 0
    const wanted = status === "succeeded" ? 1 : 0
    if (count === wanted) continue
    findings.add(count > wanted ? "doubled" : "lost", `events ${id}`, `${id} is ${status} and has ${count} successes`)
  }
}

const countOf = (ids: ReadonlyArray<string>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}

/** Repeats every answered request: each must get its first answer, byte for byte. */
export const repeatAll = async (traffic: GatewayTraffic, findings: Findings): Promise<void> => {
  const answered = traffic.deeds.filter(({ answer }) => answer !== undefined)
  await inParallel(answered, REPEATS_AT_ONCE, async (deed) => {
    const again = await traffic.repeat(deed)
    const first = deed.answer!
    if (again?.text === first.text && again.status === first.status) return
    const text = `two answers to ${deed.key} ${deed.kind}: ${show(first)} / ${again === undefined ? "none" : show(again)}`
    findings.add("doubled", deed.key, text)
  })
}

/** Reads a list of the merchant to its end. */
export const readAll = async (
  exchange: Pick<HttpExchange, "request">,
  key: string,
  path: string
): Promise<ReadonlyArray<Thing>> => {
  const all: Array<Thing> = []
  for (let cursor: string | null = null; ;) {
    const after: string = cursor === null ? "" : `&starting_after=${cursor}`
    const page: Answer = await exchange.request("GET", `${path}${path.includes("?") ? "&" : "?"}limit=100${after}`, {
      key
    })
    if (page.status !== 200) throw new Error(`GET ${path} is answered ${show(page)}`)
    all.push(...page.body.data)
    cursor = page.body.next_cursor
    if (cursor === null) return all
  }
}

/** The search of PaymentIntents and customers (semantics search.*): the indexed terms, and the filters of a query. */
import type { Customer } from "../domain/Customer.ts"
import type { PaymentIntent } from "../domain/PaymentIntent.ts"
import { PaymentIntentStatus } from "../domain/PaymentIntentStates.ts"
import { type Clause, type Field, type Fields, folded, type SearchQuery, type Values } from "../domain/SearchQuery.ts"
import type { Searchable } from "../engine/log/Document.ts"
import { type Filter, trigramsOf } from "../engine/log/Search.ts"

/** The search fields of a kind, with their values. */
export interface SearchedBy<Value> {
  readonly fields: Fields
  readonly valuesOf: (value: Value) => Values
  /** All values of fields that have few, so that a negation becomes a choice of the others. */
  readonly closed: Readonly<Record<string, ReadonlyArray<string>>>
}

export const SEARCHED_PAYMENT_INTENT: SearchedBy<PaymentIntent> = {
  fields: {
    id: { type: "reference" },
    amount: { type: "number" },
    currency: { type: "token" },
    status: { type: "token" },
    created: { type: "number" },
    customer: { type: "reference", nullable: true },
    last4: { type: "token", nullable: true },
    metadata: { type: "token", keyed: true }
  },
  valuesOf: ({ amount, charges, created, currency, customer, id, metadata, status }) => ({
    id,
    amount,
    currency,
    status,
    created,
    customer,
    // From the newest charge.
    last4: charges.data[0]?.payment_method_details.card.last4 ?? null,
    metadata
  }),
  closed: { status: PaymentIntentStatus.literals }
}

export const SEARCHED_CUSTOMER: SearchedBy<Customer> = {
  fields: {
    id: { type: "reference" },
    created: { type: "number" },
    email: { type: "text", nullable: true, email: true },
    name: { type: "text", nullable: true },
    metadata: { type: "token", keyed: true }
  },
  valuesOf: ({ created, email, id, metadata, name }) => ({ id, created, email, name, metadata }),
  closed: {}
}

/** Search fields of the dashboard, two more than the API has (semantics dashboard.payments). */
export const FILTERED_PAYMENT_INTENT: SearchedBy<PaymentIntent> = {
  ...SEARCHED_PAYMENT_INTENT,
  fields: {
    ...SEARCHED_PAYMENT_INTENT.fields,
    decline_code: { type: "token" },
    payer_email: { type: "token" }
  },
  valuesOf: (payment) => ({
    ...SEARCHED_PAYMENT_INTENT.valuesOf(payment),
    decline_code: payment.last_payment_error?.decline_code ?? null,
    payer_email: payment.charges.data[0]?.billing_details.email ?? null
  })
}

/** Fields searched without terms: by the primary key, by the time in ids, and by ranges. */
const WITHOUT_TERMS: ReadonlySet<string> = new Set(["id", "created", "amount"])

/** Terms of different fields never collide: names contain neither `=` nor `~`, and metadata keys no closing bracket. */
const presence = (name: string): string => name
const exact = (name: string, { type }: Field, value: string): string =>
  `${name}=${type === "reference" ? value : folded(value)}`
const parts = (name: string, value: string): ReadonlyArray<string> =>
  trigramsOf(folded(value)).map((part) => `${name}~${part}`)
const entryName = (field: string, key: string): string => `${field}[${key}]`

/** Returns the terms and the number by which the engine finds an object. */
export const searchable =
  <Value>({ fields, valuesOf }: SearchedBy<Value>) =>
  (value: Value): Searchable => {
    const values = valuesOf(value)
    const terms: Array<string> = []
    const add = (name: string, field: Field, text: string) => {
      if (field.nullable || field.keyed) terms.push(presence(name))
      terms.push(exact(name, field, text))
      if (field.type === "text") terms.push(...parts(name, text))
    }
    for (const name in fields) {
      const found = values[name]
      if (WITHOUT_TERMS.has(name) || found == null) continue
      const field = fields[name]!
      if (!field.keyed) add(name, field, found as string)
      else for (const [key, text] of Object.entries(found)) add(entryName(name, key), field, text)
    }
    return { terms, measure: (values["amount"] as number | undefined) ?? null }
  }

/**
 * Returns filters for the objects that all queries match: an object matches at least one filter. A query with `AND`
 * gives one filter, a query with `OR` one per clause. A filter leaves out conditions that it cannot express.
 */
export const filtersOf = <Value>(
  queries: ReadonlyArray<SearchQuery>,
  searched: SearchedBy<Value>
): ReadonlyArray<Filter> =>
  queries
    .map(({ clauses, connective }) => {
      const found = clauses.map((clause) => filterOf(clause, searched))
      return connective === "OR" ? found : [found.reduce(both)]
    })
    .reduce((found, more) => found.flatMap((one) => more.map((other) => both(one, other))))

const EVERYTHING: Filter = { all: [], any: [], none: [] }

const filterOf = <Value>(clause: Clause, { closed, fields }: SearchedBy<Value>): Filter => {
  const { field, key, negated, operator, value } = clause
  const type = fields[field]!
  const name = key === undefined ? field : entryName(field, key)
  if (typeof value === "number") return rangeOf(clause, value)
  if (field === "id") return negated ? EVERYTHING : { ...EVERYTHING, id: value! }
  if (value === null) return negated ? has(presence(name)) : hasNot(presence(name))
  // A text with all trigrams need not contain the value, so the negation excludes nothing.
  if (operator === "~") return negated ? EVERYTHING : has(...parts(name, value))
  if (!negated) return has(exact(name, type, value))
  const others = closed[field]?.filter((other) => other !== folded(value))
  return others === undefined
    ? hasNot(exact(name, type, value))
    : { ...EVERYTHING, any: [others.map((other) => exact(name, type, other))] }
}

const has = (...all: ReadonlyArray<string>): Filter => ({ ...EVERYTHING, all })
const hasNot = (term: string): Filter => ({ ...EVERYTHING, none: [term] })

const OPPOSITES: Readonly<Record<string, Clause["operator"]>> = { ">": "<=", ">=": "<", "<": ">=", "<=": ">" }

const rangeOf = ({ field, negated, operator }: Clause, number: number): Filter => {
  if (negated && operator === ":") return EVERYTHING
  const [from, to] = endsOf(negated ? OPPOSITES[operator]! : operator, number)
  return field === "created"
    ? { ...EVERYTHING, created: { from, ...(to < Number.MAX_SAFE_INTEGER && { before: to + 1 }) } }
    : { ...EVERYTHING, measure: { from, to } }
}

/** Returns the bounds of a range of integers, both included. */
const endsOf = (operator: Clause["operator"], number: number): readonly [from: number, to: number] => {
  switch (operator) {
    case ">":
      return [number + 1, Number.MAX_SAFE_INTEGER]
    case ">=":
      return [number, Number.MAX_SAFE_INTEGER]
    case "<":
      return [0, number - 1]
    case "<=":
      return [0, number]
    default:
      return [number, number]
  }
}

/** Returns the intersection of two filters. If both name an id, the first stays; the check of the document decides. */
const both = (one: Filter, other: Filter): Filter => {
  const id = one.id ?? other.id
  const measure = intersection(one.measure, other.measure)
  const created = createdInBoth(one.created, other.created)
  return {
    all: [...one.all, ...other.all],
    any: [...one.any, ...other.any],
    none: [...one.none, ...other.none],
    ...(id !== undefined && { id }),
    ...(measure !== undefined && { measure }),
    ...(created !== undefined && { created })
  }
}

const intersection = (one: Filter["measure"], other: Filter["measure"]): Filter["measure"] => {
  if (one === undefined || other === undefined) return one ?? other
  return { from: Math.max(one.from, other.from), to: Math.min(one.to, other.to) }
}

const createdInBoth = (one: Filter["created"], other: Filter["created"]): Filter["created"] => {
  if (one === undefined || other === undefined) return one ?? other
  const from = Math.max(one.from ?? 0, other.from ?? 0)
  const before = Math.min(one.before ?? Infinity, other.before ?? Infinity)
  return { from, ...(before < Infinity && { before }) }
}

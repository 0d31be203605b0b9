/**
 * The search of payments, customers, products and payment links (semantics search.*): the indexed terms, and the
 * conditions of a search.
 */
import type { Customer } from "../../domain/Customer.ts"
import type { Metadata } from "../../domain/Metadata.ts"
import type { PaymentIntent } from "../../domain/PaymentIntent.ts"
import { PaymentIntentStatus } from "../../domain/PaymentIntentStates.ts"
import type { PaymentLink } from "../../domain/PaymentLink.ts"
import type { Product } from "../../domain/Product.ts"
import {
  type Clause,
  type Field,
  type Fields,
  folded,
  matches,
  type SearchQuery,
  type Values
} from "../../domain/SearchQuery.ts"
import {
  addTermsOf,
  finds,
  partTerm,
  type Reach,
  termsToFind,
  type Word,
  WORDS_MAX,
  wordsIn
} from "../../domain/SearchWords.ts"
import type { Searchable } from "../../engine/log/Document.ts"
import { type Filter, trigramsOf } from "../../engine/log/Search.ts"

/** The search fields of a kind, with their values, and its texts. */
export interface SearchedBy<Value> {
  readonly fields: Fields
  readonly valuesOf: (value: Value) => Values
  /** All values of fields that have few, so that a negation becomes a choice of the others. */
  readonly closed: Readonly<Record<string, ReadonlyArray<string>>>
  readonly texts?: Texts<Value>
}

/** The texts whose words find an object in the dashboard (semantics search.words). */
export interface Texts<Value> {
  /** The reach of the words of searches: words of objects have this one or `whole`. */
  readonly reach: Reach
  /** Adds the texts, most important ones first: of long texts, not all words count. */
  readonly addTexts: (value: Value, add: AddText) => void
}

type AddText = (text: string | null | undefined, reach: Reach) => void

const addMetadata = (metadata: Metadata, add: AddText, keyReach: Reach, reach: Reach): void => {
  for (const key in metadata) {
    add(key.replace(/(?<=[a-z])(?=[A-Z])/g, " "), keyReach)
    add(metadata[key], reach)
  }
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
  closed: {},
  texts: {
    reach: "part",
    addTexts: ({ description, email, metadata, name, phone }, add) => {
      add(name, "part")
      add(email, "part")
      add(phone, "part")
      // People type a number with other spaces than it is written with.
      add(phone?.replaceAll(/\D/g, ""), "part")
      addMetadata(metadata, add, "part", "part")
      add(description, "part")
    }
  }
}

/** A kind whose objects are found by their texts alone. */
const onlyTexts = <Value>(texts: Texts<Value>): SearchedBy<Value> => ({
  fields: {},
  valuesOf: () => ({}),
  closed: {},
  texts
})

export const SEARCHED_PRODUCT: SearchedBy<Product> = onlyTexts({
  reach: "part",
  addTexts: ({ description, metadata, name }, add) => {
    add(name, "part")
    addMetadata(metadata, add, "part", "part")
    add(description, "part")
  }
})

export const SEARCHED_PAYMENT_LINK: SearchedBy<PaymentLink> = onlyTexts({
  reach: "part",
  addTexts: ({ inactive_message, metadata, payment_intent_data }, add) => {
    addMetadata(metadata, add, "part", "part")
    addMetadata(payment_intent_data.metadata, add, "part", "part")
    add(payment_intent_data.description, "part")
    add(inactive_message, "part")
  }
})

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
  }),
  texts: {
    // Every create pays for these terms: parts would be twice as many.
    reach: "beginning",
    addTexts: ({ charges, description, metadata }, add) => {
      const details = charges.data[0]?.billing_details
      add(details?.name, "beginning")
      add(details?.email, "beginning")
      addMetadata(metadata, add, "whole", "beginning")
      add(description, "beginning")
    }
  }
}

/** Fields searched without terms: by the primary key, by the time in ids, and by ranges. */
const WITHOUT_TERMS: ReadonlySet<string> = new Set(["id", "created", "amount"])

/** Terms of different fields never collide: names contain neither `=` nor `~`, and metadata keys no closing bracket. */
const presence = (name: string): string => name
const exact = (name: string, { type }: Field, value: string): string =>
  `${name}=${type === "reference" ? value : folded(value)}`
/** Parts of all texts share terms, among them those of words. */
const parts = (value: string): ReadonlyArray<string> => trigramsOf(folded(value)).map(partTerm)
const entryName = (field: string, key: string): string => `${field}[${key}]`

const wordsOf = <Value>({ texts }: SearchedBy<Value>, value: Value): ReadonlyArray<Word> => {
  const words: Array<Word> = []
  texts?.addTexts(value, (text, reach) => {
    if (text == null || words.length === WORDS_MAX) return
    for (const word of wordsIn(text)) if (words.length < WORDS_MAX) words.push({ text: word, reach })
  })
  return words
}

/** Returns the terms and the number by which the engine finds an object. */
export const searchable =
  <Value>(searched: SearchedBy<Value>) =>
  (value: Value): Searchable => {
    const { fields, valuesOf } = searched
    const values = valuesOf(value)
    const terms: Array<string> = []
    const add = (name: string, field: Field, text: string) => {
      if (field.nullable || field.keyed) terms.push(presence(name))
      terms.push(exact(name, field, text))
      if (field.type === "text") terms.push(...parts(text))
    }
    for (const name in fields) {
      const found = values[name]
      if (WITHOUT_TERMS.has(name) || found == null) continue
      const field = fields[name]!
      if (!field.keyed) add(name, field, found as string)
      else for (const [key, text] of Object.entries(found)) add(entryName(name, key), field, text)
    }
    for (const word of wordsOf(searched, value)) addTermsOf(word, terms)
    return { terms, measure: (values["amount"] as number | undefined) ?? null }
  }

/** A condition on the objects of a kind. */
export interface Condition<Value> {
  /** An object that matches is found by at least one of these. They leave out what they cannot express. */
  readonly filters: ReadonlyArray<Filter>
  readonly matches: (value: Value) => boolean
}

/** The condition of a query. `AND` gives one filter, `OR` one per clause. */
export const queryCondition = <Value>(query: SearchQuery, searched: SearchedBy<Value>): Condition<Value> => {
  const found = query.clauses.map((clause) => filterOf(clause, searched))
  return {
    filters: query.connective === "OR" ? found : [found.reduce(both)],
    matches: (value) => matches(query, searched.fields, searched.valuesOf(value))
  }
}

/** The condition that a field without a key has one of these values, at least one. */
export const amongCondition = <Value>(
  field: string,
  values: ReadonlyArray<string>,
  { fields, valuesOf }: SearchedBy<Value>
): Condition<Value> => ({
  filters: [{ ...EVERYTHING, any: [values.map((value) => exact(field, fields[field]!, value))] }],
  matches: (value) => values.includes(valuesOf(value)[field] as string)
})

/** The condition that an object's texts have all words of a text; none has no words (semantics search.words). */
export const wordsCondition = <Value>(words: ReadonlyArray<string>, searched: SearchedBy<Value>): Condition<Value> => ({
  filters: words.length === 0 ? [] : [has(...words.flatMap((word) => termsToFind(word, searched.texts!.reach)))],
  matches: (value) => {
    const found = wordsOf(searched, value)
    return words.length > 0 && words.every((word) => found.some((other) => finds(word, other)))
  }
})

/** Returns whether an object has these words in full, and not only as parts of its words. */
export const hasWholeWords = <Value>(
  words: ReadonlyArray<string>,
  searched: SearchedBy<Value>,
  value: Value
): boolean => {
  const found = new Set(wordsOf(searched, value).map(({ text }) => text))
  return words.every((word) => found.has(word))
}

export const allOf = <Value>(
  first: Condition<Value>,
  ...others: ReadonlyArray<Condition<Value>>
): Condition<Value> => ({
  filters: others.reduce(
    (found, { filters }) => found.flatMap((one) => filters.map((other) => both(one, other))),
    first.filters
  ),
  matches: (value) => first.matches(value) && others.every((other) => other.matches(value))
})

export const anyOf = <Value>(conditions: ReadonlyArray<Condition<Value>>): Condition<Value> => ({
  filters: conditions.flatMap(({ filters }) => filters),
  matches: (value) => conditions.some((condition) => condition.matches(value))
})

const EVERYTHING: Filter = { all: [], any: [], none: [] }

const filterOf = <Value>(clause: Clause, { closed, fields }: SearchedBy<Value>): Filter => {
  const { field, key, negated, operator, value } = clause
  const type = fields[field]!
  const name = key === undefined ? field : entryName(field, key)
  if (typeof value === "number") return rangeOf(clause, value)
  if (field === "id") return negated ? EVERYTHING : { ...EVERYTHING, id: value! }
  if (value === null) return negated ? has(presence(name)) : hasNot(presence(name))
  // A text with all trigrams need not contain the value, so the negation excludes nothing.
  if (operator === "~") return negated ? EVERYTHING : has(...parts(value))
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

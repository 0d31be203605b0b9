/** The list of customers, with a search, and the form for a new customer. */
import { Effect, Layer } from "effect"
import { CreateCustomer, type Customer } from "../../domain/Customer.ts"
import { type Clause, SUBSTRING_LENGTH_MIN } from "../../domain/SearchQuery.ts"
import { hasBlank } from "../../domain/Text.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import type { FormValues } from "../../html/Forms.ts"
import { type Child, html } from "../../html/Html.ts"
import { seeOther } from "../../html/PageResponse.ts"
import * as Commands from "../../payments/lifecycles/Customers.ts"
import { CUSTOMER } from "../../payments/shared/Documents.ts"
import { allOf, type Condition, queryCondition, SEARCHED_CUSTOMER } from "../../payments/shared/Search.ts"
import { dialog, type Fields, filters, searchField } from "../frame/Form.ts"
import { type Column, type Cursor, cursorIn, pageLinks, searchPageLinks, table } from "../frame/Table.ts"
import { NOTHING, time } from "../frame/Values.ts"
import { csvFile, type CsvFile, csvJson, csvLink, createdColumn } from "../frame/CsvFile.ts"
import { decodeBody, readText } from "../frame/FormDecoding.ts"
import { BLANK } from "../payments/PaymentSearch.ts"
import { askedCondition, isNew, listObjects, PAGE_ROWS, searchObjects } from "../frame/Queries.ts"
import { action, download, page, type Show } from "../frame/Page.ts"

export const customerFields =
  (customer?: Customer) =>
  (fields: Fields): Child => [
    fields.text({ name: "email", label: "Email", type: "email", value: customer?.email ?? "" }),
    fields.text({ name: "name", label: "Name", value: customer?.name ?? "" }),
    fields.text({ name: "phone", label: "Phone", value: customer?.phone ?? "" }),
    fields.text({ name: "description", label: "Description", value: customer?.description ?? "" })
  ]

export const customerIn = (values: FormValues) => ({
  email: readText(values, "email"),
  name: readText(values, "name"),
  phone: readText(values, "phone"),
  description: readText(values, "description")
})

/** Searches for a part of the email or name. Texts that are too short for that must match exactly. */
const clausesOf = (query: URLSearchParams): ReadonlyArray<Clause> =>
  ["email", "name"].flatMap((field): ReadonlyArray<Clause> => {
    const value = query.get(field)?.trim() ?? ""
    const operator = value.length < SUBSTRING_LENGTH_MIN ? ":" : "~"
    return value === "" ? [] : [{ negated: false, field, operator, value }]
  })

const filterErrors = (query: URLSearchParams): Readonly<Record<string, string>> =>
  hasBlank(query.get("email")?.trim() ?? "") ? { email: BLANK } : {}

/** The condition of the filters; undefined without filters. */
const conditionOf = (query: URLSearchParams): Condition<Customer> | undefined => {
  const clauses = clausesOf(query)
  const [first, ...others] = [
    askedCondition(query, SEARCHED_CUSTOMER) ?? [],
    clauses.length === 0 ? [] : queryCondition({ connective: "AND", clauses }, SEARCHED_CUSTOMER)
  ].flat()
  return first && allOf(first, ...others)
}

const findCustomers = (
  account: AccountId,
  condition: Condition<Customer> | undefined,
  page: { cursor: Cursor; limit: number }
) =>
  condition === undefined ? listObjects(account, CUSTOMER, page) : searchObjects(account, CUSTOMER, condition, page)

export const CUSTOMER_COLUMNS: ReadonlyArray<Column<Customer>> = [
  {
    name: "Customer",
    long: true,
    cell: ({ email, id, name }) => html`<bdi>${name ?? email ?? html`<code>${id}</code>`}</bdi>`
  },
  // Without a name, the first column shows the email.
  { name: "Email", cell: ({ email, name }) => (email === null ? NOTHING : name !== null && email) },
  { name: "Description", long: true, wide: true, cell: ({ description }) => description ?? NOTHING },
  { name: "Created", wide: true, cell: ({ created }) => time(created) }
]

const show: Show = Effect.fnUntraced(function* (visit, _, problem) {
  const { account, query } = visit
  const errors = filterErrors(query)
  const isWrong = Object.keys(errors).length > 0
  const condition = conditionOf(query)
  const { hasMore, rows } = isWrong
    ? { hasMore: false, rows: [] }
    : yield* findCustomers(account, condition, { cursor: cursorIn(query), limit: PAGE_ROWS })
  return {
    title: "Customers",
    section: "Customers",
    ...(isWrong && { status: 400 }),
    live: ["customer"],
    aside: html`<div class="buttons">
      ${!isWrong && csvLink(visit, "/customers.csv", rows)}
      ${
        visit.may("build") &&
        dialog("New customer", {
          visit,
          tone: "primary",
          action: "/customers/create",
          submit: "Create",
          problem,
          content: customerFields()
        })
      }
    </div>`,
    content: [
      !isNew(visit, rows) &&
        filters(
          visit,
          "/customers",
          (fields) => [fields.text({ name: "email", label: "Email" }), fields.text({ name: "name", label: "Name" })],
          {
            errors,
            search: searchField("A name, an email, a phone number, or words of the description or metadata.")
          }
        ),
      table({
        caption: "Customers, newest first",
        columns: CUSTOMER_COLUMNS,
        rows,
        href: ({ id }) => visit.to(`/customers/${id}`),
        empty: isWrong
          ? "We couldn't read this search. Correct the marked field."
          : condition !== undefined
            ? clausesOf(query).some(({ operator }) => operator === ":")
              ? `No exact match. Enter at least ${SUBSTRING_LENGTH_MIN} characters to search for a part.`
              : "No customers match this search."
            : "No customers yet. A customer keeps the payments and saved cards of one person together."
      }),
      (condition === undefined ? pageLinks : searchPageLinks)(visit, rows, hasMore)
    ]
  }
})

const create = action({
  name: "customer.create",
  right: "build",
  page: "/customers",
  path: "/customers/create",
  show,
  notice: "Customer created.",
  prepare: (_, __, values) => {
    const entered = customerIn(values)
    return Effect.succeed({
      entered,
      next: ({ id }) => `/customers/${id}`,
      command: Effect.flatMap(decodeBody(CreateCustomer, entered), Commands.create)
    })
  }
})

const columns: CsvFile<Customer>["columns"] = [
  ["Customer ID", ({ id }) => id],
  createdColumn(({ created }) => created),
  ["Name", ({ name }) => name],
  ["Email", ({ email }) => email],
  ["Phone", ({ phone }) => phone],
  ["Description", ({ description }) => description],
  ["Metadata (JSON)", ({ metadata }) => csvJson(metadata)]
]

const file = download("/customers.csv", "see", (visit) =>
  Object.keys(filterErrors(visit.query)).length > 0
    ? Effect.succeed(seeOther(visit.to("/customers", Object.fromEntries(visit.query))))
    : csvFile(visit, {
        name: "customers",
        columns,
        read: (page) => findCustomers(visit.account, conditionOf(visit.query), page)
      })
)

export const layer = Layer.mergeAll(page("/customers", "see", show), create, file)

/**
 * Lists in Postgres. They read about as many rows as they return. A generic plan, which is made for all parameters, may
 * read a million rows to return ten: where the best plan depends on the values, the query is written so that no other
 * plan is possible, or is planned each time.
 */
import type { PgClient } from "@effect/sql-pg"
import type { Fragment } from "effect/sql/Statement"
import type { Between } from "../engine/log/Created.ts"
import type { AccountId } from "../engine/log/Document.ts"
import type { DocumentRow, EventRow } from "../engine/views/Projection.ts"
import type { Cursor, EventQuery, ListQuery, Views } from "../engine/views/Views.ts"
import { bigints, execute, labelsText, type Sql, type SqlDocument, texts, toDocument, toEvent } from "./Rows.ts"

const order = (sql: PgClient.PgClient, { newerThan }: Cursor): Fragment =>
  newerThan === undefined ? sql`DESC` : sql`ASC`

/** Sorts after every id. */
const LAST = "\u{10ffff}"

interface Bounded extends Cursor, Between {
  readonly prefix?: string | undefined
}

/**
 * Returns the two texts between which a query's ids lie. The ids of a kind lie between its prefix with an underscore
 * and with a backtick, the next character. Ids are ASCII, so texts compare here as in Postgres.
 */
export const boundsOf = ({ before = LAST, behind = "", newerThan = "", olderThan = LAST, prefix }: Bounded) => {
  const [first, last] = prefix === undefined ? ["", LAST] : [`${prefix}_`, `${prefix}\``]
  return [
    [behind, newerThan, first].reduce((a, b) => (a < b ? b : a)),
    [before, olderThan, last].reduce((a, b) => (a < b ? a : b))
  ] as const
}

/** Builds `AND id > … AND id < …` with the order in which the nearest to the cursor is first. */
export const from = (sql: PgClient.PgClient, query: Bounded): Fragment => {
  const [behind, before] = boundsOf(query)
  return sql`AND id > ${behind} AND id < ${before} ORDER BY id ${order(sql, query)}`
}

/**
 * Returns the index by which a list finds its documents. Customers and products may have any number of documents, so
 * each of these labels has an index in the order of ids. Few documents share another label that is an id or an email,
 * which may be any text (semantics lists.email).
 */
const wayOf = ({ labels = {} }: ListQuery): "kind" | "label" | "customer" | "product" => {
  const { customer, product, ...others } = labels
  const isRare = (name: string, value: string) => name === "email" || /_[0-9A-Za-z]{24}$/.test(value)
  if (Object.entries(others).some(([name, value]) => isRare(name, value))) return "label"
  if (customer !== undefined) return "customer"
  return product === undefined ? "kind" : "product"
}

export const COLUMNS = `account, id, kind, version, document_at, document_length, hidden_at, hidden_length, labels, format,
  checksum`

export const documents = (sql: PgClient.PgClient): Pick<Views["Service"], "list" | "newest"> => {
  const columns = sql.literal(COLUMNS)
  // The empty string keeps the planner off the primary key, which it prefers without statistics.
  const notByKey = sql`account || ''`
  const labelled = (labels: string | null) => (labels === null ? sql`` : sql`AND labels @> ${labels}::jsonb`)
  const ordinary = (account: AccountId, query: ListQuery, labels: string | null) =>
    sql<SqlDocument>`SELECT ${columns} FROM objects
      WHERE account = ${account} AND kind = ${query.kind} AND document_at IS NOT NULL
        ${labelled(labels)} ${from(sql, query)} LIMIT ${query.limit}`
  // Few rows, which are cheap to sort.
  const rare = (account: AccountId, query: ListQuery, labels: string | null) =>
    sql<SqlDocument>`SELECT * FROM (
        SELECT ${columns} FROM objects
        WHERE ${notByKey} = ${account} AND kind = ${query.kind} AND document_at IS NOT NULL ${labelled(labels)} OFFSET 0
      ) AS found WHERE true ${from(sql, query)} LIMIT ${query.limit}`
  const owned = (account: AccountId, query: ListQuery, labelName: "customer" | "product") => {
    const { [labelName]: name, ...others } = query.labels ?? {}
    const owner = sql.literal(`(labels ->> '${labelName}') COLLATE "C"`)
    const [behind, before] = boundsOf(query)
    return sql<SqlDocument>`SELECT ${columns} FROM objects
      WHERE ${owner} = ${name} AND id > ${behind} AND id < ${before}
        AND ${notByKey} = ${account} AND kind = ${query.kind} AND document_at IS NOT NULL
        AND labels @> ${JSON.stringify(others)}::jsonb
      ORDER BY id ${order(sql, query)} LIMIT ${query.limit}`
  }
  const found = (account: AccountId, query: ListQuery) => {
    const labels = labelsText(query)
    const way = wayOf(query)
    if (way === "label") return rare(account, query, labels)
    if (way !== "kind") return owned(account, query, way)
    const rows = ordinary(account, query, labels)
    // The best plan depends on the label: every second Checkout Session may have a status, or one in a million.
    return labels === null ? rows : rows.unprepared
  }
  return {
    list: (account, query) => execute(found(account, query), (rows) => rows.map(toDocument)),
    newest: (queries) =>
      execute(
        sql<SqlDocument & { position: bigint }>`
          SELECT position, found.* FROM unnest(
              ${texts(queries.map((q) => q.account))}, ${texts(queries.map((q) => q.kind))},
            ${texts(queries.map((q) => boundsOf(q)[0]))}, ${texts(queries.map((q) => boundsOf(q)[1]))},
            ${bigints(queries.map((q) => q.limit))})
            WITH ORDINALITY AS wanted (in_account, of_kind, behind, before, most, position),
          LATERAL (
            SELECT ${columns} FROM objects
            WHERE account = in_account AND id > behind AND id < before AND kind = of_kind AND document_at IS NOT NULL
            ORDER BY id DESC LIMIT most
          ) AS found
          ORDER BY position, id DESC`,
        (rows) => {
          const answers = queries.map((): Array<DocumentRow> => [])
          for (const row of rows) answers[Number(row.position) - 1]!.push(toDocument(row))
          return answers
        }
      )
  }
}

/**
 * Events in Postgres. Their only index begins with the type, then the id, because a second index would cost every event
 * that is written. A query for several or all types skips along it from type to type: there are some dozens.
 */
export const events = (sql: PgClient.PgClient): Pick<Views["Service"], "event" | "events"> => {
  const typesFrom = (account: AccountId, prefix: string) =>
    sql`WITH RECURSIVE types (type) AS (
        (SELECT type FROM events WHERE account = ${account} AND type >= ${prefix} ORDER BY type LIMIT 1)
        UNION ALL
        SELECT (
                SELECT e.type FROM events e WHERE e.account = ${account} AND e.type > types.type ORDER BY e.type LIMIT 1
              )
        FROM types WHERE starts_with(types.type, ${prefix})
      )`
  const ofType = (account: AccountId, type: string | Fragment, query: EventQuery) =>
    sql`SELECT account, id, type, version FROM events
      WHERE account = ${account} AND type = ${type} ${from(sql, query)} LIMIT ${query.limit}`
  // Reads `limit` events of each type, and returns the nearest of them.
  const ofTypes = (account: AccountId, prefix: string, query: EventQuery) =>
    sql`${typesFrom(account, prefix)}
      SELECT found.* FROM types, LATERAL (${ofType(account, sql`types.type`, query)}) AS found
      WHERE starts_with(types.type, ${prefix}) ORDER BY id ${order(sql, query)} LIMIT ${query.limit}`
  const rowsOf = (account: AccountId, query: EventQuery) => {
    const { type = { prefix: "" } } = query
    return "exact" in type ? ofType(account, type.exact, query) : ofTypes(account, type.prefix, query)
  }
  return {
    event: ({ account, id }) =>
      execute(
        sql<Sql<EventRow>>`${typesFrom(account, "")}
          SELECT found.* FROM types, LATERAL (
            SELECT account, id, type, version FROM events
            WHERE account = ${account} AND type = types.type AND id = ${id} LIMIT 1
          ) AS found`,
        ([row]) => row && toEvent(row)
      ),
    events: (account, query) => execute(sql<Sql<EventRow>>`${rowsOf(account, query)}`, (rows) => rows.map(toEvent))
  }
}

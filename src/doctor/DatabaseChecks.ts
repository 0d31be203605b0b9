/** Checks of the database: its settings, Till's tables in it, and the work that waits there. They only read. */
import { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import { type Report, report } from "../cluster/Report.ts"
import { innermostMessage } from "../engine/log/Journal.ts"
import type { Millis } from "../engine/log/Document.ts"
import { connectionsMax } from "../postgres/Database.ts"
import * as Migrations from "../postgres/Migrations.ts"
import { bigint } from "../postgres/Rows.ts"
import { bytes, count, duration, type Finding, ok, problem, unknown, warning } from "./Finding.ts"

const CLOCK_WARNING_MILLIS = 1000
const CLOCK_PROBLEM_MILLIS = 30_000
const ROUND_TRIP_WARNING_MILLIS = 5
const ROUND_TRIPS = 5
const LAG_WARNING = 10_000
/** Work that is overdue by less is on its way. */
const OVERDUE_MILLIS = 60_000
const WEBHOOKS_WARNING_MILLIS = 3_600_000
const COUNTED_MAX = 10_000
const ANCHOR_WARNING_MILLIS = 2 * 3_600_000
const DAYS_LEFT_WARNING = 30
const DAY_MILLIS = 86_400_000

interface Server {
  readonly version: string
  readonly off: ReadonlyArray<string>
  readonly commits: string
  readonly checksums: string
  readonly vacuum: string
  readonly connections: number
  readonly connections_max: number
  readonly bytes: number
}

const server = (sql: PgClient.PgClient) =>
  Effect.map(
    sql<Server>`SELECT current_setting('server_version') AS version,
      ARRAY(SELECT name FROM unnest(ARRAY['fsync', 'full_page_writes']) AS s (name)
        WHERE current_setting(name) = 'off') AS off,
      current_setting('synchronous_commit') AS commits, current_setting('data_checksums') AS checksums,
      current_setting('autovacuum') AS vacuum, current_setting('max_connections')::int AS connections_max,
      (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
      pg_database_size(current_database())::float8 AS bytes`,
    ([row]) => settingsOf(row!)
  )

const settingsOf = (row: Server): ReadonlyArray<Finding> => {
  const left = row.connections_max - row.connections
  return [
    ok("database", `Postgres ${row.version}, ${bytes(row.bytes)} of data`),
    row.off.length > 0
      ? problem(
          "database.durability",
          `Postgres runs without ${row.off.join(" and ")}: a crash of its machine may lose what was acknowledged`,
          `Set ${row.off.map((name) => `${name} = on`).join(", ")} and restart Postgres.`
        )
      : ok("database.durability", `fsync and full_page_writes are on, synchronous_commit is ${row.commits}`),
    ...(row.checksums === "on"
      ? []
      : [
          warning(
            "database.checksums",
            "Postgres does not notice pages that its disk has damaged",
            "Turn checksums on while Postgres is stopped: pg_checksums --enable."
          )
        ]),
    ...(row.vacuum === "on"
      ? []
      : [warning("database.autovacuum", "autovacuum is off: tables grow without limit", "Set autovacuum = on.")]),
    left < connectionsMax
      ? warning(
          "database.connections",
          `${row.connections} of ${row.connections_max} connections are in use`,
          "Raise max_connections: each Till process takes up to 13."
        )
      : ok("database.connections", `${row.connections} of ${row.connections_max} connections are in use`)
  ]
}

/** The difference between the clocks, and the time of a round trip. */
const clocks = (sql: PgClient.PgClient) =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const trips: Array<{ readonly millis: number; readonly ahead: number }> = []
    for (let i = 0; i < ROUND_TRIPS; i++) {
      const [began, sent] = [performance.now(), clock.currentTimeMillisUnsafe()]
      const [row] = yield* sql<{ now: number }>`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`
      const millis = performance.now() - began
      trips.push({ millis, ahead: sent + millis / 2 - row!.now })
    }
    return clocksOf(trips.reduce((best, trip) => (trip.millis < best.millis ? trip : best)))
  })

const clocksOf = ({ ahead, millis }: { readonly millis: number; readonly ahead: number }): ReadonlyArray<Finding> => {
  const away = Math.abs(ahead)
  const text = `This machine's clock is ${Math.round(away)} ms ${ahead > 0 ? "ahead of" : "behind"} the database's`
  const remedy = "Let a time service such as chrony keep both clocks."
  const trip = `A question to the database takes ${millis.toFixed(1)} ms`
  return [
    away > CLOCK_PROBLEM_MILLIS
      ? problem("clock", text, remedy)
      : away > CLOCK_WARNING_MILLIS
        ? warning("clock", text, remedy)
        : ok("clock", "This machine's clock agrees with the database's"),
    millis > ROUND_TRIP_WARNING_MILLIS
      ? warning("database.distance", trip, "Every write waits for it: put Till and Postgres close together.")
      : ok("database.distance", trip)
  ]
}

/** True for tables of this Till, as a finding. */
const tables = Migrations.requireToday.pipe(
  Effect.match({
    onSuccess: (migration) => ok("database.tables", `The tables are those of this Till (migration ${migration})`),
    onFailure: ({ message }) => problem("database.tables", message, "Use the version of Till that fits the database.")
  })
)

const LEASE_MILLIS = 6000

const runnersOf = ({ partitions, runners }: Report): ReadonlyArray<Finding> => {
  const lag = partitions.reduce((sum, { lag_records }) => sum + lag_records, 0)
  const waits = `${count(lag)} records are not yet in lists and search`
  const views =
    lag > LAG_WARNING
      ? warning("views", waits, "This catches up by itself; if it grows, the database is too slow for the load.")
      : ok("views", lag === 0 ? "Lists and search are up to date" : waits)
  if (runners.length === 0) return [views]
  const gone = runners.filter(
    ({ confirmed_millis_ago: ago, healthy, leaving }) => !leaving && (!healthy || ago === null || ago > LEASE_MILLIS)
  )
  const served = new Set(runners.flatMap((runner) => runner.partitions))
  const unserved = partitions.filter(({ id }) => !served.has(id)).length
  return [
    views,
    gone.length > 0
      ? problem(
          "runners",
          `${gone.map(({ url }) => url).join(", ")} no longer answer the others`,
          "Look at their machines and logs; the others take over within seconds."
        )
      : ok("runners", `${runners.length} runners, all healthy`),
    ...(unserved > 0
      ? [
          problem(
            "runners.partitions",
            `${unserved} of ${partitions.length} partitions are served by no runner`,
            "Their accounts are refused until a runner takes them; if that lasts longer than 10 seconds, restart one."
          )
        ]
      : []),
    ...runners
      .filter(({ clock_ahead_millis: ahead }) => Math.abs(ahead) > CLOCK_WARNING_MILLIS)
      .map(({ clock_ahead_millis: ahead, url }) =>
        warning("runners.clock", `The clock of ${url} is ${ahead} ms ahead`, "Let a time service keep its clock.")
      )
  ]
}

/** Processors of a restored installation that are only asked. */
const restored = (sql: PgClient.PgClient) =>
  Effect.map(
    sql<{
      id: string
    }>`SELECT id FROM objects WHERE kind = 'processor' AND labels @> '{"restored":"true"}' ORDER BY id`,
    (rows) =>
      rows.map(({ id }) =>
        warning(
          "processors.restored",
          `The installation was restored from a backup and not yet compared with ${id}: it takes no payments`,
          `Run till processors reconcile ${id}, then till processors resume ${id}.`
        )
      )
  )

interface Waiting {
  readonly webhooks: number
  readonly webhooks_since: Millis | null
  readonly timers: number
}

const waiting = (sql: PgClient.PgClient, now: Millis) =>
  Effect.map(
    sql<Waiting>`SELECT
      (SELECT count(*)::int FROM (SELECT 1 FROM deliveries WHERE state = 'pending' LIMIT ${COUNTED_MAX}) AS d) AS webhooks,
      (SELECT min(due_at)::float8 FROM (SELECT due_at FROM deliveries
        WHERE state = 'pending' AND due_at <= ${bigint(now)} LIMIT ${COUNTED_MAX}) AS d) AS webhooks_since,
      (SELECT count(*)::int FROM (SELECT 1 FROM timers WHERE wake_at <= ${bigint(now - OVERDUE_MILLIS)}
        LIMIT ${COUNTED_MAX}) AS t) AS timers`,
    ([row]) => waitingOf(row!, now)
  )

const atLeast = (found: number): string => `${found === COUNTED_MAX ? "At least " : ""}${count(found)}`

const waitingOf = ({ timers, webhooks, webhooks_since: since }: Waiting, now: Millis): ReadonlyArray<Finding> => {
  const queue = `${atLeast(webhooks)} webhooks wait for their delivery`
  return [
    since !== null && now - since > WEBHOOKS_WARNING_MILLIS
      ? warning(
          "webhooks",
          `${queue}, one since ${duration(now - since)}`,
          "Does the service run? The dashboard shows which endpoints fail (Developers, Webhooks)."
        )
      : ok("webhooks", webhooks === 0 ? "No webhook waits" : queue),
    timers > 0
      ? warning(
          "timers",
          `${atLeast(timers)} timers are overdue: sessions and holds that should have ended`,
          "They run when the service does; if it runs, look for errors in its log."
        )
      : ok("timers", "No timer is overdue")
  ]
}

interface Growth {
  readonly records: number
  readonly recent: number
  readonly first: Millis | null
  readonly last: Millis | null
  readonly anchored: Millis | null
  readonly moved: boolean
  readonly bytes: number
}

/** Growth within a day, by the anchors, which hold each account's newest record once an hour. */
const growth = (sql: PgClient.PgClient, now: Millis, free: number | undefined) =>
  Effect.map(
    sql<Growth>`WITH recent AS (
        SELECT at, head ->> 0 AS account, (head ->> 1)::bigint AS version
        FROM anchors, LATERAL jsonb_array_elements(heads::jsonb) AS head
        WHERE at > ${bigint(now - DAY_MILLIS)}
      ), newest AS (SELECT at, heads FROM anchors ORDER BY sequence DESC LIMIT 1)
      SELECT (SELECT coalesce(sum(version), 0)::float8 FROM checkpoints) AS records,
        (SELECT coalesce(sum(grown), 0)::float8 FROM
          (SELECT max(version) - min(version) AS grown FROM recent GROUP BY account) AS accounts) AS recent,
        (SELECT min(at)::float8 FROM recent) AS first, (SELECT max(at)::float8 FROM recent) AS last,
        (SELECT at::float8 FROM newest) AS anchored,
        (SELECT coalesce(bool_or(c.version > (head ->> 1)::bigint), false) FROM newest,
          LATERAL jsonb_array_elements(heads::jsonb) AS head JOIN checkpoints c ON c.account = head ->> 0) AS moved,
        pg_database_size(current_database())::float8 AS bytes`,
    ([row]) => [...anchorOf(row!, now), ...growthOf(row!, free)]
  )

const anchorOf = ({ anchored, moved, records }: Growth, now: Millis): ReadonlyArray<Finding> => {
  const check = "upkeep.anchor"
  const remedy = "The running service makes one every hour: does it run, and does its log name a reason?"
  if (anchored === null) return records === 0 ? [] : [warning(check, "No record is anchored yet", remedy)]
  const text = `The newest anchor is ${duration(now - anchored)} old`
  return [moved && now - anchored > ANCHOR_WARNING_MILLIS ? warning(check, text, remedy) : ok(check, text)]
}

const growthOf = (
  { bytes: size, first, last, recent, records }: Growth,
  free: number | undefined
): ReadonlyArray<Finding> => {
  if (first === null || last === null || last <= first || records === 0) return []
  const perDay = ((recent / (last - first)) * DAY_MILLIS * size) / records
  const text = `The data grows by about ${bytes(perDay)} a day`
  if (free === undefined || perDay === 0) return [ok("disk.growth", text)]
  const days = Math.floor(free / perDay)
  const lasts = `${text}: the disk lasts for ${count(days)} days`
  return [
    days < DAYS_LEFT_WARNING
      ? warning("disk.growth", lasts, "Plan for a larger disk, or for less history in test mode.")
      : ok("disk.growth", lasts)
  ]
}

/**
 * Runs all checks on a connection. `free` is the free space in bytes if the database lies on this machine's disk, and
 * `secret` a check of today's tables.
 */
export const checks = Effect.fnUntraced(function* <R>(
  free: number | undefined,
  secret: Effect.Effect<ReadonlyArray<Finding>, never, R> | undefined
) {
  const sql = yield* PgClient.PgClient
  const now = yield* Clock.currentTimeMillis
  const given = <E>(check: string, found: Effect.Effect<ReadonlyArray<Finding>, E, PgClient.PgClient>) =>
    Effect.catch(found, (error) => Effect.succeed([unknown(check, `Not known: ${innermostMessage(error)}`)]))
  const isToday = yield* tables
  const settings = [...(yield* given("database", server(sql))), ...(yield* given("clock", clocks(sql))), isToday]
  // The questions below are of today's tables.
  if (isToday.level !== "ok") return settings
  return [
    ...settings,
    ...(secret === undefined ? [] : yield* secret),
    ...(yield* given("views", Effect.map(report, runnersOf))),
    ...(yield* given("processors.restored", restored(sql))),
    ...(yield* given("webhooks", waiting(sql, now))),
    ...(yield* given("upkeep.anchor", growth(sql, now, free)))
  ]
})

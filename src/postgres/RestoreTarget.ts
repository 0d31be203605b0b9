/**
 * The database that a backup is restored into.
 *
 * It must be empty, or left by a restore that has not completed. A marker table is created before anything of the
 * backup is written, and dropped last: while it exists, only a restore works on the database (`Migrations.ts`). So a
 * killed restore leaves nothing that looks like an installation, and the next one starts from the beginning.
 */
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { innermostMessage } from "../engine/log/Journal.ts"
import { DatabaseUnavailable, RESTORE_TABLE } from "./Database.ts"

export class NotEmpty extends Schema.TaggedError<NotEmpty>()("NotEmpty", { tables: Schema.Array(Schema.String) }) {
  override get message() {
    return this.tables.includes("journal")
      ? "There is an installation already: restore into an empty TILL_DATA_DIR, or an empty database."
      : `The database has tables that are not Till's (${this.tables.slice(0, 3).join(", ")}): restore into an empty one.`
  }
}

const unavailable = Effect.mapError((error: { readonly _tag: string }) =>
  error instanceof NotEmpty ? error : new DatabaseUnavailable({ message: innermostMessage(error) })
)

/** The advisory lock under which a restore claims the database: two must not both find it empty. */
const LOCK = 0x7469_6c6c

/** Claims the database for the restore, and deletes the rows of an earlier restore. */
export const claim: Effect.Effect<void, NotEmpty | DatabaseUnavailable, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`SELECT pg_advisory_xact_lock(${LOCK})`
      // Tables of extensions do not count.
      const tables = (yield* sql<{ name: string }>`SELECT relname::text AS name FROM pg_class
        WHERE relkind IN ('r', 'p')
          AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
          AND NOT EXISTS (SELECT FROM pg_depend
            WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')
        ORDER BY relname`).map(({ name }) => name)
      if (!tables.includes(RESTORE_TABLE)) {
        if (tables.length > 0) return yield* new NotEmpty({ tables })
        yield* sql.unsafe(`CREATE TABLE ${RESTORE_TABLE} (begun_at timestamptz NOT NULL DEFAULT now())`)
        return
      }
      const left = tables.filter((name) => name !== RESTORE_TABLE && name !== "effect_sql_migrations")
      if (left.length > 0)
        yield* sql.unsafe(`TRUNCATE ${left.map((name) => `"${name.replaceAll('"', '""')}"`).join(", ")}`)
    })
  )
}).pipe(unavailable)

/** Releases the database, now an installation, with statistics for its first statements' plans. */
export const release: Effect.Effect<void, NotEmpty | DatabaseUnavailable, SqlClient.SqlClient> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`ANALYZE`
    yield* sql.unsafe(`DROP TABLE ${RESTORE_TABLE}`)
  }
).pipe(unavailable)

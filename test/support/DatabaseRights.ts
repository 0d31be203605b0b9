/** Rights that only tests give the role of an embedded Postgres. */
import { Effect } from "effect"
import { administrate, openCluster, roleName, secure } from "../../src/postgres/embedded/Cluster.ts"
import { prepare } from "../../src/postgres/embedded/DataFolder.ts"

/** Makes the cluster of a data folder and gives its role attributes. No server may run there. */
export const grantIn = Effect.fnUntraced(function* (dataFolder: string, attributes: string) {
  const cluster = yield* openCluster(yield* prepare(dataFolder))
  yield* administrate(cluster, [`ALTER ROLE ${roleName} ${attributes}`, `GRANT pg_checkpoint TO ${roleName}`])
  yield* secure(cluster)
})

/** Attributes for the creation of databases and roles. */
export const MAKES_DATABASES = "CREATEDB CREATEROLE"

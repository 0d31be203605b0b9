/** Prepares what a service needs before it is loaded: the database of its first start. */
import { Console, Effect } from "effect"
import * as Config from "../config.ts"
import { Announcement } from "../postgres/embedded/Announcement.ts"
import * as Cluster from "../postgres/embedded/Cluster.ts"

/** Creates the embedded database if there is none. Calls `onWaiting` when another process begins to work on it. */
export const prepare = (onWaiting: () => void) =>
  Effect.flatMap(Config.TillConfig, ({ dataFolder, databaseUrl }) =>
    databaseUrl === undefined ? Cluster.createAhead(dataFolder) : Effect.void
  ).pipe(
    Effect.provide(Config.layer),
    Effect.provideService(Announcement, (line) => Effect.andThen(Console.log(line), Effect.sync(onWaiting)))
  )

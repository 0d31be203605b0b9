/** What a process has to do with others on its database: it shares the installation's partitions with them. */
import { Context, Effect, Layer } from "effect"

export interface ClusterShape {
  /** Waits until every partition was found to be served, here or elsewhere. */
  readonly ready: Effect.Effect<void>
  /** Gives all partitions over to others, and takes none any more. Ends when none is left here. */
  readonly leave: Effect.Effect<void>
}

export class Cluster extends Context.Service<Cluster, ClusterShape>()("till/cluster/Cluster") {
  /** The database is this process' alone. */
  static readonly layerAlone: Layer.Layer<Cluster> = Layer.succeed(Cluster, { ready: Effect.void, leave: Effect.void })
}

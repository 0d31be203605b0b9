/** Membership among the processes on a database. `Runner.ts` implements it, and is loaded only if needed. */
import { Context, Effect, Layer } from "effect"

export interface ClusterShape {
  /** Waits until every partition is served, here or by another process. */
  readonly ready: Effect.Effect<void>
  /** Hands all partitions over to other processes, and acquires no more. Returns when none is left here. */
  readonly leave: Effect.Effect<void>
}

export class Cluster extends Context.Service<Cluster, ClusterShape>()("till/cluster/Cluster") {
  /** For a process that has the database to itself. */
  static readonly layerAlone: Layer.Layer<Cluster> = Layer.succeed(Cluster, { ready: Effect.void, leave: Effect.void })
}

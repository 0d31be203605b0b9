/**
 * The process' membership among the processes on its database, which share the installation's partitions. `Runner.ts`
 * implements it; it is loaded only when there may be several processes.
 */
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

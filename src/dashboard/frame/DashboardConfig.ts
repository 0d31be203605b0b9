/** The composition root tells the dashboard this about the installation. */
import { Context } from "effect"

export interface DashboardConfigShape {
  /** Why nobody can sign in, in words for whoever tries; null if people can (semantics 9.63). */
  readonly refusal: string | null
  /** True if only this machine's own browsers come here, so that it is asked for by a name of this machine only. */
  readonly isForThisMachine: boolean
}

export class DashboardConfig extends Context.Service<DashboardConfig, DashboardConfigShape>()(
  "till/dashboard/DashboardConfig"
) {}

/** Settings of the installation that the dashboard needs; the composition root provides them. */
import { Context } from "effect"

export interface DashboardConfigShape {
  /** The reason why sign-in is turned off; null if it is on (semantics dashboard.browser). */
  readonly refusal: string | null
  /** True if the dashboard serves this machine's browsers only; it then answers to names of this machine only. */
  readonly isForThisMachine: boolean
}

export class DashboardConfig extends Context.Service<DashboardConfig, DashboardConfigShape>()(
  "till/dashboard/DashboardConfig"
) {}

/** Rights of each role (semantics dashboard.roles), all in one table. */
import type { Role } from "../../domain/Person.ts"

export type Right =
  /** See everything except keys and the team. */
  | "see"
  /** Refund, capture and cancel payments. */
  | "settle"
  /** Edit products, customers, checkouts, webhooks, settings and test keys. */
  | "build"
  /** Create, roll and revoke live keys. */
  | "live_keys"
  /** Manage people and roles, and read the audit log. */
  | "team"
  /** Add, pause, resume and retire processors, and decide about operations at them. */
  | "processors"

const RIGHTS: Readonly<Record<Role, ReadonlySet<Right>>> = {
  owner: new Set(["see", "settle", "build", "live_keys", "team", "processors"]),
  developer: new Set(["see", "settle", "build"]),
  support: new Set(["see", "settle"])
}

export const may = (role: Role, right: Right): boolean => RIGHTS[role].has(right)

/** What people may do by their role (semantics 9.61). This is the one table. */
import type { Role } from "../../domain/Person.ts"

export type Right =
  /** Look at everything but keys and the team. */
  | "see"
  /** Move money of payments that there are: refund, capture, cancel. */
  | "settle"
  /** Change what is sold and how it is sold: products, customers, checkouts, webhooks, keys of test mode, settings. */
  | "build"
  /** Make, roll and revoke keys of live mode. */
  | "live_keys"
  /** Add people, change their roles, remove them, and see what everybody did. */
  | "team"

const RIGHTS: Readonly<Record<Role, ReadonlySet<Right>>> = {
  owner: new Set(["see", "settle", "build", "live_keys", "team"]),
  developer: new Set(["see", "settle", "build"]),
  support: new Set(["see", "settle"])
}

export const may = (role: Role, right: Right): boolean => RIGHTS[role].has(right)

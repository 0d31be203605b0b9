/**
 * Which account holds what: every merchant has one account per environment, and the installation has one of its own
 * for merchants and API keys. Nothing crosses accounts, so environments are isolated by construction (semantics A9).
 */
import type { AccountId } from "../engine/Document.ts"

/** Holds merchants and API keys. */
export const INSTALLATION: AccountId = "till"

/** A merchant's account in one environment. */
export const accountOf = (merchantId: string, livemode: boolean): AccountId =>
  `${merchantId}:${livemode ? "live" : "test"}`

/** The merchant that an account belongs to. */
export const merchantIdOf = (account: AccountId): string => account.slice(0, account.lastIndexOf(":"))

export const isLive = (account: AccountId): boolean => account.endsWith(":live")

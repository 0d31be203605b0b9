/**
 * The ids of accounts. A merchant has one account per environment; the installation has one account for all merchants
 * and API keys. No command touches two accounts, so environments are isolated by construction (semantics
 * keys.environments).
 */
import type { AccountId } from "../../engine/log/Document.ts"

/** The installation's account, which holds merchants and API keys. */
export const INSTALLATION: AccountId = "till"

export const accountOf = (merchantId: string, livemode: boolean): AccountId =>
  `${merchantId}:${livemode ? "live" : "test"}`

export const merchantIdOf = (account: AccountId): string => account.slice(0, account.lastIndexOf(":"))

export const isTest = (account: AccountId): boolean => account.endsWith(":test")

export const isLive = (account: AccountId): boolean => account.endsWith(":live")

/**
 * The ids of accounts. Every merchant has one account per environment, and the installation has one of its own for
 * merchants and API keys. Nothing crosses accounts, so environments are isolated by construction (semantics A9).
 */
import type { AccountId } from "../engine/log/Document.ts"

/** The installation's account, which holds merchants and API keys. */
export const INSTALLATION: AccountId = "till"

/** Makes the id of a merchant's account in one environment. */
export const accountOf = (merchantId: string, livemode: boolean): AccountId =>
  `${merchantId}:${livemode ? "live" : "test"}`

/** Reads off the merchant that an account belongs to. */
export const merchantIdOf = (account: AccountId): string => account.slice(0, account.lastIndexOf(":"))

/** Says whether an account is of live mode. */
export const isLive = (account: AccountId): boolean => account.endsWith(":live")

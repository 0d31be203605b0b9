/**
 * The hosts that webhooks of a mode may go to (semantics webhooks.url, webhooks.test_hosts): public addresses, and
 * others that the operator allows. Otherwise a merchant's URL could reach any host in the operator's network.
 */
import { BlockList } from "node:net"
import { isWithin, networksOf } from "./Networks.ts"
import { isMetadataAddress, isPublicAddress } from "./PublicAddress.ts"

/** Allowed hosts whose addresses are not public. */
export interface AllowedHosts {
  /** Host names as in URLs, without a trailing dot. All their addresses are allowed. */
  readonly names: ReadonlySet<string>
  readonly networks: BlockList
}

export interface WebhookHosts {
  readonly httpsOnly: boolean
  /** The addresses that may be dialled besides public ones. */
  readonly besidePublic: "any" | AllowedHosts
  /** Whether refusals from private addresses are stored: only where a service serves its own machine alone. */
  readonly keepsPrivateAnswers?: boolean
}

/** Allows public addresses only. */
export const PUBLIC_ONLY: AllowedHosts = { names: new Set(), networks: new BlockList() }

const withoutDot = (hostname: string): string => hostname.replace(/\.$/u, "").toLowerCase()

/** Returns whether an address of a host may be dialled. No setting allows a metadata service's address. */
export const mayDial = ({ besidePublic }: WebhookHosts, hostname: string, address: string): boolean => {
  if (isMetadataAddress(address)) return false
  if (besidePublic === "any" || isPublicAddress(address)) return true
  if (besidePublic.names.has(withoutDot(hostname))) return true
  const [withoutZone = ""] = address.split("%")
  return isWithin(besidePublic.networks, withoutZone)
}

/** One or more labels, the last of which is not a number: URLs would parse that as an IPv4 address. */
const NAME = /^([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\.)*(?!\d+$|0x[0-9a-f]*$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?$/u

/** Parses names, addresses and networks such as `10.0.0.0/8`, separated by commas; undefined if one is invalid. */
export const parseAllowedHosts = (text: string): AllowedHosts | undefined => {
  const hosts = text.split(",").map((host) => withoutDot(host.trim()))
  const isName = (host: string) => NAME.test(host)
  const others = hosts.filter((host) => !isName(host)).map((host) => host.replace(/^\[(.*)\](?=$|\/)/u, "$1"))
  const networks = others.length === 0 ? new BlockList() : networksOf(others.join(","))
  return networks && { names: new Set(hosts.filter(isName)), networks }
}

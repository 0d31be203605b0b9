/**
 * The hosts that webhooks of a mode may go to (semantics W4, 9.34): public addresses, and those besides that whoever
 * runs the installation allows. A merchant's URL could lead anywhere inside its network otherwise.
 */
import { BlockList } from "node:net"
import { isWithin, networksOf } from "./Networks.ts"
import { isMetadataAddress, isPublicAddress } from "./PublicAddress.ts"

/** Hosts that are allowed though their addresses are not public. */
export interface AllowedHosts {
  /** As URLs write them, without a dot at the end. Whatever they resolve to is allowed. */
  readonly names: ReadonlySet<string>
  readonly networks: BlockList
}

export interface WebhookHosts {
  readonly httpsOnly: boolean
  /** What may be dialled besides public addresses. */
  readonly besidePublic: "any" | AllowedHosts
  /**
   * Keeps what an answer says that is no success also where it comes from an address that is not public: for a service
   * that is its own machine's alone. Elsewhere a merchant could read what lies inside the network (semantics W9).
   */
  readonly keepsPrivateAnswers?: boolean
}

/** Nothing but public addresses. */
export const PUBLIC_ONLY: AllowedHosts = { names: new Set(), networks: new BlockList() }

const withoutDot = (hostname: string): string => hostname.replace(/\.$/u, "").toLowerCase()

/** Says whether an IP address that a host has, or is, may be dialled. No setting allows a metadata service's. */
export const mayDial = ({ besidePublic }: WebhookHosts, hostname: string, address: string): boolean => {
  if (isMetadataAddress(address)) return false
  if (besidePublic === "any" || isPublicAddress(address)) return true
  if (besidePublic.names.has(withoutDot(hostname))) return true
  const [withoutZone = ""] = address.split("%")
  return isWithin(besidePublic.networks, withoutZone)
}

/** One label or several, the last of which is no number: URLs would take that for an IPv4 address. */
const NAME = /^([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\.)*(?!\d+$|0x[0-9a-f]*$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?$/u

/**
 * Reads names, addresses and networks such as `10.0.0.0/8`, separated by commas; undefined if one of them is none of
 * these.
 */
export const parseAllowedHosts = (text: string): AllowedHosts | undefined => {
  const hosts = text.split(",").map((host) => withoutDot(host.trim()))
  const isName = (host: string) => NAME.test(host)
  const others = hosts.filter((host) => !isName(host)).map((host) => host.replace(/^\[(.*)\](?=$|\/)/u, "$1"))
  const networks = others.length === 0 ? new BlockList() : networksOf(others.join(","))
  return networks && { names: new Set(hosts.filter(isName)), networks }
}

/**
 * Public IP addresses: those that a host anywhere on the Internet can have (semantics webhooks.url).
 *
 * A merchant's URL must not make the service connect to its own network, so all special-purpose networks of IANA's
 * registries are refused: loopback, private and link-local networks, carrier-grade NAT, multicast, documentation, and
 * the addresses at which clouds serve credentials. An IPv4 address inside an IPv6 address counts as itself.
 */
import { BlockList, isIP } from "node:net"

const SPECIAL_IPV4: ReadonlyArray<readonly [network: string, prefix: number, purpose: string]> = [
  ["0.0.0.0", 8, "this host"],
  ["10.0.0.0", 8, "private"],
  ["100.64.0.0", 10, "carrier-grade NAT, and Alibaba's metadata"],
  ["127.0.0.0", 8, "loopback"],
  ["168.63.129.16", 32, "Azure's metadata"],
  ["169.254.0.0", 16, "link-local, and most clouds' metadata"],
  ["172.16.0.0", 12, "private"],
  ["192.0.0.0", 24, "protocol assignments, and Oracle's metadata"],
  ["192.0.2.0", 24, "documentation"],
  ["192.88.99.0", 24, "6to4 relays"],
  ["192.168.0.0", 16, "private"],
  ["198.18.0.0", 15, "benchmarks"],
  ["198.51.100.0", 24, "documentation"],
  ["203.0.113.0", 24, "documentation"],
  ["224.0.0.0", 4, "multicast"],
  ["240.0.0.0", 4, "reserved, and broadcast"]
]

/** The special networks within 2000::/3; everything outside of 2000::/3 is special. */
const SPECIAL_IPV6: ReadonlyArray<readonly [network: string, prefix: number, purpose: string]> = [
  ["2001::", 23, "protocol assignments, Teredo among them"],
  ["2001:db8::", 32, "documentation"],
  ["2002::", 16, "6to4"],
  ["3fff::", 20, "documentation"]
]

/** Networks whose addresses end in the IPv4 address of the destination: IPv4-mapped, and NAT64's well-known prefix. */
const EMBEDDING: ReadonlyArray<readonly [network: string, prefix: number]> = [
  ["::ffff:0:0", 96],
  ["64:ff9b::", 96]
]

/**
 * The metadata services of clouds, which give a machine's credentials and settings to any process on it; no webhook
 * receiver has such an address. Includes all link-local addresses, which reach no further than the machine's own
 * network.
 */
const METADATA_IPV4: ReadonlyArray<readonly [network: string, prefix: number, purpose: string]> = [
  ["100.100.100.200", 32, "Alibaba"],
  ["168.63.129.16", 32, "Azure's wire server"],
  ["169.254.0.0", 16, "link-local: most clouds, and credentials of containers"],
  ["192.0.0.192", 32, "Oracle"]
]
const METADATA_IPV6: ReadonlyArray<readonly [network: string, prefix: number, purpose: string]> = [
  ["fd00:42::42", 128, "Scaleway"],
  ["fd00:ec2::", 32, "Amazon"],
  ["fd20:ce::254", 128, "Google"],
  ["fe80::", 10, "link-local: OpenStack among others"]
]

const networks = (family: "ipv4" | "ipv6", rows: ReadonlyArray<readonly [string, number, ...Array<string>]>) => {
  const list = new BlockList()
  for (const [network, prefix] of rows) list.addSubnet(network, prefix, family)
  return list
}

const specialIpv4 = networks("ipv4", SPECIAL_IPV4)
const specialIpv6 = networks("ipv6", SPECIAL_IPV6)
const metadataIpv4 = networks("ipv4", METADATA_IPV4)
const metadataIpv6 = networks("ipv6", METADATA_IPV6)
const unicastIpv6 = networks("ipv6", [["2000::", 3]])
const embedding = networks("ipv6", EMBEDDING)

/** Returns whether an IP address, in any notation that Node parses, is public; false for any other text. */
export const isPublicAddress = (address: string): boolean => {
  const [withoutZone = ""] = address.split("%")
  switch (isIP(withoutZone)) {
    case 4:
      return !specialIpv4.check(withoutZone, "ipv4")
    case 6:
      if (embedding.check(withoutZone, "ipv6")) return isPublicAddress(embeddedIpv4(withoutZone))
      return unicastIpv6.check(withoutZone, "ipv6") && !specialIpv6.check(withoutZone, "ipv6")
    default:
      return false
  }
}

/** Returns whether an IP address, in any notation that Node parses, is link-local or that of a metadata service. */
export const isMetadataAddress = (address: string): boolean => {
  const [withoutZone = ""] = address.split("%")
  switch (isIP(withoutZone)) {
    case 4:
      return metadataIpv4.check(withoutZone, "ipv4")
    case 6:
      if (embedding.check(withoutZone, "ipv6")) return isMetadataAddress(embeddedIpv4(withoutZone))
      return metadataIpv6.check(withoutZone, "ipv6")
    default:
      return false
  }
}

/** Returns the IP address of a URL whose host is one, in any notation of IPv4; undefined for a name. */
export const literalAddressOf = ({ hostname }: URL): string | undefined => {
  const address = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname
  return isIP(address) === 0 ? undefined : address
}

/** Returns the last 32 bits of an IPv6 address as an IPv4 address. */
const embeddedIpv4 = (address: string): string => {
  // The parser returns addresses in one notation: hexadecimal groups, the longest run of zeros as `::`.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [before = "", after] = canonical.split("::")
  const groups = (text: string) => (text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16)))
  const trailing = after === undefined ? groups(before) : [0, 0, ...groups(after)]
  const [high = 0, low = 0] = trailing.slice(-2)
  return [high >> 8, high & 255, low >> 8, low & 255].join(".")
}

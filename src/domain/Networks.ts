/** Lists of IP networks as people write them: `10.0.0.0/8`, `fd00::/8`, `192.0.2.7`. */
import { BlockList, isIP, isIPv6 } from "node:net"

/** Reads networks and single addresses separated by commas; undefined if one of them is neither. */
export const networksOf = (text: string): BlockList | undefined => {
  const list = new BlockList()
  for (const part of text.split(",").map((part) => part.trim())) {
    const [address = "", bits] = part.split("/", 2)
    // A zone is a matter of one machine's interfaces.
    const family = address.includes("%") ? 0 : isIP(address)
    if (family === 0 || part.split("/").length > 2) return undefined
    const bitsMax = family === 4 ? 32 : 128
    if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= bitsMax)) return undefined
    list.addSubnet(address, bits === undefined ? bitsMax : Number(bits), family === 4 ? "ipv4" : "ipv6")
  }
  return list
}

/** Says whether an address lies in one of the networks. An IPv4 address that IPv6 wraps counts as itself. */
export const isWithin = (networks: BlockList, address: string): boolean => {
  const family = isIP(address)
  return family !== 0 && networks.check(address, family === 4 ? "ipv4" : "ipv6")
}

/** Names one sender: an IPv4 address, or the /64 that an IPv6 host has to choose its addresses from. */
export const addressGroup = (address: string): string => {
  const [plain = ""] = address.split("%", 1)
  if (!isIPv6(plain)) return plain
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1]
  if (mapped !== undefined) return mapped
  const [head = "", tail] = new URL(`http://[${plain}]`).hostname.slice(1, -1).split("::")
  const front = head === "" ? [] : head.split(":")
  const back = tail === undefined || tail === "" ? [] : tail.split(":")
  const zeros = tail === undefined ? 0 : 8 - front.length - back.length
  return [...front, ...Array<string>(zeros).fill("0"), ...back].slice(0, 4).join(":")
}

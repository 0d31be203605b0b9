/** Lists of IP networks in text form: `10.0.0.0/8`, `fd00::/8`, `192.0.2.7`. */
import { BlockList, isIP, isIPv6 } from "node:net"

/** Parses networks and addresses separated by commas; undefined if one of them is invalid. */
export const networksOf = (text: string): BlockList | undefined => {
  const list = new BlockList()
  for (const part of text.split(",").map((part) => part.trim())) {
    const [address = "", bits] = part.split("/", 2)
    // A zone refers to an interface of one machine, so it is invalid here.
    const family = address.includes("%") ? 0 : isIP(address)
    if (family === 0 || part.split("/").length > 2) return undefined
    const bitsMax = family === 4 ? 32 : 128
    if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= bitsMax)) return undefined
    list.addSubnet(address, bits === undefined ? bitsMax : Number(bits), family === 4 ? "ipv4" : "ipv6")
  }
  return list
}

/** Returns whether an address is in one of the networks. An IPv4-mapped IPv6 address counts as its IPv4 address. */
export const isWithin = (networks: BlockList, address: string): boolean => {
  const family = isIP(address)
  return family !== 0 && networks.check(address, family === 4 ? "ipv4" : "ipv6")
}

/** Returns the group of a sender: an IPv4 address, or the /64 from which an IPv6 host chooses its addresses. */
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

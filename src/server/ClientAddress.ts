/**
 * Who has sent a request that came through proxies (semantics 9.45).
 *
 * A proxy says in `X-Forwarded-For`, or in `Forwarded` (RFC 7239), from whom it has the request, behind what it was
 * told itself. Only what trusted proxies say counts, so the headers are read from their ends: the first address that is
 * no such proxy is whom the outermost of them has talked to. What stands before that anybody may have written: it costs
 * time in proportion to its length, and no chain of proxies is longer than the limits below.
 */
import type { BlockList } from "node:net"
import { isIP } from "node:net"
import { isWithin } from "../domain/Networks.ts"
import type { Incoming } from "./Incoming.ts"

/** A chain of more proxies is cut: the sender is the last of these. */
const NODES_MAX = 32
/** A longer `Forwarded` is not read: the sender is the connected proxy. 32 addresses of IPv6 fit in. */
const FORWARDED_LENGTH_MAX = 1024

/** Gives the address of whoever has sent a request; empty once nobody knows any more. */
export type ClientAddressOf = (incoming: Pick<Incoming, "headers" | "remoteAddress">) => string

/** Without trusted proxies, the sender is whoever is connected. */
export const clientAddressOf =
  (trusted: BlockList | undefined): ClientAddressOf =>
  ({ headers, remoteAddress = "" }) => {
    if (trusted === undefined || !isWithin(trusted, remoteAddress)) return remoteAddress
    const { forwarded, "x-forwarded-for": forwardedFor } = headers
    const senders = new Set<string>()
    if (typeof forwardedFor === "string") senders.add(lastUntrusted(trusted, remoteAddress, forwardedFor.split(",")))
    if (forwarded !== undefined) senders.add(lastUntrusted(trusted, remoteAddress, elementsOf(forwarded)))
    // A proxy that writes one of the two passes the other on as its client sent it.
    const [sender = remoteAddress] = senders
    return senders.size > 1 ? remoteAddress : sender
  }

/** Follows the nodes from the last to the first. What is no address ends the way: the proxy behind it is the sender. */
const lastUntrusted = (trusted: BlockList, peer: string, nodes: ReadonlyArray<string>): string => {
  let sender = peer
  for (const node of nodes.slice(-NODES_MAX).toReversed()) {
    const address = addressOf(node.trim())
    if (address === undefined) return sender
    sender = address
    if (!isWithin(trusted, address)) return address
  }
  return sender
}

/** The `for` of each element of `Forwarded`; empty where one has none. */
const elementsOf = (forwarded: string): ReadonlyArray<string> =>
  forwarded.length > FORWARDED_LENGTH_MAX ? [""] : outsideQuotes(forwarded, ",").map(forOf)

const forOf = (element: string): string => {
  for (const pair of outsideQuotes(element, ";")) {
    const at = pair.indexOf("=")
    if (pair.slice(0, at).trim().toLowerCase() !== "for") continue
    const value = pair.slice(at + 1).trim()
    return value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value
  }
  return ""
}

/** Splits a text where the separator is not part of a quoted string. */
const outsideQuotes = (text: string, separator: string): ReadonlyArray<string> => {
  const parts = [""]
  let quoted = false
  for (const character of text) {
    if (character === '"') quoted = !quoted
    if (character === separator && !quoted) parts.push("")
    else parts[parts.length - 1] += character
  }
  return parts
}

/** Reads the address of a node, which may have a port: `192.0.2.7:4711`, `[2001:db8::1]:4711`, `2001:db8::1`. */
const addressOf = (node: string): string | undefined => {
  const [, bracketed] = /^\[([^\]]+)\](?::\w+)?$/.exec(node) ?? []
  const [, withPort] = /^(\d+\.\d+\.\d+\.\d+):\w+$/.exec(node) ?? []
  const address = bracketed ?? withPort ?? node
  return isIP(address) === 0 ? undefined : address
}

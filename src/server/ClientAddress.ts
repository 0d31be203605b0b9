/**
 * The address of a request's sender behind proxies (semantics limits.addresses).
 *
 * A proxy appends the address of its own client to `X-Forwarded-For`, or to `Forwarded` (RFC 7239). Only entries of
 * trusted proxies count, so the headers are read from the right: the first address that is not a trusted proxy is the
 * client of the outermost trusted one. Everything to the left of it can be forged. Reading costs time in proportion to
 * the length, and no chain of proxies is longer than the limits below.
 */
import { type BlockList, isIP } from "node:net"
import { isWithin } from "../domain/Networks.ts"
import type { Incoming } from "./Incoming.ts"

/** The most proxies of a chain. The sender of a longer one is the address at the limit. */
const NODES_MAX = 32
/**
 * The longest `Forwarded` that is read; for longer ones, the sender is the connected proxy. 32 IPv6 addresses fit in.
 */
const FORWARDED_LENGTH_MAX = 1024

/** Returns the address of a request's sender; empty once its connection is closed. */
export type ClientAddressOf = (incoming: Pick<Incoming, "headers" | "remoteAddress">) => string

/** Makes the function. Without trusted proxies, the sender is the connected client. */
export const clientAddressOf =
  (trusted: BlockList | undefined): ClientAddressOf =>
  ({ headers, remoteAddress = "" }) => {
    if (trusted === undefined || !isWithin(trusted, remoteAddress)) return remoteAddress
    const { forwarded, "x-forwarded-for": forwardedFor } = headers
    const senders = new Set<string>()
    if (typeof forwardedFor === "string") senders.add(lastUntrusted(trusted, remoteAddress, forwardedFor.split(",")))
    if (forwarded !== undefined) senders.add(lastUntrusted(trusted, remoteAddress, elementsOf(forwarded)))
    // A proxy that writes one of the two headers passes the other one on as its client sent it.
    const [sender = remoteAddress] = senders
    return senders.size > 1 ? remoteAddress : sender
  }

/**
 * Returns the last address that is not a trusted proxy. An entry that is no address ends the search: the proxy to its
 * right is the sender.
 */
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

/** Returns the `for` of each element of `Forwarded`; empty for an element without one. */
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

/** Splits a text at separators outside of quoted strings. */
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

/** Parses an entry's address, which may have a port: `192.0.2.7:4711`, `[2001:db8::1]:4711`, `2001:db8::1`. */
const addressOf = (node: string): string | undefined => {
  const [, bracketed] = /^\[([^\]]+)\](?::\w+)?$/.exec(node) ?? []
  const [, withPort] = /^(\d+\.\d+\.\d+\.\d+):\w+$/.exec(node) ?? []
  const address = bracketed ?? withPort ?? node
  return isIP(address) === 0 ? undefined : address
}

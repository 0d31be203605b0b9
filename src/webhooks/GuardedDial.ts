/**
 * Opens the connections to endpoints, guarded against server-side request forgery (SSRF). TLS certificates are
 * verified.
 *
 * Only addresses that `WebhookHosts` allows are dialled (semantics webhooks.url, webhooks.test_hosts). The addresses of
 * a name are checked and passed to the same call that connects, so no second DNS answer can change them. A host that is
 * an address is checked as an address in any notation, because the URL parser has normalized it.
 */
import * as diagnostics from "node:diagnostics_channel"
import * as dns from "node:dns"
import { isIP, type LookupFunction, type Socket } from "node:net"
import { buildConnector } from "undici"
import { isPublicAddress } from "../domain/PublicAddress.ts"
import { mayDial, type WebhookHosts } from "../domain/WebhookHosts.ts"
import { AnswerStart, type Start } from "./AnswerStart.ts"

/** The address of a URL's host may not be dialled. */
export class AddressRefused extends Error {
  readonly code = "TILL_ADDRESS_REFUSED"
}

type Resolved = (error: NodeJS.ErrnoException | null, addresses: Array<dns.LookupAddress>) => void

/** Resolves a host name to addresses, like `dns.lookup` with `all`. */
export type Resolve = (hostname: string, callback: Resolved) => void

export const resolveBySystem: Resolve = (hostname, callback) => dns.lookup(hostname, { all: true }, callback)

/**
 * Lets simultaneous look-ups of a host share one answer. The system has few threads for look-ups, and a name server
 * that hangs must not occupy one for each attempt.
 */
export const sharing = (resolve: Resolve): Resolve => {
  const underWay = new Map<string, Array<Resolved>>()
  return (hostname, callback) => {
    const others = underWay.get(hostname)
    if (others !== undefined) return void others.push(callback)
    const all = [callback]
    underWay.set(hostname, all)
    const answer: Resolved = (error, addresses) => {
      underWay.delete(hostname)
      for (const one of all) one(error, addresses)
    }
    try {
      resolve(hostname, answer)
    } catch (error) {
      answer(error as NodeJS.ErrnoException, [])
    }
  }
}

export interface GuardedDialOptions {
  readonly hosts: WebhookHosts
  readonly connectMillis: number
  readonly resolve: Resolve
  /** Certificates to trust instead of Node's. */
  readonly certificates?: string | undefined
}

const lookupBy =
  (resolve: Resolve, hosts: WebhookHosts): LookupFunction =>
  (hostname, options, callback) => {
    resolve(hostname, (error, addresses) => {
      if (error !== null) return callback(error, "")
      // One forbidden address makes the whole name untrustworthy.
      if (addresses.length === 0 || !addresses.every(({ address }) => mayDial(hosts, hostname, address))) {
        return callback(new AddressRefused("The address of the host may not be dialled."), "")
      }
      if (options.all === true) return callback(null, addresses)
      callback(null, addresses[0]!.address, addresses[0]!.family)
    })
  }

/** State of a connection, in addition to undici's. */
interface Watched {
  readonly start: AnswerStart
  /** Bytes read before the last request was sent; 0 if it was the first. */
  readBefore: number
}

const watched = new WeakMap<object, Watched>()

let expecting: ((start: Start) => void) | null = null

/** Reports the start of the answer to the next request, which is sent before the caller's turn ends. */
export const expectAnswer = (report: (start: Start) => void): void => {
  expecting = report
}

diagnostics.subscribe("undici:client:sendHeaders", (message) => {
  const { socket } = message as { readonly socket: Socket }
  const connection = watched.get(socket)
  if (connection === undefined || expecting === null) return
  connection.readBefore = socket.bytesRead
  connection.start.begin(expecting)
  expecting = null
})

const closedIdle = new WeakSet<Error>()

/**
 * True if the connection had carried an answer before, and failed without a byte of another. Then the other side most
 * likely closed it as idle just when the request was sent.
 */
export const isClosedIdle = (error: Error): boolean => closedIdle.has(error)

const watch = (socket: Socket): void => {
  const connection: Watched = { start: new AnswerStart(), readBefore: 0 }
  watched.set(socket, connection)
  const read = socket.read.bind(socket) as (size?: number) => Buffer | null
  // Undici reads all bytes of the connection here.
  socket.read = (size) => {
    for (;;) {
      const chunk = read(size)
      if (chunk === null) return null
      const rest = connection.start.take(chunk)
      if (rest.length > 0) return rest
    }
  }
  const end = () => connection.start.end()
  socket.on("end", end)
  socket.on("error", (error) => {
    end()
    const { readBefore } = connection
    if (readBefore > 0 && socket.bytesRead === readBefore) closedIdle.add(error)
  })
}

/** Opens a connection for undici. */
export type Connector = ReturnType<typeof buildConnector>

export interface GuardedDial {
  readonly connect: Connector
  /** True while an origin has an open connection to an address that is not public. */
  readonly isPrivate: (origin: string) => boolean
}

/** Counts the open connections of each origin to addresses that are not public. */
const watchPrivate = () => {
  const open = new Map<string, number>()
  const add = (origin: string, change: number) => {
    const count = (open.get(origin) ?? 0) + change
    if (count === 0) open.delete(origin)
    else open.set(origin, count)
  }
  return {
    isPrivate: (origin: string) => open.has(origin),
    begin: (origin: string, socket: Socket) => {
      // A socket that is already closed has no address.
      if (socket.destroyed || isPublicAddress(socket.remoteAddress ?? "")) return
      add(origin, 1)
      socket.once("close", () => add(origin, -1))
    }
  }
}

/** Makes a connector that dials only allowed addresses, without state of connections. */
export const makeConnector = ({ certificates, connectMillis, hosts, resolve }: GuardedDialOptions): Connector => {
  const dial = buildConnector({
    timeout: connectMillis,
    allowH2: false,
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot change it.
    rejectUnauthorized: true,
    lookup: lookupBy(resolve, hosts),
    ...(certificates !== undefined && { ca: certificates })
  })
  return (options, callback) => {
    const host = options.hostname.replace(/^\[|\]$/gu, "")
    const isRefused = isIP(host) !== 0 && !mayDial(hosts, host, host)
    if (isRefused || (hosts.httpsOnly && options.protocol !== "https:")) {
      return callback(new AddressRefused("The address of the URL may not be dialled."), null)
    }
    dial(options, callback)
  }
}

export const make = (options: GuardedDialOptions): GuardedDial => {
  const { begin, isPrivate } = watchPrivate()
  const dial = makeConnector(options)
  const connect: Connector = (target, callback) =>
    dial(target, (...[error, socket]) => {
      if (error !== null) return callback(error, null)
      watch(socket)
      begin(`${target.protocol}//${target.host}`, socket)
      callback(null, socket)
    })
  return { connect, isPrivate }
}

/**
 * Endpoints of live mode are dialled at public addresses only (semantics webhooks.url), and so are those of test mode
 * on a shared installation (semantics webhooks.test_hosts): no URL of this table may reach a server inside the network.
 * Each is tried against a server that listens on this machine.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { LookupAddress } from "node:dns"
import * as net from "node:net"
import tls from "node:tls"
import { vi } from "vitest"
import { parseAllowedHosts, PUBLIC_ONLY, type WebhookHosts } from "../../src/domain/WebhookHosts.ts"
import type { Resolve } from "../../src/webhooks/GuardedDial.ts"
import { AUTHORITY, KEY, LOCALHOST } from "./Certificates.ts"
import { answersWith, receiver } from "./RawReceiver.ts"
import { makeSender, messageTo, PUBLIC, sendAndSettle } from "./Sending.ts"

const REFUSED = { status: null, error: "The address of the host is not allowed." }

const URLS = [
  // The loopback address in every notation.
  "https://127.0.0.1:PORT/",
  "https://2130706433:PORT/",
  "https://0177.0.0.1:PORT/",
  "https://017700000001:PORT/",
  "https://0x7f.1:PORT/",
  "https://0x7f000001:PORT/",
  "https://127.1:PORT/",
  "https://127.0.1:PORT/",
  "https://127.0.0.1.:PORT/",
  "https://%31%32%37.0.0.1:PORT/",
  "https://１２７。０。０。１:PORT/",
  "https://0:PORT/",
  "https://0.0.0.0:PORT/",
  "https://127.255.255.254:PORT/",
  "https://[::1]:PORT/",
  "https://[::]:PORT/",
  "https://[0:0:0:0:0:0:0:1]:PORT/",
  "https://[::ffff:127.0.0.1]:PORT/",
  "https://[::ffff:7f00:1]:PORT/",
  "https://[::127.0.0.1]:PORT/",
  "https://[64:ff9b::127.0.0.1]:PORT/",
  "https://[64:ff9b::7f00:1]:PORT/",
  "https://[2002:7f00:1::]:PORT/",
  // Names of this machine.
  "https://localhost:PORT/",
  "https://LOCALHOST:PORT/",
  // Credentials hide the host from careless parsers.
  "https://example.com@127.0.0.1:PORT/",
  "https://example.com:443@localhost:PORT/",
  "https://user:password@[::1]:PORT/",
  "https://127.0.0.1:PORT\\@example.com/",
  // Private networks, link-local addresses, and clouds' metadata.
  "https://10.0.0.1:PORT/",
  "https://172.16.0.1:PORT/",
  "https://192.168.0.1:PORT/",
  "https://100.64.0.1:PORT/",
  "https://169.254.169.254:PORT/latest/meta-data/",
  "https://[::ffff:169.254.169.254]:PORT/",
  "https://100.100.100.200:PORT/",
  "https://168.63.129.16:PORT/",
  "https://192.0.0.192:PORT/",
  "https://[fe80::1]:PORT/",
  "https://[fd00:ec2::254]:PORT/",
  "https://224.0.0.1:PORT/",
  "https://255.255.255.255:PORT/",
  // URLs that are refused because they are not https.
  "http://127.0.0.1:PORT/",
  "http://2130706433:PORT/",
  "http://localhost:PORT/",
  "http://93.184.216.34:PORT/",
  "http://example.com:PORT/"
]

/** Texts that are not a URL, or have another scheme. */
const INVALID = ["https://[fe80::1%25eth0]:PORT/", "https://[fe80::1%eth0]:PORT/", "https://127.0.0.256:PORT/"]
const OTHER_SCHEMES = ["ftp://127.0.0.1:PORT/", "file:///etc/passwd", "unix:/run/socket", "data:text/plain,x"]

const addresses = (...given: ReadonlyArray<string>): Array<LookupAddress> =>
  given.map((address) => ({ address, family: net.isIP(address) }))

/** A public address in a network that IANA has not assigned: it leads nowhere. */
const SOMEWHERE = "2d00::1"

const ANSWERS: Readonly<Record<string, Array<LookupAddress>>> = {
  "a private address": addresses("127.0.0.1"),
  "a private address of IPv6": addresses("::1"),
  "a link-local address with its zone": addresses("fe80::1%lo"),
  "a public and a private address": addresses(SOMEWHERE, "127.0.0.1"),
  "a private and a public address": addresses("127.0.0.1", SOMEWHERE),
  "an IPv4-mapped address": addresses("::ffff:127.0.0.1"),
  "an address behind NAT64": addresses("64:ff9b::7f00:1"),
  "the metadata's address": addresses("169.254.169.254"),
  "no address": [],
  "no IP address": [{ address: "localhost", family: 4 }]
}

/** Gives each look-up the next answer, like a name server whose records change; the last answer repeats. */
const resolvesTo = (...answers: ReadonlyArray<Array<LookupAddress>>) => {
  const looked: Array<string> = []
  const resolve: Resolve = (hostname, callback) => {
    const answer = answers[Math.min(looked.push(hostname), answers.length) - 1]!
    setImmediate(() => callback(null, answer))
  }
  return { looked, resolve }
}

/** A server that counts connections: there must be none. */
const guarded = Effect.fnUntraced(function* () {
  const there = yield* receiver(answersWith(200), { key: KEY, cert: LOCALHOST })
  let connections = 0
  there.server.on("connection", () => connections++)
  return { port: there.port, connections: () => connections }
})

/** Records the addresses of all connections that are opened from now on. */
const watchDials = Effect.acquireRelease(
  Effect.sync(() => {
    const dialled: Array<string> = []
    const connect = tls.connect as (options: tls.ConnectionOptions) => tls.TLSSocket
    const spy = vi.spyOn(tls, "connect").mockImplementation(((options: tls.ConnectionOptions) => {
      const socket = connect(options)
      socket.on("connectionAttempt", (address) => dialled.push(address))
      return socket
    }) as typeof tls.connect)
    return { dialled, spy }
  }),
  ({ spy }) => Effect.sync(() => spy.mockRestore())
)

describe("an endpoint to public addresses only", () => {
  it.live("is refused in every spelling of an address that is not public", () =>
    Effect.gen(function* () {
      const { connections, port } = yield* guarded()
      const sender = yield* makeSender({ certificates: AUTHORITY })
      for (const url of URLS) {
        const result = yield* sender.send(messageTo(url.replace("PORT", String(port)), { hosts: PUBLIC }))
        assert.deepStrictEqual(result, REFUSED, url)
      }
      for (const url of [...INVALID, ...OTHER_SCHEMES]) {
        const result = yield* sender.send(messageTo(url.replace("PORT", String(port)), { hosts: PUBLIC }))
        assert.isNull(result.status, url)
        if (INVALID.includes(url)) assert.strictEqual(result.error, "The URL is not valid.", url)
      }
      assert.strictEqual(connections(), 0)
    })
  )

  for (const [name, answer] of Object.entries(ANSWERS)) {
    it.live(`is refused if its name resolves to ${name}`, () =>
      Effect.gen(function* () {
        const { connections, port } = yield* guarded()
        const sender = yield* makeSender({ certificates: AUTHORITY, resolve: resolvesTo(answer).resolve })
        for (const host of ["hooks.example.com", "hooks.example.com.", "localhost."]) {
          const result = yield* sender.send(messageTo(`https://${host}:${port}/`, { hosts: PUBLIC }))
          assert.deepStrictEqual(result, REFUSED, host)
        }
        assert.strictEqual(connections(), 0)
      })
    )
  }

  it.live("is dialled at the checked address, and looked up again for each connection", () =>
    Effect.gen(function* () {
      const { connections, port } = yield* guarded()
      const { dialled } = yield* watchDials
      const { looked, resolve } = resolvesTo(addresses(SOMEWHERE), addresses("127.0.0.1"))
      const sender = yield* makeSender({ certificates: AUTHORITY, resolve, timeLimitMillis: 1000 })
      const message = messageTo(`https://hooks.example.com:${port}/`, { hosts: PUBLIC })
      assert.isNull((yield* sender.send(message)).status)
      assert.deepStrictEqual(dialled, [SOMEWHERE])
      assert.deepStrictEqual(looked, ["hooks.example.com"])
      assert.deepStrictEqual(yield* sender.send(message), REFUSED)
      assert.strictEqual(looked.length, 2)
      assert.deepStrictEqual(dialled, [SOMEWHERE])
      assert.strictEqual(connections(), 0)
    })
  )

  it.live("is not reached by a connection that was opened without that rule", () =>
    Effect.gen(function* () {
      const there = yield* receiver(answersWith(200), { key: KEY, cert: LOCALHOST })
      const sender = yield* makeSender({ certificates: AUTHORITY })
      assert.strictEqual((yield* sendAndSettle(sender, messageTo(there.url))).status, 200)
      assert.deepStrictEqual(yield* sendAndSettle(sender, messageTo(there.url, { hosts: PUBLIC })), REFUSED)
      assert.strictEqual((yield* sendAndSettle(sender, messageTo(there.url))).status, 200)
      assert.strictEqual(there.requests.length, 2)
      assert.strictEqual(there.sockets.length, 1)
    })
  )
})

describe("an endpoint of test mode on a shared installation", () => {
  const allowing = (hosts: string): WebhookHosts => ({ httpsOnly: false, besidePublic: parseAllowedHosts(hosts)! })

  it.live("is refused for the same URLs as in live mode, except http", () =>
    Effect.gen(function* () {
      const there = yield* receiver(answersWith(200))
      const sender = yield* makeSender({ resolve: resolvesTo(addresses("127.0.0.1")).resolve })
      const hosts: WebhookHosts = { httpsOnly: false, besidePublic: PUBLIC_ONLY }
      for (const url of URLS.filter((url) => !/93\.184|http:\/\/example\.com/u.test(url))) {
        const plain = url.replace("PORT", String(there.port)).replace("https:", "http:")
        assert.deepStrictEqual(yield* sender.send(messageTo(plain, { hosts })), REFUSED, plain)
      }
      assert.strictEqual(there.sockets.length, 0)
    })
  )

  it.live("reaches hosts that are allowed by name, address or network, and no others", () =>
    Effect.gen(function* () {
      const there = yield* receiver(answersWith(200))
      const sender = yield* makeSender({ resolve: resolvesTo(addresses("127.0.0.1")).resolve })
      const at = (host: string) => `http://${host}:${there.port}/`
      for (const [list, host] of [
        ["hooks.internal", "hooks.internal"],
        ["hooks.internal", "HOOKS.internal."],
        ["127.0.0.0/8", "hooks.example"],
        ["127.0.0.1", "127.0.0.1"],
        ["10.0.0.0/8,127.0.0.1", "2130706433"]
      ] as const) {
        const result = yield* sendAndSettle(sender, messageTo(at(host), { hosts: allowing(list) }))
        assert.strictEqual(result.status, 200, `${list} ${host}`)
      }
      const reached = there.requests.length
      for (const [list, host] of [
        ["hooks.internal", "other.internal"],
        ["hooks.internal", "127.0.0.1"],
        ["hooks.internal", "hooks.internal.example"],
        ["127.0.0.2,10.0.0.0/8", "127.0.0.1"],
        ["127.0.0.2,10.0.0.0/8", "hooks.internal"]
      ] as const) {
        const result = yield* sendAndSettle(sender, messageTo(at(host), { hosts: allowing(list) }))
        assert.deepStrictEqual(result, REFUSED, `${list} ${host}`)
      }
      assert.strictEqual(there.requests.length, reached)
    })
  )
})

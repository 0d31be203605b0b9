/** The sender of a request that arrived through proxies (semantics limits.addresses). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { networksOf } from "../../src/domain/Networks.ts"
import { clientAddressOf } from "../../src/server/ClientAddress.ts"

const trusted = networksOf("10.0.0.0/8, fd00::/8, 192.0.2.7")!
const sender = clientAddressOf(trusted)

const octet = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))
const proxies = Schema.Array(
  Schema.Union([
    Schema.TemplateLiteral(["10.", octet, ".", octet, ".", octet]),
    Schema.Literal("192.0.2.7"),
    Schema.TemplateLiteral(["fd00::", octet])
  ])
).check(Schema.isMinLength(1), Schema.isMaxLength(4))
const client = Schema.Union([
  Schema.TemplateLiteral(["203.0.113.", octet]),
  Schema.TemplateLiteral(["2001:db8::", octet])
])
/** Header entries that a client may forge: addresses of others, of proxies, and entries that are no address. */
const forged = Schema.Array(
  Schema.Literals(["198.51.100.1", "10.1.1.1", "unknown", "_hidden", "", '"', "::1", "a,b"])
).check(Schema.isMaxLength(3))
const port = Schema.Literals(["", ":4711"])

const withPort = (address: string, port: string) => {
  if (!address.includes(":")) return `${address}${port}`
  return port === "" ? address : `[${address}]${port}`
}

/** The header after each proxy has appended its entry. The last proxy is the connected one. */
const chainOf = (client: string, [, ...others]: ReadonlyArray<string>) => [client, ...others.toReversed()]

describe("the sender of a request that came through proxies", () => {
  it.effect.prop(
    "is the client of the outermost trusted proxy, with any entries before it",
    { client, forged, port, proxies },
    ({ client, forged, port, proxies }) =>
      Effect.sync(() => {
        const remoteAddress = proxies[0]!
        const nodes = chainOf(client, proxies).map((address) => withPort(address, port))
        const headers = { "x-forwarded-for": [...forged, ...nodes].join(", ") }
        assert.strictEqual(sender({ remoteAddress, headers }), client)
        // An open quote would swallow the entries that proxies append.
        const believed = forged.filter((text) => !text.includes('"')).map((text) => `for=${text}`)
        const elements = nodes.map((node) => `proto=https;For="${node}";by=unknown`)
        assert.strictEqual(
          sender({ remoteAddress, headers: { forwarded: [...believed, ...elements].join(", ") } }),
          client
        )
      })
  )

  it.effect.prop("is the connected client, if that is no trusted proxy", { client, forged }, ({ client, forged }) =>
    Effect.sync(() => {
      const headers = { "x-forwarded-for": [...forged, "198.51.100.1"].join(", "), forwarded: "for=198.51.100.1" }
      assert.strictEqual(sender({ remoteAddress: client, headers }), client)
      assert.strictEqual(clientAddressOf(undefined)({ remoteAddress: "10.0.0.1", headers }), "10.0.0.1")
    })
  )

  it("is the last trusted proxy if its entry cannot be parsed", () => {
    for (const text of ["", "unknown", "203.0.113.1, _secret", '203.0.113.1, for="x"', "203.0.113.1 203.0.113.2"]) {
      assert.strictEqual(sender({ remoteAddress: "10.0.0.1", headers: { "x-forwarded-for": text } }), "10.0.0.1", text)
    }
    assert.strictEqual(sender({ remoteAddress: "10.0.0.1", headers: {} }), "10.0.0.1")
    const throughTwo = { remoteAddress: "10.0.0.1", headers: { "x-forwarded-for": "203.0.113.1, unknown, 10.0.0.2" } }
    assert.strictEqual(sender(throughTwo), "10.0.0.2")
    assert.strictEqual(sender({ remoteAddress: "10.0.0.1", headers: { forwarded: 'for="203.0.113.1' } }), "10.0.0.1")
  })

  it("is the connected proxy if the two headers disagree, because one of them is the client's", () => {
    const headers = { "x-forwarded-for": "203.0.113.1", forwarded: "for=198.51.100.1" }
    assert.strictEqual(sender({ remoteAddress: "10.0.0.1", headers }), "10.0.0.1")
    const agreed = { "x-forwarded-for": "203.0.113.1", forwarded: "for=203.0.113.1;proto=http" }
    assert.strictEqual(sender({ remoteAddress: "10.0.0.1", headers: agreed }), "203.0.113.1")
  })

  it("reads the last 32 addresses, and a Forwarded of at most 1,024 characters", () => {
    const remoteAddress = "10.0.0.1"
    const proxiesOf = (count: number) => Array.from({ length: count }, (_, i) => `10.0.1.${i}`)
    const through = (count: number) => ["203.0.113.1", ...proxiesOf(count)]
    const asForwarded = (nodes: ReadonlyArray<string>) => nodes.map((node) => `for=${node}`).join(",")
    for (const [count, expected] of [
      [31, "203.0.113.1"],
      [32, "10.0.1.0"]
    ] as const) {
      const nodes = through(count)
      assert.strictEqual(sender({ remoteAddress, headers: { "x-forwarded-for": nodes.join(", ") } }), expected)
      assert.strictEqual(sender({ remoteAddress, headers: { forwarded: asForwarded(nodes) } }), expected)
    }
    const padded = (length: number) => "for=203.0.113.1;by=".padEnd(length, "x")
    assert.strictEqual(sender({ remoteAddress, headers: { forwarded: padded(1024) } }), "203.0.113.1")
    assert.strictEqual(sender({ remoteAddress, headers: { forwarded: padded(1025) } }), remoteAddress)
  })

  it("is found behind an IPv4 proxy also on an IPv6 socket", () => {
    const headers = { "x-forwarded-for": "203.0.113.1" }
    assert.strictEqual(sender({ remoteAddress: "::ffff:10.0.0.1", headers }), "203.0.113.1")
  })
})

describe("a list of networks", () => {
  it("accepts addresses and valid prefixes, and nothing else", () => {
    for (const text of [
      "",
      "10.0.0.0/33",
      "10.0.0.0/8/8",
      "fd00::/129",
      "10.0.0/8",
      "proxy.example",
      "10.0.0.1,,::1",
      "1.1.1.1/-1"
    ]) {
      assert.isUndefined(networksOf(text), text)
    }
    assert.isDefined(networksOf("10.0.0.0/0,::/0, ::1"))
  })
})

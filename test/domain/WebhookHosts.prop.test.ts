/**
 * The addresses that webhooks may dial besides public ones, against plain arithmetic (semantics webhooks.test_hosts).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { isPublicAddress } from "../../src/domain/PublicAddress.ts"
import { mayDial, parseAllowedHosts } from "../../src/domain/WebhookHosts.ts"

const Byte = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))
/** Mostly private addresses, close together, so that they often lie in a network. */
const Address = Schema.Tuple([Schema.Literals([10, 127, 172, 192, 8]), Schema.Literals([0, 16, 168]), Byte, Byte])
const Network = Schema.Struct({
  address: Address,
  prefix: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 32 }))
})

type Address = typeof Address.Type

const numberOf = (address: Address): number => address.reduce<number>((number, byte) => number * 256 + byte, 0)

const lies = (address: Address, network: typeof Network.Type): boolean => {
  const size = 2 ** (32 - network.prefix)
  return Math.floor(numberOf(address) / size) === Math.floor(numberOf(network.address) / size)
}

const allowing = (text: string) => {
  const besidePublic = parseAllowedHosts(text)
  assert.isDefined(besidePublic, text)
  return { httpsOnly: false, besidePublic }
}

describe("hosts that webhooks may go to", () => {
  it.effect.prop(
    "are those in a listed network, and public ones",
    { networks: Schema.Array(Network).check(Schema.isMinLength(1), Schema.isMaxLength(3)), address: Address },
    ({ address, networks }) =>
      Effect.sync(() => {
        const hosts = allowing(networks.map(({ address, prefix }) => `${address.join(".")}/${prefix}`).join(" , "))
        const text = address.join(".")
        const expected = isPublicAddress(text) || networks.some((network) => lies(address, network))
        assert.strictEqual(mayDial(hosts, text, text), expected)
        assert.strictEqual(mayDial(hosts, "a.example", text), expected)
        assert.strictEqual(mayDial(hosts, "a.example", `::ffff:${text}`), expected)
      }),
    { arbitrary: { runs: 1000 } }
  )

  it("are those listed by name or address, in any notation of URLs", () => {
    const hosts = allowing("Hooks.internal, app., 10.1.2.3, fd00::/8, [::1], my_host-1.a")
    for (const [name, address] of [
      ["hooks.internal", "10.0.0.1"],
      ["HOOKS.INTERNAL.", "127.0.0.1"],
      ["app", "fd12::1%lo"],
      ["my_host-1.a", "192.168.0.1"],
      ["x.example", "10.1.2.3"],
      ["x.example", "fd12::3"],
      ["x.example", "0:0:0:0:0:0:0:1"],
      ["x.example", "8.8.8.8"]
    ] as const) {
      assert.isTrue(mayDial(hosts, name, address), `${name} ${address}`)
    }
    for (const [name, address] of [
      ["internal", "10.0.0.1"],
      ["a.hooks.internal", "10.0.0.1"],
      ["hooks.internal.example", "10.0.0.1"],
      ["x.example", "10.1.2.4"],
      ["x.example", "::ffff:10.1.2.4"],
      ["x.example", "fec0::1%lo"],
      ["x.example", "::2"],
      ["x.example", "not an address"],
      ["x.example", ""]
    ] as const) {
      assert.isFalse(mayDial(hosts, name, address), `${name} ${address}`)
    }
  })

  it("exclude link-local addresses and metadata services, in every configuration", () => {
    const hosts = [
      { httpsOnly: false, besidePublic: "any" as const },
      allowing("169.254.0.0/16,168.63.129.16,100.64.0.0/10,192.0.0.0/24,fe80::/10,fd00::/8,metadata.internal")
    ]
    for (const address of [
      "169.254.169.254",
      "::ffff:169.254.169.254",
      "64:ff9b::a9fe:a9fe",
      "169.254.170.2",
      "168.63.129.16",
      "100.100.100.200",
      "192.0.0.192",
      "fe80::a9fe:a9fe%eth0",
      "fd00:ec2::254",
      "fd20:ce::254"
    ]) {
      for (const one of hosts) assert.isFalse(mayDial(one, "metadata.internal", address), address)
    }
    for (const one of hosts) assert.isTrue(mayDial(one, "metadata.internal", "100.64.0.1"))
  })

  it("cannot be parsed from a text that is neither a name, an address nor a network", () => {
    for (const text of [
      "",
      ",",
      "a,",
      "a b",
      "http://a",
      "a:80",
      "a/b",
      "*.internal",
      "-a",
      "a..b",
      "10.0.0.0/33",
      "10.0.0.0/",
      "10.0.0.0/-1",
      "10.0.0.0/8/8",
      "10.0.0",
      "10.0.0.256",
      "2130706433",
      "0x7f000001",
      "a.0x7f",
      "::1/129",
      "fe80::1%lo",
      "[::1",
      "name/8",
      "ホスト"
    ]) {
      assert.isUndefined(parseAllowedHosts(text), text)
    }
  })
})

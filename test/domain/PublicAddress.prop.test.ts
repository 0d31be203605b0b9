/** The addresses that webhooks may go to (semantics webhooks.url). */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { isMetadataAddress, isPublicAddress, literalAddressOf } from "../../src/domain/PublicAddress.ts"

/** First and last address of each special network, from IANA's registries. */
const SPECIAL = [
  ["0.0.0.0", "0.255.255.255"],
  ["10.0.0.0", "10.255.255.255"],
  ["100.64.0.0", "100.127.255.255"],
  ["127.0.0.0", "127.255.255.255"],
  ["168.63.129.16", "168.63.129.16"],
  ["169.254.0.0", "169.254.255.255"],
  ["172.16.0.0", "172.31.255.255"],
  ["192.0.0.0", "192.0.0.255"],
  ["192.0.2.0", "192.0.2.255"],
  ["192.88.99.0", "192.88.99.255"],
  ["192.168.0.0", "192.168.255.255"],
  ["198.18.0.0", "198.19.255.255"],
  ["198.51.100.0", "198.51.100.255"],
  ["203.0.113.0", "203.0.113.255"],
  ["224.0.0.0", "255.255.255.255"]
] as const

const numberOf = (address: string): number => address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0)
const addressOf = (number: number): string => [24, 16, 8, 0].map((shift) => (number / 2 ** shift) & 255).join(".")
const isSpecial = (number: number): boolean =>
  SPECIAL.some(([first, last]) => numberOf(first) <= number && number <= numberOf(last))

const hex = (number: number): string => number.toString(16)

/** The notations of an IPv4 address as the host of a URL. */
const SPELLINGS: Readonly<Record<string, (number: number) => string>> = {
  dotted: addressOf,
  "with a dot at the end": (number) => `${addressOf(number)}.`,
  decimal: String,
  hexadecimal: (number) => `0x${hex(number)}`,
  octal: (number) => `0${number.toString(8)}`,
  "dotted hexadecimal": (number) =>
    addressOf(number)
      .split(".")
      .map((part) => `0x${hex(Number(part))}`)
      .join("."),
  "dotted octal": (number) =>
    addressOf(number)
      .split(".")
      .map((part) => `0${Number(part).toString(8)}`)
      .join("."),
  "two parts": (number) => `${Math.floor(number / 2 ** 24)}.${number % 2 ** 24}`,
  percent: (number) => addressOf(number).replaceAll(/[0-9]/gu, (digit) => `%3${digit}`),
  "full width": (number) =>
    addressOf(number).replaceAll(/[0-9]/gu, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
  "IPv4-mapped": (number) => `[::ffff:${addressOf(number)}]`,
  "IPv4-mapped in hexadecimal": (number) =>
    `[0:0:0:0:0:ffff:${hex(Math.floor(number / 65_536))}:${hex(number % 65_536)}]`,
  NAT64: (number) => `[64:ff9b::${addressOf(number)}]`
}

const literal = (host: string): string => literalAddressOf(new URL(`https://${host}/`))!
const isPublicHost = (host: string): boolean => isPublicAddress(literal(host))

/** First and last address of each network that no setting allows. */
const METADATA = [
  ["100.100.100.200", "100.100.100.200"],
  ["168.63.129.16", "168.63.129.16"],
  ["169.254.0.0", "169.254.255.255"],
  ["192.0.0.192", "192.0.0.192"]
] as const
const isMetadata = (number: number): boolean =>
  METADATA.some(([first, last]) => numberOf(first) <= number && number <= numberOf(last))

/** Uniform addresses are nearly all public, so half of them lie at the edge of a special network. */
const number = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 32 - 1 }))
const edge = Schema.Struct({
  network: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: SPECIAL.length - 1 })),
  end: Schema.Literals([0, 1]),
  distance: Schema.Literals([-1, 0, 1])
})

describe("public addresses", () => {
  const assertAgree = (number: number) => {
    for (const [name, spell] of Object.entries(SPELLINGS)) {
      assert.strictEqual(isPublicHost(spell(number)), !isSpecial(number), `${spell(number)} (${name})`)
    }
  }

  it.prop("are the same in every spelling", { number }, ({ number }) => assertAgree(number), {
    arbitrary: { runs: 300 }
  })

  it.prop(
    "end exactly where special networks begin",
    { edge },
    ({ edge }) => {
      const number = numberOf(SPECIAL[edge.network]![edge.end]) + edge.distance
      if (0 <= number && number < 2 ** 32) assertAgree(number)
    },
    { arbitrary: { runs: 300 } }
  )

  it.each([
    "[::]",
    "[::1]",
    "[::127.0.0.1]",
    "[fe80::1]",
    "[fec0::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "[64:ff9b:1::8.8.8.8]",
    "[100::1]",
    "[2001::1]",
    "[2001:1ff:ffff::1]",
    "[2001:db8::1]",
    "[2002:7f00:1::]",
    "[2002:808:808::]",
    "[3fff::1]",
    "[4000::1]"
  ])("%s is not public", (host) => assert.isFalse(isPublicHost(host)))

  it.each(["[2001:200::1]", "[2001:4860:4860::8888]", "[2606:4700::1111]", "[2a00:1450::1]", "8.8.8.8"])(
    "%s is public",
    (host) => assert.isTrue(isPublicHost(host))
  )

  it("can be in the resolvers' notation, with a zone; other texts are not public", () => {
    assert.isFalse(isPublicAddress("fe80::1%eth0"))
    assert.isFalse(isPublicAddress("::ffff:10.0.0.1"))
    assert.isTrue(isPublicAddress("::ffff:8.8.8.8"))
    for (const text of ["", "example.test", "localhost", "8.8.8", "8.8.8.8.8"]) assert.isFalse(isPublicAddress(text))
  })

  it.prop(
    "exclude those at which clouds serve credentials, in every notation, to the last address",
    {
      network: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: METADATA.length - 1 })),
      end: Schema.Literals([0, 1]),
      distance: Schema.Literals([-1, 0, 1])
    },
    ({ distance, end, network }) => {
      const number = numberOf(METADATA[network]![end]) + distance
      for (const [name, spell] of Object.entries(SPELLINGS)) {
        assert.strictEqual(isMetadataAddress(literal(spell(number))), isMetadata(number), `${spell(number)} (${name})`)
      }
    },
    { arbitrary: { runs: 200 } }
  )

  it.each([
    ["fe80::a9fe:a9fe", true],
    ["fe80::1%eth0", true],
    ["febf:ffff::1", true],
    ["fec0::1", false],
    ["fd00:ec2::254", true],
    ["fd00:ec2::23", true],
    ["fd00:ec3::254", false],
    ["fd20:ce::254", true],
    ["fd20:ce::255", false],
    ["fd00:42::42", true],
    ["::1", false],
    ["10.0.0.1", false],
    ["localhost", false],
    ["", false]
  ])("%s is one of a cloud's metadata service: %s", (address, expected) =>
    assert.strictEqual(isMetadataAddress(address), expected)
  )

  it("host names are not literal addresses", () => {
    for (const host of ["localhost", "example.test", "example.test.", "1.example.test", "ip6-localhost"]) {
      assert.isUndefined(literalAddressOf(new URL(`https://${host}/`)))
    }
  })
})

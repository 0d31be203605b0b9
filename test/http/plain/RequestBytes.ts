/**
 * Generates the bytes that clients and attackers send on a connection, from valid requests to ones that are wrong in
 * many ways.
 */
import type { Random } from "../../support/Random.ts"

const TARGETS = [
  "/v1/customers",
  "/v1/payment_intents/pi_1/confirm?expand[]=customer",
  "/v1/prices?product=prod_1&limit=10",
  "/v1/",
  "/v1",
  "/v10/",
  "/V1/customers",
  "/healthz",
  "*",
  "http://localhost/v1/customers",
  "/v1/../healthz",
  "/v1/a#b",
  '/v1/"<>\\^`{|}',
  "/v1/%00%zz"
]

/** Header lines that are common, or concern the body or the connection. */
const LINES = [
  "Accept: */*",
  "accept: application/json, text/plain;q=0.5",
  "Authorization: Bearer sk_test_1234",
  "Content-Type: application/json",
  "Idempotency-Key: order 1",
  "User-Agent: test/1.0 (x; y) z",
  "X-Empty:",
  "X-Spaces:   two   words  ",
  "X-Tab:\ta",
  "X-Tight:value",
  "X-Colons: a:b:c",
  "X-Long-Name-That-Nobody-Has: 1",
  "constructor: x",
  "__proto__: x",
  "toString: x",
  "Cookie: a=b",
  "Set-Cookie: a=b",
  "Age: 1",
  "Connection: keep-alive",
  "connection: Keep-Alive",
  "Connection: close",
  "Connection: keep-alive, close",
  "Connection: upgrade",
  "Proxy-Connection: close",
  "Upgrade: h2c",
  "Expect: 100-continue",
  "Origin: https://shop.example",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: identity",
  "Transfer-Encoding : chunked",
  " Transfer-Encoding: chunked",
  "Transfer-Encoding:\x0bchunked",
  "transfer-encoding: gzip, chunked",
  "TE: trailers",
  "Trailer: X-A",
  "Content-Length: 0",
  "Content-Length: 5",
  "Content-Length: +5",
  "Content-Length: -5",
  "Content-Length: 05",
  "Content-Length: 5 ",
  "Content-Length: 5, 5",
  "Content-Length: 5;5",
  "Content-Length: 0x5",
  "Content-Length: 5e0",
  "Content-Length: 100000",
  "Content-Length: 99999999999999999999",
  "Content-Length : 5",
  "Content-Length:",
  "content-length: 5",
  "Content_Length: 5",
  "Host: other",
  "Host:",
  " folded",
  "\tfolded",
  "no colon",
  ": no name",
  "X-\xe9: a",
  "X-High: caf\xe9",
  "X-Control: a\x01b",
  "X-Delete: a\x7fb",
  "X-Nul: a\0b",
  "X-Bare-CR: a\rb",
  "X-Bare-CR: a\rTransfer-Encoding: chunked",
  "X-Bare-LF: a\nTransfer-Encoding: chunked",
  "X-Bare-LF: a\n\nGET /v1/smuggled HTTP/1.1"
]

/** Bytes on which parsers differ. */
const NASTY = ["\r", "\n", "\r\n", "\r\n\r\n", "\0", " ", "\t", ":", ",", "+", "-", "0", "5", "\x7f", "\x80", "\xff"]

const BODIES = [
  "",
  "{}",
  "hello",
  '{"amount":2000,"currency":"usd"}',
  "0\r\n\r\n",
  "5\r\nhello\r\n0\r\n\r\n",
  "\xc3\xa9"
]

const method = (random: Random): string =>
  random.chance(0.9) ? random.pick(["GET", "POST"]) : random.pick(["DELETE", "HEAD", "OPTIONS", "PRI", "get", "POSTS"])

const version = (random: Random): string =>
  random.chance(0.95) ? "HTTP/1.1" : random.pick(["HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.1 ", ""])

const hugeLine = (random: Random): string =>
  random.pick([
    () => `X-Huge: ${"a".repeat(random.integer(15_500, 17_000))}`,
    () => Array.from({ length: random.integer(90, 110) }, (_, i) => `x-${i}: 1`).join("\r\n"),
    () => Array.from({ length: 2100 }, (_, i) => `${i.toString(36)}:1`).join("\r\n")
  ])()

/** A request, mostly a valid one. */
const request = (random: Random): string => {
  const sent = method(random)
  const target = random.chance(0.7) ? random.pick(TARGETS.slice(0, 3)) : random.pick(TARGETS)
  const lines = random.chance(0.97) ? ["Host: localhost"] : []
  const choices = random.chance(0.75) ? LINES.slice(0, 6) : LINES
  for (let i = random.below(5); i > 0; i--) lines.splice(random.below(lines.length + 1), 0, random.pick(choices))
  if (random.chance(0.005)) lines.push(hugeLine(random))
  let body = ""
  if (sent === "POST" && random.chance(0.8)) {
    body = random.chance(0.97) ? random.pick(BODIES) : "b".repeat(random.integer(16_300, 16_500))
    if (random.chance(0.9)) lines.push(`Content-Length: ${body.length}`)
  }
  return [`${sent} ${target} ${version(random)}`, ...lines, "", body].join("\r\n")
}

const mutate = (random: Random, text: string): string => {
  const at = random.below(text.length + 1)
  const to = Math.min(text.length, at + random.integer(1, 4))
  return random.pick([
    () => text.slice(0, at) + random.pick(NASTY) + text.slice(at),
    () => text.slice(0, at) + random.pick(NASTY) + text.slice(to),
    () => text.slice(0, at) + text.slice(to),
    () => text.slice(0, to) + text.slice(at),
    () => text.slice(0, at) + String.fromCharCode(random.below(256)) + text.slice(at + 1),
    () => text.slice(0, at),
    () => text.replace("\r\n", random.pick(["\n", "\r", "\n\r", "\r\r\n", "\r\n "])),
    () => text.replaceAll("\r\n", "\n"),
    () => text.replace(": ", random.pick([" : ", ":  ", ":\t", ": \r\n "])),
    () => text.replace(" ", random.pick(["  ", "\t", "\x0b", "\u00a0"]))
  ])()
}

/** The bytes of a connection: one to four requests, half of the time with an error in them. */
export const requestBytes = (random: Random): Buffer => {
  let text = ""
  for (let i = random.integer(1, 4); i > 0; i--) text += request(random)
  if (random.chance(0.5)) for (let i = random.integer(1, 3); i > 0; i--) text = mutate(random, text)
  return Buffer.from(text, "latin1")
}

/** The same bytes in chunks, as they could arrive. */
export const pieces = (random: Random, bytes: Buffer): ReadonlyArray<Buffer> => {
  const cuts = Array.from({ length: random.below(4) }, () => random.below(bytes.length + 1)).toSorted((a, b) => a - b)
  return [...cuts, bytes.length]
    .map((cut, i) => bytes.subarray(cuts[i - 1] ?? 0, cut))
    .filter(({ length }) => length > 0)
}

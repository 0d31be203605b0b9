/** Compression of pages and files (semantics pages.compression). */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as http from "node:http"
import * as zlib from "node:zlib"
import { stylesheet } from "../../src/html/Assets.ts"
import { encodingOf } from "../../src/html/Compression.ts"
import { type Answer, type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { openSession } from "../support/fixtures/CheckoutPages.ts"
import { basic } from "../support/HttpExchange.ts"

let server: MemoryTillWithPages
let session: Answer
beforeAll(async () => {
  server = await start()
  session = await openSession(server)
})
afterAll(() => server.close())

interface Received {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly body: Buffer
}

/** Sends a GET without decoding the answer. */
const receive = (path: string, encodings: string | undefined, headers: object = {}): Promise<Received> =>
  new Promise((resolve, reject) => {
    const sent = { ...headers, ...(encodings !== undefined && { "accept-encoding": encodings }) }
    http
      .get(new URL(path, server.url), { headers: sent }, (response) => {
        const chunks: Array<Buffer> = []
        response.on("data", (chunk: Buffer) => chunks.push(chunk))
        response.on("end", () =>
          resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) })
        )
      })
      .on("error", reject)
  })

const DECODERS = { zstd: zlib.zstdDecompressSync, br: zlib.brotliDecompressSync, gzip: zlib.gunzipSync }

describe("the choice of an encoding", () => {
  it.each([
    ["gzip, deflate, br, zstd", "zstd"],
    ["gzip, deflate, br", "br"],
    ["gzip", "gzip"],
    ["GZIP;Q=0.5", "gzip"],
    ["zstd;q=0.1, br;q=0.5, gzip", "gzip"],
    ["zstd;q=0, br;q=0.0, gzip;q=0.1", "gzip"],
    ["identity", undefined],
    ["deflate, *", undefined],
    ["gzip;q=0", undefined],
    ["", undefined],
    [undefined, undefined]
  ])("for %j is %s", (accepted, encoding) => assert.strictEqual(encodingOf(accepted), encoding))
})

describe("pages.compression: a response", () => {
  const paths = () => [
    "/docs",
    "/docs/api/refunds",
    "/docs/api/refunds.md",
    "/docs/search?q=refund",
    "/openapi.json",
    "/docs/postman.json",
    "/llms.txt",
    stylesheet.path,
    "/checkout.js",
    new URL(session.url).pathname,
    "/dashboard/sign-in",
    "/docs/nothing"
  ]

  it.each(["zstd", "br", "gzip"] as const)("is the same in %s", async (encoding) => {
    for (const path of paths()) {
      const plain = await receive(path, undefined)
      const { body, headers, status } = await receive(path, encoding)
      assert.strictEqual(headers["content-encoding"], encoding, path)
      assert.strictEqual(plain.headers["content-encoding"], undefined, path)
      for (const all of [plain.headers, headers]) assert.match(all.vary ?? "", /(?:^|, )accept-encoding$/, path)
      assert.strictEqual(Number(headers["content-length"]), body.length, path)
      assert.isBelow(body.length, plain.body.length, path)
      assert.deepStrictEqual([status, headers["content-type"]], [plain.status, plain.headers["content-type"]], path)
      // These pages have a token of their own.
      if (/^\/(?:checkout|dashboard)\//.test(path)) continue
      assert.strictEqual(DECODERS[encoding](body).toString(), plain.body.toString(), path)
    }
  })

  it("of the home page keeps its own `Vary`", async () => {
    const { headers } = await receive("/", "br", { accept: "text/html" })
    assert.deepStrictEqual([headers["content-encoding"], headers.vary], ["br", "accept, accept-encoding"])
  })

  it("of the API is not compressed, and a short one neither", async () => {
    const authorization = basic(server.secretTest)
    for (let index = 0; index < 10; index++) await server.post("/v1/customers", { name: "A name" })
    for (const path of ["/v1/customers", "/v1/customers/cus_1", "/", "/healthz"]) {
      const { body, headers } = await receive(path, "zstd, br, gzip", { authorization })
      assert.strictEqual(headers["content-encoding"], undefined, path)
      if (path === "/v1/customers") assert.isAbove(body.length, 1024)
    }
  })
})

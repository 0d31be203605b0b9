/**
 * For any bytes on a connection, requests are read as Node's parser reads them, or left to Node's parser: both parse
 * the same values, the next request begins at the same byte, and the plain parser waits for no bytes after a line that
 * Node refuses.
 *
 * `TILL_SEED` replays a run, `TILL_FUZZ_REQUESTS` makes a longer one; a failure names the seed and the bytes.
 */
import { assert, describe, it } from "@effect/vitest"
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from "node:http"
import { Duplex } from "node:stream"
import { isDeepStrictEqual } from "node:util"
import { INCOMPLETE, NOT_PLAIN, parse } from "../../src/server/PlainRequest.ts"
import { Random, runSeed } from "../support/Random.ts"
import { countRuns, runs } from "../support/Runs.ts"
import { pieces, requestBytes } from "../http/plain/RequestBytes.ts"

const CASES = runs(Number(process.env["TILL_FUZZ_REQUESTS"] ?? 50_000))

interface Read {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

interface Outcome {
  readonly requests: ReadonlyArray<Read>
  /** The error by which Node's parser refuses a request. */
  readonly error: string | undefined
}

let begun: Array<IncomingMessage> = []
let error: string | undefined
const server = createServer({ requireHostHeader: false, shouldUpgradeCallback: () => false })
server.on("request", (request) => void begun.push(request))
server.on("checkContinue", (request) => void begun.push(request))
server.on("checkExpectation", (request) => void begun.push(request))
server.on("clientError", (refused: NodeJS.ErrnoException) => (error ??= refused.code))

/** Parses the chunks with Node's own parser, as its server does. */
const byNode = (chunks: ReadonlyArray<Buffer>): Outcome => {
  begun = []
  error = undefined
  const socket = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() })
  server.emit("connection", socket)
  for (const chunk of chunks) if (error === undefined && !socket.destroyed) socket.emit("data", chunk)
  const requests = begun
    .filter(({ complete }) => complete)
    .map((request) => ({
      method: request.method!,
      url: request.url!,
      headers: request.headers,
      body: ((request.read() as Buffer | null) ?? "").toString("latin1")
    }))
  const outcome = { requests, error }
  for (const request of begun) request.on("error", () => {})
  socket.on("error", () => {}).destroy()
  return outcome
}

/** Parses the plain requests at the beginning of the bytes. Returns them, the offset of the rest, and its kind. */
const plainOf = (bytes: Buffer) => {
  const requests: Array<Read> = []
  let offset = 0
  while (offset < bytes.length) {
    const parsed = parse(bytes, offset)
    if (parsed === NOT_PLAIN || parsed === INCOMPLETE) return { requests, offset, end: parsed }
    const { body, end, headers, method, url } = parsed
    requests.push({ method, url, headers, body: body.toString("latin1") })
    offset = end
  }
  return { requests, offset, end: undefined }
}

/** The chunks from an offset on. After some refusals, Node's parser continues with the next chunk. */
const from = (chunks: ReadonlyArray<Buffer>, offset: number): ReadonlyArray<Buffer> => {
  let left = offset
  return chunks.flatMap((chunk) => {
    const part = chunk.subarray(left)
    left = Math.max(0, left - chunk.length)
    return part.length === 0 ? [] : [part]
  })
}

/** Describes a difference between the parsers; undefined if there is none. */
const difference = (bytes: Buffer, chunks: ReadonlyArray<Buffer>): string | undefined => {
  const whole = byNode(chunks)
  const { end, offset, requests } = plainOf(bytes)
  if (!isDeepStrictEqual(requests, whole.requests.slice(0, requests.length))) return "read differently"
  const rest = byNode(from(chunks, offset))
  if (!isDeepStrictEqual(rest.requests, whole.requests.slice(requests.length))) return "goes on differently"
  if (rest.error !== whole.error) return `refused differently: ${rest.error}, ${whole.error}`
  if (end !== INCOMPLETE) return undefined
  if (rest.requests.length > 0) return "waited for, but whole"
  // Node judges some lines before their end.
  const lines = bytes.subarray(offset, Math.max(offset, bytes.lastIndexOf("\n") + 1))
  if (lines.length > 0 && byNode([lines]).error !== undefined) return "waited for in vain"
  return undefined
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe("requests that are read without node's parser", () => {
  it(
    "equal those of Node's parser, or are left to it",
    async () => {
      const counts = { plain: 0, left: 0, incomplete: 0 }
      countRuns(CASES)
      for (let i = 0; i < CASES; i++) {
        const random = new Random(runSeed + i)
        const bytes = requestBytes(random)
        const wrong = difference(bytes, pieces(random, bytes))
        if (wrong !== undefined) {
          assert.fail(`${wrong}: TILL_SEED=${runSeed}, case ${i}: ${JSON.stringify(bytes.toString("latin1"))}`)
        }
        const { end, requests } = plainOf(bytes)
        counts.plain += requests.length
        if (end === NOT_PLAIN) counts.left++
        if (end === INCOMPLETE) counts.incomplete++
        // A destroyed socket closes in a later turn.
        if (i % 100 === 0) await turn()
      }
      console.log(`TILL_SEED=${runSeed}: ${JSON.stringify(counts)} of ${CASES} connections`)
      assert.isAbove(counts.plain, CASES / 10)
      assert.isAbove(counts.left, CASES / 10)
      assert.isAbove(counts.incomplete, CASES / 1000)
    },
    600_000 + CASES
  )

  it("are the same in any chunks: every beginning of a plain request is incomplete and never refused", async () => {
    for (let i = 0; i < CASES / 100; i++) {
      const bytes = requestBytes(new Random(runSeed + i))
      const whole = parse(bytes, 0)
      for (let length = 0; length < Math.min(bytes.length, 20_000); length++) {
        const part = parse(bytes.subarray(0, length), 0)
        // A request that is left to Node may be so early or late, but always; a plain one is parsed alike.
        if (part === INCOMPLETE || isDeepStrictEqual(part, whole)) continue
        // The parser does not wait for the rest of a long body.
        if (part === NOT_PLAIN && typeof whole === "object" && whole.body.length > 16_384) continue
        assert.fail(`TILL_SEED=${runSeed}, case ${i} at ${length}: ${JSON.stringify(bytes.toString("latin1"))}`)
      }
    }
  })
})

/** Connections to another process: their number, their use, and their failures. */
import { afterEach, assert, describe, it } from "@effect/vitest"
import type { AddressInfo, Socket } from "node:net"
import * as tls from "node:tls"
import { Connections, type RunnerResponse, type Sent } from "../../../src/http/forward/Connections.ts"
import { responseBytes } from "../../../src/server/PlainResponse.ts"
import { until } from "../../support/TillProcess.ts"
import { TLS } from "../../support/MemoryFleet.ts"

const endings: Array<() => unknown> = []
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end()
})

interface Arrival {
  readonly socket: Socket
  /** In the order of their arrival. */
  readonly connection: number
  readonly text: string
}

/** A process that handles each request as the test defines. */
const startPeer = async (take: (arrival: Arrival) => void) => {
  const sockets: Array<Socket> = []
  const arrivals: Array<Arrival> = []
  const server = tls.createServer(TLS.server, (socket) => {
    const connection = sockets.push(socket) - 1
    let ahead = ""
    socket.on("error", () => {})
    socket.on("data", (chunk) => {
      ahead += chunk.toString("latin1")
      const head = ahead.indexOf("\r\n\r\n")
      const length = Number(/content-length: (\d+)/i.exec(ahead)?.[1] ?? 0)
      if (head === -1 || ahead.length < head + 4 + length) return
      const arrival = { socket, connection, text: ahead }
      ahead = ""
      arrivals.push(arrival)
      take(arrival)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  endings.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, arrivals, sockets, close: () => new Promise((resolve) => server.close(resolve)) }
}

const answer = ({ socket, text }: Arrival): void =>
  void socket.write(responseBytes(200, { "x-asked": text.split(" ")[1]! }, "{}", 60_000))

const sent = (url: string, body = ""): Sent => ({
  method: body === "" ? "GET" : "POST",
  url,
  lines: ["Host", "till", "till-forwarded", "a;b"],
  body: Buffer.from(body)
})

type Outcome = RunnerResponse | { readonly wasSent: boolean }

const linksOf = (): Connections => {
  const links = new Connections(TLS, () => {})
  endings.push(() => links.close())
  return links
}

const ask = (links: Connections, url: string, request: Sent): Promise<Outcome> =>
  new Promise((resolve) => {
    const giveUp = links.send(url, request, { onReply: resolve, onLost: (wasSent) => resolve({ wasSent }) })
    assert.isDefined(giveUp)
  })

/** Sends a request again until it was sent: a busy machine may take too long to connect. */
const askUntilSent = async (links: Connections, url: string, request: Sent): Promise<Outcome> => {
  for (;;) {
    const outcome = await ask(links, url, request)
    if (!("wasSent" in outcome) || outcome.wasSent) return outcome
  }
}

const askedOf = (outcome: Outcome) => ("headers" in outcome ? outcome.headers["x-asked"] : outcome)

describe("requests to another process", () => {
  it("go one after the other over one connection", async () => {
    const peer = await startPeer(answer)
    const links = linksOf()
    for (const path of ["/v1/a", "/v1/b", "/v1/c"]) {
      assert.strictEqual(askedOf(await ask(links, peer.url, sent(path))), path)
    }
    const made = await ask(links, peer.url, sent("/v1/d", '{"name":"é"}'))
    assert.strictEqual(askedOf(made), "/v1/d")
    assert.strictEqual(peer.sockets.length, 1)
    assert.strictEqual(
      peer.arrivals[3]!.text,
      "POST /v1/d HTTP/1.1\r\nhost: till\r\nconnection: keep-alive\r\ntill-forwarded: a;b\r\ncontent-length: 13\r\n\r\n" +
        '{"name":"Ã©"}'
    )
  })

  it("each get their own answer, in any framing", async () => {
    const peer = await startPeer(({ socket, text }) => {
      const bytes = Buffer.from(responseBytes(200, { "x-asked": text.split(" ")[1]! }, "é".repeat(50), 60_000))
      const pieces = Array.from({ length: Math.ceil(bytes.length / 37) }, (_, i) => bytes.subarray(37 * i, 37 * i + 37))
      const next = () => {
        const piece = pieces.shift()
        if (piece !== undefined) socket.write(piece, () => setImmediate(next))
      }
      next()
    })
    const links = linksOf()
    const paths = Array.from({ length: 40 }, (_, i) => `/v1/${i}`)
    const outcomes = await Promise.all(paths.map((path) => askUntilSent(links, peer.url, sent(path))))
    assert.deepStrictEqual(outcomes.map(askedOf), paths)
    for (const outcome of outcomes) assert.strictEqual((outcome as RunnerResponse).body.toString(), "é".repeat(50))
  })

  it("keep their connection, with any Host header of their clients", async () => {
    const peer = await startPeer(answer)
    const links = linksOf()
    for (const host of ["till", "pay.example", "192.0.2.1"]) {
      const outcome = await ask(links, peer.url, { ...sent("/v1/a"), lines: ["Host", host] })
      assert.strictEqual(askedOf(outcome), "/v1/a")
    }
    assert.strictEqual(peer.sockets.length, 1)
  })

  it("are sent once, with any kind of answer", async () => {
    const peer = await startPeer(({ socket, text }) => {
      socket.write(
        `HTTP/1.1 200 OK\r\nx-asked: ${text.split(" ")[1]}\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`
      )
    })
    const outcome = (await ask(linksOf(), peer.url, sent("/v1/a", "{}"))) as RunnerResponse
    assert.deepStrictEqual([askedOf(outcome), outcome.body.toString()], ["/v1/a", "{}"])
    assert.strictEqual(peer.arrivals.length, 1)
  })

  it("go to no address without a proof, even if it begins with http", async () => {
    const peer = await startPeer(answer)
    const url = peer.url.replace("https:", "http:")
    assert.strictEqual(askedOf(await ask(linksOf(), url, sent("/v1/a"))), "/v1/a")
  })

  it("get no connection whose last answer ended it, or sent too many bytes", async () => {
    const peer = await startPeer(({ connection, socket }) => {
      const bytes = responseBytes(200, {}, "{}", connection === 0 ? undefined : 60_000)
      socket.write(connection === 1 ? `${String(bytes)}HTTP/1.1 200 OK\r\n` : bytes)
    })
    const links = linksOf()
    for (const _ of [0, 1, 2, 3])
      assert.strictEqual(((await ask(links, peer.url, sent("/v1/a"))) as RunnerResponse).status, 200)
    assert.deepStrictEqual(
      peer.arrivals.map(({ connection }) => connection),
      [0, 1, 2, 2]
    )
  })

  it("are lost with their connection, and report whether they were sent", async () => {
    const peer = await startPeer(({ socket }) => {
      socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{")
    })
    const links = linksOf()
    assert.deepStrictEqual(await ask(links, peer.url, sent("/v1/a")), { wasSent: true })
    const gone = await startPeer(answer)
    await gone.close()
    assert.deepStrictEqual(await ask(links, gone.url, sent("/v1/a")), { wasSent: false })
  })

  it("call nothing back after they are cancelled, and their connection ends", async () => {
    const peer = await startPeer((arrival) => {
      if (arrival.text.includes("/v1/kept")) answer(arrival)
    })
    const links = linksOf()
    const heard: Array<string> = []
    const receiver = { onReply: () => void heard.push("reply"), onLost: () => void heard.push("lost") }
    const giveUp = links.send(peer.url, sent("/v1/given-up"), receiver)!
    await until("it has come", () => peer.arrivals.length === 1)
    giveUp()
    giveUp()
    await until("its connection has ended", () => peer.sockets[0]!.destroyed)
    assert.strictEqual(askedOf(await ask(links, peer.url, sent("/v1/kept"))), "/v1/kept")
    assert.deepStrictEqual(heard, [])
  })
})

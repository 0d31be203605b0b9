/**
 * Several processes of one service, here in one process: each has the real routes and pages, its own engine and
 * listener, and all share a journal and views. The test decides which one serves which account.
 */
import { Effect, Layer, ManagedRuntime, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { connect } from "node:net"
import type { Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import type { ConnectionOptions } from "node:tls"
import { ApiVersions } from "../../../src/domain/ApiVersions.ts"
import type { AccountId } from "../../../src/engine/log/Document.ts"
import { Accounts } from "../../../src/engine/Accounts.ts"
import * as Engine from "../../../src/engine/Engine.ts"
import type { PlacementShape } from "../../../src/engine/process/Placement.ts"
import { partitionOf, PARTITIONS, Placement } from "../../../src/engine/process/Placement.ts"
import { Forwarder } from "../../../src/http/forward/Forwarder.ts"
import * as Forward from "../../../src/http/forward/Forwarder.ts"
import * as RunnerTls from "../../../src/http/forward/RunnerTls.ts"
import { HttpConfig } from "../../../src/server/HttpConfig.ts"
import type { HttpConfigShape } from "../../../src/server/HttpConfig.ts"
import * as NodeServer from "../../../src/server/NodeServer.ts"
import * as Routes from "../../../src/http/Routes.ts"
import { answerUnreadable } from "../../../src/http/UnreadableRequests.ts"
import { PagesConfig } from "../../../src/pages/checkout/Embedding.ts"
import * as Pages from "../../../src/pages/Pages.ts"
import { INSTALLATION } from "../../../src/payments/AccountIds.ts"
import * as Formats from "../../../src/payments/Formats.ts"
import * as Merchants from "../../../src/payments/Merchants.ts"
import { PaymentsConfig } from "../../../src/payments/PaymentsConfig.ts"
import * as Simulator from "../../../src/payments/Simulator.ts"
import * as Timers from "../../../src/payments/Timers.ts"
import type { Storage } from "../../engine/Harness.ts"
import { storageInMemory } from "../../engine/Harness.ts"
import type { Keys } from "../../support/MemoryService.ts"
import * as MemoryService from "../../support/MemoryService.ts"
import { paymentsConfig } from "../../support/PaymentsConfig.ts"

export const TLS = RunnerTls.make(Redacted.make(new Uint8Array(32).fill(7)))
export const DOCS_URL = "https://docs.example.test"

/** Shorter than a placement's confirmation. */
const CONFIRM_MILLIS = 500

export interface Runner {
  readonly port: number
  /** Address for the other runners. */
  readonly url: string
  readonly placement: PlacementShape
  readonly accounts: Accounts["Service"]
  readonly run: <A, E>(effect: Effect.Effect<A, E, Accounts>) => Promise<A>
  readonly stop: () => Promise<void>
}

export interface Runners {
  readonly all: ReadonlyArray<Runner>
  /** Moves a partition, or an account's, to a runner, in the steps of a cluster. */
  readonly move: (what: AccountId | number, to: number) => Promise<void>
  /** The index of the runner that serves an account. */
  readonly ownerOf: (account: AccountId) => number
  readonly merchant: () => Promise<Keys>
  readonly close: () => Promise<void>
}

/** Additional pages beside those of the service. */
export type MorePages = typeof Pages.layer

const routes = (storage: Storage, config: Partial<HttpConfigShape>, more: MorePages) => {
  const engine = Engine.layer({ replicated: INSTALLATION }).pipe(
    Layer.provide([Timers.layer, Formats.layer, MemoryService.numbers, Merchants.layerEventVersions]),
    Layer.provideMerge(ApiVersions.layer()),
    Layer.provideMerge(Simulator.layer),
    Layer.provide(Layer.succeedContext(storage))
  )
  return Routes.serveWith(Layer.merge(Pages.layer, more)).pipe(
    Layer.provideMerge(
      MemoryService.listening(() => answerUnreadable(NodeServer.create({ plain: MemoryService.PLAIN_HTTP }), DOCS_URL))
    ),
    Layer.provide(Layer.succeed(PagesConfig, { embedOrigins: null })),
    Layer.provide(Layer.succeed(HttpConfig, { docsUrl: DOCS_URL, ...config })),
    Layer.provideMerge(engine),
    Layer.provideMerge(Layer.succeed(PaymentsConfig, paymentsConfig({ publicUrl: "https://pay.example.test" }))),
    Layer.provideMerge(Forward.layer({ tls: TLS, host: "127.0.0.1", port: 0, plain: MemoryService.PLAIN_HTTP })),
    Layer.provideMerge(Placement.layerShared)
  )
}

const startRunner = async (storage: Storage, config: Partial<HttpConfigShape>, more: MorePages): Promise<Runner> => {
  const runtime = ManagedRuntime.make(routes(storage, config, more))
  const { accounts, address, placement, url } = await runtime.runPromise(
    Effect.gen(function* () {
      const { address } = yield* HttpServer.HttpServer
      const { url } = yield* Forwarder
      return { accounts: yield* Accounts, address, placement: yield* Placement, url: url! }
    })
  )
  if (!("port" in address)) throw new Error("The server does not listen on a port")
  placement.confirm(performance.now())
  const timer = setInterval(() => placement.confirm(performance.now()), CONFIRM_MILLIS)
  return {
    port: address.port,
    url,
    placement,
    accounts,
    run: (effect) => runtime.runPromise(effect),
    stop: () => {
      clearInterval(timer)
      return runtime.dispose()
    }
  }
}

/** Starts runners and deals the partitions to them in turn. */
export const start = async (
  count: number,
  config: Partial<HttpConfigShape> = {},
  more: MorePages = Layer.empty
): Promise<Runners> => {
  const storage = await Effect.runPromise(storageInMemory)
  const all = await Promise.all(Array.from({ length: count }, () => startRunner(storage, config, more)))
  const owners = new Map<number, number>()
  const move = async (what: AccountId | number, to: number): Promise<void> => {
    const partition = typeof what === "number" ? what : partitionOf(what)
    const from = owners.get(partition)
    if (from === to) return
    if (from !== undefined) {
      await Effect.runPromise(all[from]!.placement.release(partition))
      for (const { placement } of all) placement.placed(partition, null)
    }
    owners.set(partition, to)
    await Effect.runPromise(all[to]!.placement.acquire(partition))
    for (const [index, { placement }] of all.entries()) if (index !== to) placement.placed(partition, all[to]!.url)
  }
  for (let partition = 0; partition < PARTITIONS; partition++) await move(partition, partition % count)
  const ownerOf = (account: AccountId) => owners.get(partitionOf(account))!
  return {
    all,
    move,
    ownerOf,
    merchant: () => all[ownerOf(INSTALLATION)]!.run(MemoryService.merchant("Merchant")),
    close: async () => {
      await Promise.all(all.map(({ stop }) => stop()))
    }
  }
}

/** A connection for requests in bytes, one after the other. */
export class RawClient {
  readonly #socket: Socket
  #received = Buffer.alloc(0)
  #wake: () => void = () => undefined
  #hasEnded = false

  /** Connects; with `tls`, as one of the runners. */
  constructor(port: number, tls?: ConnectionOptions) {
    const address = { port, host: "127.0.0.1" }
    this.#socket = tls === undefined ? connect(address) : connectTls({ ...tls, ...address })
    this.#socket.on("data", (chunk) => {
      this.#received = Buffer.concat([this.#received, chunk])
      this.#wake()
    })
    const end = () => {
      this.#hasEnded = true
      this.#wake()
    }
    this.#socket.on("error", end).on("close", end)
  }

  write(bytes: Buffer | string): void {
    this.#socket.write(bytes)
  }

  /** Reads the next answer, without informational ones; undefined if the connection ends before it. */
  async read(isHead = false): Promise<string | undefined> {
    for (;;) {
      const answer = this.#take(isHead)
      if (answer !== undefined && !answer.startsWith("HTTP/1.1 1")) return answer
      if (answer !== undefined) continue
      if (this.#hasEnded) return undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  send(bytes: Buffer | string, isHead = false): Promise<string | undefined> {
    this.write(bytes)
    return this.read(isHead)
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(isHead: boolean): string | undefined {
    const text = this.#received.toString("latin1")
    const end = text.indexOf("\r\n\r\n")
    if (end === -1) return undefined
    const head = text.slice(0, end)
    const isEmpty = isHead || /^HTTP\/1\.1 (?:1|204|304)/.test(head)
    let length = end + 4 + (isEmpty ? 0 : Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0))
    if (!isEmpty && /\r\ntransfer-encoding: chunked/i.test(head)) {
      const last = text.indexOf("\r\n0\r\n\r\n", end)
      if (last === -1) return undefined
      length = last + 7
    }
    if (text.length < length) return undefined
    this.#received = this.#received.subarray(length)
    return text.slice(0, length)
  }
}

/** An answer without parts that differ each time. */
export const comparable = (answer: string | undefined): string | undefined =>
  answer?.replace(/^x-request-id: .*$/im, "x-request-id: *").replace(/^date: .*$/im, "date: *")

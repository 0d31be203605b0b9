/** A merchant whose payments go through the example gateway and a faulty network, for the rounds of one fault. */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import * as Path from "node:path"
import { Effect, Redacted } from "effect"
import * as StandardWebhooks from "../../src/domain/StandardWebhooks.ts"
import { ExampleGateway } from "../processors/protocol/ExampleGateway.ts"
import { Random } from "../support/SeededRandom.ts"
import { serverPort } from "../support/ServerPort.ts"
import { KEYS, pause } from "../support/TillProcess.ts"
import { Findings } from "./Finding.ts"
import { GatewayProxy } from "./GatewayProxy.ts"
import { GatewayTraffic } from "./GatewayTraffic.ts"
import { type Books, compare, readAll, repeatAll, undecided } from "./Ledger.ts"
import type { Context, Row, Stage } from "./Scene.ts"
import type { Service } from "./Service.ts"
import type { Destination } from "./Traffic.ts"

/** One Till, or several runners of one. */
export interface Site {
  /** The process for commands. */
  readonly service: Service
  readonly exchange: Destination
  close(): Promise<void>
}

/** Answers before the fault, and after the recovery. */
const WORK = [120, 60] as const
const WORK_MILLIS_MAX = 20_000
/** Time in which Till resolves its operations by itself, after which the gateway sends a message about each. */
const ALONE_MILLIS_MAX = 45_000
const RESOLVED_MILLIS_MAX = 90_000
const LOOK_MILLIS = 500
/** Time in which every runner has the processor. */
const KNOWN_MILLIS = 3000
/** Folders hold sockets, whose paths may not be long. */
const NAME_LENGTH_MAX = 20
const KEY = KEYS.secretLive

export class GatewayScene implements Stage {
  readonly site: Site
  readonly gateway: ExampleGateway
  readonly random: Random
  readonly findings = new Findings()
  readonly recoveries: Array<number> = []
  rounds = 0
  readonly #context: Context
  readonly #fault: string
  readonly #proxy: GatewayProxy
  readonly #traffic: GatewayTraffic
  readonly #processor: string
  #resolved = ""

  private constructor(
    context: Context,
    fault: string,
    { gateway, processor, proxy, site }: Awaited<ReturnType<typeof open>>
  ) {
    this.#context = context
    this.#fault = fault
    this.site = site
    this.gateway = gateway
    this.random = new Random(context.seed)
    this.#proxy = proxy
    this.#processor = processor
    this.#traffic = new GatewayTraffic({ seed: context.seed, apiKey: KEY, exchange: site.exchange })
  }

  static async make(context: Context, fault: string, start: (folder: string) => Promise<Site>): Promise<GatewayScene> {
    const folder = Path.join(context.folder, fault.replaceAll(/\W+/g, "-").slice(0, NAME_LENGTH_MAX))
    const gatewayFolder = Path.join(folder, "gateway")
    mkdirSync(gatewayFolder, { recursive: true })
    return new GatewayScene(context, fault, await open(gatewayFolder, await start(folder), new Random(context.seed)))
  }

  /** Runs one round on a faulty network. The fault calls `began` when the time to the next answer starts. */
  async round(fault: (began: () => void) => Promise<void>): Promise<void> {
    const traffic = this.#traffic
    const patience = this.#context.patience * 1000
    this.rounds++
    this.#proxy.isFaulty = true
    traffic.start()
    await traffic.work(this.random.integer(WORK[0] / 3, WORK[0]), WORK_MILLIS_MAX)
    let since = 0
    let recovered: Promise<number | undefined> = Promise.resolve(undefined)
    await fault(() => {
      since = performance.now()
      recovered = traffic.acknowledgedAfter(since, patience)
    })
    const at = await recovered
    const subject = `round ${this.rounds}`
    if (at === undefined) this.findings.add("wrong", subject, `${subject}: no answer within ${patience / 1000} s`)
    else this.recoveries.push((at - since) / 1000)
    await traffic.work(WORK[1], WORK_MILLIS_MAX)
    this.#proxy.isFaulty = false
    await traffic.stop(patience)
  }

  /** Runs the last check: both books have to agree once all operations are final. */
  async end(): Promise<void> {
    const began = performance.now()
    await this.#resolve(began)
    this.#resolved = `all operations had ended ${((performance.now() - began) / 1000).toFixed(0)} s after the last round`
    const books = await this.#books()
    compare(books, this.findings)
    for (const { kind, text } of this.#traffic.problems) this.findings.add(kind, text, text)
    await repeatAll(this.#traffic, this.findings)
    const decide = undecided(books).length
    if (decide > 0) this.#resolved += `, ${decide} for a person to decide`
    await this.#verify()
    this.#context.log(`${this.#fault}: ${this.rounds} rounds. ${this.#remark}`)
  }

  /** Waits until Till has ended its operations, by itself at first, and then by messages of the gateway. */
  async #resolve(began: number): Promise<void> {
    for (;;) {
      const operations = await readAll(this.site.exchange, KEY, "/v1/operations")
      const open = operations.filter(({ status }) => status !== "final" && status !== "decide")
      const millis = performance.now() - began
      if (open.length === 0 || millis > RESOLVED_MILLIS_MAX) return
      if (millis > ALONE_MILLIS_MAX) for (const operation of open) await this.#report(operation)
      await pause(LOOK_MILLIS)
    }
  }

  /** Sends the gateway's message that an operation has a new state. */
  async #report({ id, payment_intent: payment }: { readonly id: string; readonly payment_intent: string }) {
    const body = { type: "operation.updated", operation: { id, payment } }
    const seconds = Math.floor(Date.now() / 1000)
    const headers = StandardWebhooks.sign([this.gateway.secret], `msg_${id}`, seconds, JSON.stringify(body))
    const path = `/processors/${this.#processor}/webhooks`
    await this.site.exchange.request("POST", path, { key: null, body, headers })
  }

  async #books(): Promise<Books> {
    const { exchange } = this.site
    const [payments, refunds, operations, events] = await Promise.all(
      ["payment_intents", "refunds", "operations", "events"].map((list) => readAll(exchange, KEY, `/v1/${list}`))
    )
    return {
      payments: payments!,
      refunds: refunds!,
      operations: operations!,
      events: events!,
      lines: this.gateway.changes
    }
  }

  async #verify(): Promise<void> {
    try {
      await this.site.service.command("verify")
    } catch (error) {
      const told = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : String(error)
      this.findings.add("wrong", "verify", `till verify: ${told}`)
    }
  }

  get #remark(): string {
    const { answered, inProgress, lost, unavailable } = this.#traffic
    const treated = [...this.#proxy.counts].map(([name, count]) => `${count} × ${name}`).join(", ")
    return (
      `${answered} answers; ${lost} requests without one, ${unavailable} times 5xx or 429, ${inProgress} times 409; ` +
      `between Till and the gateway ${treated}; ${this.#resolved}.`
    )
  }

  get row(): Row {
    const { findings, recoveries, rounds } = this
    return {
      fault: this.#fault,
      rounds,
      acknowledged: this.#traffic.answered,
      findings,
      recoveries,
      remark: this.#remark
    }
  }

  async breaks(error: unknown): Promise<void> {
    const text = error instanceof Error ? error.message : String(error)
    const logged = this.site.service.lastLines
    this.findings.add("wrong", "broke off", `broke off in round ${this.rounds}: ${text}. Till logged: ${logged}`)
  }

  async close(): Promise<void> {
    await this.#traffic.stop(0)
    this.#proxy.close()
    await this.gateway.kill()
    await this.site.close()
  }
}

/** Starts the gateway, and adds it to the merchant through the proxy. */
const open = async (folder: string, site: Site, random: Random) => {
  const gateway = ExampleGateway.lay(folder, await Effect.runPromise(serverPort), { GATEWAY_LIVEMODE: "true" })
  await gateway.start()
  const proxy = await GatewayProxy.start(gateway.port, random)
  const credentials = Path.join(folder, "credentials")
  writeFileSync(credentials, JSON.stringify({ secret: Redacted.value(gateway.secret) }))
  chmodSync(credentials, 0o600)
  const { merchants } = JSON.parse(await site.service.command("merchants", "list", "--json"))
  const options = ["--mode", "live", "--kind", "http", "--url", proxy.url, "--credentials", credentials, "--json"]
  const added = JSON.parse(await site.service.command("processors", "add", merchants[0].id, ...options))
  const processor: string = added.processors[0].id
  // From now on the gateway sends messages about payments that were pending.
  await gateway.restart({ TILL_WEBHOOKS: `${site.service.baseUrl}/processors/${processor}/webhooks` })
  await pause(KNOWN_MILLIS)
  return { gateway, processor, proxy, site }
}

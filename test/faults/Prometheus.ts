/**
 * A Prometheus that evaluates the alerts of deploy/monitoring over processes of the suite. It needs `prometheus` on the
 * path. Time passes `SPEED` times as fast for the alerts: durations, ages and increases in the rules are divided by it,
 * so that an hour of theirs is a minute. Anchors and backups are made by the machine's clock, and their ages are not.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import { Effect } from "effect"
import { parse, stringify } from "yaml"
import { serverPort } from "../support/ServerPort.ts"
import { pause, until } from "../support/TillProcess.ts"

export const SPEED = 60

const RULES = Path.join(import.meta.dirname, "../../deploy/monitoring/alerts.yaml")
const INTERVAL = "1s"
const LOOK_MILLIS = 250

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for?: string
}

interface Rules {
  readonly groups: ReadonlyArray<{ readonly name: string; readonly rules: ReadonlyArray<Rule> }>
}

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 }

const faster = (durations: string): string =>
  durations.replaceAll(/\b(\d+)([smh])\b/gu, (_, count, unit) => `${(Number(count) * SECONDS[unit]! * 1000) / SPEED}ms`)

/** Thresholds of ages and of increases, which are in proportion to their window. A latency is none of them. */
const GROWS = /increase\(|oldest_(?:due_)?seconds|lag_seconds/u
const GROWS_BY_CLOCK = /time\(\)/u

/** Returns a rule for the faster time. */
export const scaled = ({ expr, for: pending, ...rule }: Rule): Rule => ({
  ...rule,
  expr:
    GROWS.test(expr) && !GROWS_BY_CLOCK.test(expr)
      ? faster(expr).replaceAll(/> (\d+)/gu, (_, threshold) => `> ${Number(threshold) / SPEED}`)
      : faster(expr),
  ...(pending !== undefined && { for: faster(pending) })
})

const read = (): Rules => parse(fs.readFileSync(RULES, "utf8"))

/** Returns the names of all alerts. */
export const alertNames = (): ReadonlyArray<string> =>
  read().groups.flatMap(({ rules }) => rules.map(({ alert }) => alert))

export const isInstalled = (): boolean => spawnSync("prometheus", ["--version"]).status === 0

/** Alerts by their names, each pending or firing. */
export type Standing = ReadonlyMap<string, "pending" | "firing">

export class Prometheus {
  readonly #child: ChildProcess
  readonly #port: number

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.#port = port
  }

  /** Starts it on the metrics of these ports of this machine, and waits until it has evaluated all rules. */
  static async start(folder: string, ports: ReadonlyArray<number>): Promise<Prometheus> {
    fs.mkdirSync(folder, { recursive: true })
    const { groups } = read()
    const rules = { groups: groups.map((group) => ({ ...group, rules: group.rules.map(scaled) })) }
    fs.writeFileSync(Path.join(folder, "alerts.yaml"), stringify(rules))
    const config = {
      global: { scrape_interval: INTERVAL, scrape_timeout: INTERVAL, evaluation_interval: INTERVAL },
      rule_files: ["alerts.yaml"],
      scrape_configs: [{ job_name: "till", static_configs: [{ targets: ports.map((port) => `127.0.0.1:${port}`) }] }]
    }
    const file = Path.join(folder, "prometheus.yaml")
    fs.writeFileSync(file, stringify(config))
    const port = await Effect.runPromise(serverPort)
    const parameters = [
      `--config.file=${file}`,
      `--storage.tsdb.path=${Path.join(folder, "data")}`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--log.level=error"
    ]
    const child = spawn("prometheus", parameters, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] })
    const prometheus = new Prometheus(child, port)
    await until("Prometheus has evaluated the rules", () => prometheus.#hasEvaluated())
    return prometheus
  }

  async #hasEvaluated(): Promise<boolean> {
    try {
      const { groups } = await this.#get("rules")
      const rules: ReadonlyArray<{ readonly name: string; readonly health: string; readonly lastError?: string }> =
        groups.flatMap((group: { readonly rules: unknown }) => group.rules)
      const wrong = rules.find(({ health }) => health === "err")
      if (wrong !== undefined) throw new RuleFailed(`${wrong.name}: ${wrong.lastError}`)
      return rules.length > 0 && rules.every(({ health }) => health === "ok")
    } catch (error) {
      if (error instanceof RuleFailed) throw error
      return false
    }
  }

  async standing(): Promise<Standing> {
    const { alerts } = await this.#get("alerts")
    const standing = new Map<string, "pending" | "firing">()
    for (const { labels, state } of alerts) {
      if (standing.get(labels.alertname) !== "firing") standing.set(labels.alertname, state)
    }
    return standing
  }

  /** Collects the alerts that fire until a condition holds, or the time is over; returns whether it held. */
  async watch(millisMax: number, fired: Set<string>, isDone: (standing: Standing) => boolean): Promise<boolean> {
    const end = performance.now() + millisMax
    while (performance.now() < end) {
      const standing = await this.standing()
      for (const [alert, state] of standing) if (state === "firing") fired.add(alert)
      if (isDone(standing)) return true
      await pause(LOOK_MILLIS)
    }
    return false
  }

  // oxlint-disable-next-line typescript/no-explicit-any -- an answer of Prometheus
  async #get(what: string): Promise<any> {
    const response = await fetch(`http://127.0.0.1:${this.#port}/api/v1/${what}`)
    const { data } = (await response.json()) as { readonly data: unknown }
    return data
  }

  close(): void {
    this.#child.kill("SIGKILL")
  }
}

class RuleFailed extends Error {}

/** Alerts, their runbooks and the dashboard: they can be read, and each metric in them exists. */
import { parser } from "@prometheus-io/lezer-promql"
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as Path from "node:path"
import { parse as parseYaml } from "yaml"
import { documented } from "../support/DocumentedMetrics.ts"

const ROOT = Path.join(import.meta.dirname, "../..")
const read = (file: string): string => fs.readFileSync(Path.join(ROOT, file), "utf8")

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly runbook_url: string }
}

const { groups } = parseYaml(read("deploy/monitoring/alerts.yaml")) as {
  readonly groups: ReadonlyArray<{ readonly name: string; readonly rules: ReadonlyArray<Rule> }>
}
const rules = groups.flatMap((group) => group.rules)

interface Panel {
  readonly id: number
  readonly title: string
  readonly type: string
  readonly gridPos: Readonly<Record<"x" | "y" | "w" | "h", number>>
  readonly targets?: ReadonlyArray<{ readonly expr: string; readonly legendFormat: string }>
}

const dashboard = JSON.parse(read("deploy/monitoring/dashboard.json")) as { readonly panels: ReadonlyArray<Panel> }

/** Intervals that Grafana puts in. */
const withoutVariables = (expr: string): string => expr.replaceAll("$__rate_interval", "1m").replaceAll("$job", "till")

/** Metrics and their labels in a query. Throws if it cannot be parsed. */
const selectorsOf = (
  query: string
): ReadonlyArray<{ readonly metric: string; readonly labels: ReadonlyArray<string> }> => {
  const found: Array<{ metric: string; labels: Array<string> }> = []
  parser.parse(query).iterate({
    enter: ({ from, name, to, type }) => {
      const text = query.slice(from, to)
      if (type.isError) throw new Error(`${query} has an error at ${from}`)
      if (name === "VectorSelector") found.push({ metric: /^[\w:]+/u.exec(text)![0], labels: [] })
      if (name === "LabelName") found.at(-1)?.labels.push(text)
    }
  })
  return found
}

/** Labels that Prometheus adds to each series. */
const ADDED = ["job", "instance", "le"]

const problemsOf = (place: string, query: string): ReadonlyArray<string> =>
  selectorsOf(query).flatMap(({ labels, metric }) => {
    if (metric === "up") return []
    const family = documented.get(metric) ?? documented.get(metric.replace(/_(?:bucket|sum|count)$/u, ""))
    if (family === undefined) return [`${place}: ${metric} is not documented`]
    const isPart = !documented.has(metric)
    if (isPart !== (family.type === "histogram")) return [`${place}: ${metric} is a ${family.type}`]
    return labels.filter((label) => ![...family.labels, ...ADDED].includes(label)).map((label) => `${place}: ${label}`)
  })

describe("the alerts", () => {
  it("have a name of their own, a severity, a summary, and a duration that Prometheus can read", () => {
    assert.isAtLeast(rules.length, 15)
    assert.strictEqual(new Set(rules.map(({ alert }) => alert)).size, rules.length)
    for (const { alert, annotations, for: pending, labels, ...rule } of rules) {
      assert.match(alert, /^Till[A-Z][A-Za-z]+$/u)
      assert.include(["page", "ticket"], labels.severity, alert)
      assert.match(annotations.summary, /^\S.*[^.]$/u, alert)
      if (pending !== undefined) assert.match(pending, /^\d+[smh]$/u, alert)
      assert.hasAllKeys(rule, ["expr"], alert)
    }
  })

  it("ask for metrics and labels that exist", () => {
    assert.deepStrictEqual(
      rules.flatMap(({ alert, expr }) => problemsOf(alert, expr)),
      []
    )
  })

  it("have a runbook each, no runbook lacks its alert, and the operator's page lists them", () => {
    const pages = fs.readdirSync(Path.join(ROOT, "docs/runbooks")).toSorted()
    assert.deepStrictEqual(pages, rules.map(({ alert }) => `${alert}.md`).toSorted())
    const listed = [...read("docs/operations.md").matchAll(/^\| \[(\w+)\]\(runbooks\/(\w+)\.md\) +\| (\w+) +\|$/gmu)]
    assert.deepStrictEqual(
      listed.map(([, name, file, severity]) => [name, file, severity]),
      rules.map(({ alert, labels }) => [alert, alert, labels.severity])
    )
    for (const { alert, annotations } of rules) {
      assert.strictEqual(annotations.runbook_url, `docs/runbooks/${alert}.md`)
      const headings = [...read(annotations.runbook_url).matchAll(/^#+ (.*)$/gmu)].map(([, heading]) => heading)
      assert.deepStrictEqual(headings, [alert, "What it means", "What to look at", "What to do"])
    }
  })

  it("are read by the sample configuration", () => {
    const config = parseYaml(read("deploy/monitoring/prometheus.yaml"))
    for (const file of config.rule_files) assert.isTrue(fs.existsSync(Path.join(ROOT, "deploy/monitoring", file)))
    assert.strictEqual(config.scrape_configs[0].job_name, "till")
  })
})

describe("the dashboard", () => {
  const queries = dashboard.panels.flatMap(({ targets = [], title }) => targets.map(({ expr }) => ({ title, expr })))

  it("asks for metrics and labels that exist", () => {
    assert.isAtLeast(queries.length, 50)
    assert.deepStrictEqual(
      queries.flatMap(({ expr, title }) => problemsOf(title, withoutVariables(expr))),
      []
    )
  })

  it("shows every metric", () => {
    const shown = new Set(
      queries.flatMap(({ expr }) => selectorsOf(withoutVariables(expr)).map(({ metric }) => metric))
    )
    const missing = [...documented].filter(
      ([name, { type }]) =>
        !shown.has(name) && (type !== "histogram" || ![...shown].some((one) => one.startsWith(name)))
    )
    assert.deepStrictEqual(
      missing.map(([name]) => name),
      []
    )
  })

  it("has panels that do not overlap, with ids of their own", () => {
    assert.strictEqual(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length)
    const taken = new Set<string>()
    for (const { gridPos, title } of dashboard.panels) {
      assert.isAtMost(gridPos.x + gridPos.w, 24, title)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.isFalse(taken.has(`${x} ${y}`), title)
          taken.add(`${x} ${y}`)
        }
      }
    }
  })

  it("shows panels that runbooks name", () => {
    const titles = dashboard.panels.map(({ title }) => title)
    assert.includeMembers(titles, ["Flush duration", "Event loop delay", "Requests by status", "Requests by route"])
    assert.includeMembers(titles, ["Disk by table", "Moves of partitions", "Projection lag", "Memory by owner"])
  })
})

/**
 * The alerts of deploy/monitoring: an hour without a fault fires none, and each fires under its fault. Others that
 * a fault may fire are listed with it. Prometheus evaluates them sixty times as fast.
 */
import * as Path from "node:path"
import { Effect } from "effect"
import type { Client } from "pg"
import { idAt } from "../../../src/engine/log/Identifiers.ts"
import { type JournalRow, seal, unseal } from "../../../src/engine/log/Record.ts"
import { setMark } from "../../../src/postgres/embedded/Marks.ts"
import { serverPort } from "../../support/ServerPort.ts"
import { openTab } from "../../dashboard/People.ts"
import { pause, runnersOf, signalIfThere, until } from "../../support/TillProcess.ts"
import { Findings } from "../Finding.ts"
import { isInstalled, Prometheus, SPEED } from "../Prometheus.ts"
import { Receiver } from "../Receiver.ts"
import { broken, type Context, type Row, skipped } from "../Scene.ts"
import { type Server, withServer } from "../Server.ts"
import { Service } from "../Service.ts"
import { TcpProxy } from "../TcpProxy.ts"
import { Traffic } from "../Traffic.ts"

/** An hour of the alerts. */
const HEALTHY_MILLIS = 3_600_000 / SPEED
/** The longest time until an alert fires, and until all have ended after the fault. */
const FIRES_MILLIS_MAX = 60_000
const ENDS_MILLIS_MAX = 90_000
/** The first scrub begins five minutes after the start. */
const SCRUB_MILLIS_MAX = 360_000
const DAY_MILLIS = 86_400_000
/** The largest heap of the process: a leak fills it within seconds. */
const HEAP_MEGABYTES = 2000
const WORKER_PAUSE_MILLIS = 60
const PAGE_PAUSE_MILLIS = 500

interface Stage {
  readonly service: Service
  readonly server: Server
  readonly database: string
}

/** The same with clients, a receiver of webhooks, and a proxy before Postgres. */
interface BusyStage extends Stage {
  readonly proxy: TcpProxy
}

type Heal = () => Promise<void>

interface AlertFault<S extends Stage = Stage> {
  readonly alert: string
  /** Alerts that the same fault may fire. */
  readonly also?: ReadonlyArray<string>
  readonly provoke: (stage: S) => Promise<Heal>
}

/** The alerts of a database out of reach. A process then serves no partition. */
const DATABASE = [
  "TillRequestsFail",
  "TillRequestsRefused",
  "TillRequestsSlow",
  "TillDatabaseHangs",
  "TillFlushesFail",
  "TillPartitionsUnserved"
]
const VIEWS = ["TillViewsLag", "TillTimersLate", "TillWebhooksLate", "TillRequestsSlow", "TillRequestsFail"]

/** Runs statements, and holds the locks of one more until the fault is healed. */
const held =
  (before: ReadonlyArray<string>, lock: string) =>
  async ({ database, server }: Stage): Promise<Heal> => {
    const [acquired, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const holding = server.query(async (client) => {
      for (const text of before) await client.query(text)
      await client.query("BEGIN")
      await client.query(lock)
      acquired.resolve()
      await release.promise
      await client.query("ROLLBACK")
    }, database)
    await Promise.race([acquired.promise, holding])
    return () => {
      release.resolve()
      return holding
    }
  }

/** Locks a table: against writes, unless given. */
const locked = (table: string, mode = "EXCLUSIVE") => held([], `LOCK TABLE ${table} IN ${mode} MODE`)

/** Runs statements, each in a transaction of its own. */
const inTurn = ({ database, server }: Stage, texts: ReadonlyArray<string>): Promise<void> =>
  server.query(async (client) => {
    for (const text of texts) await client.query(text)
  }, database)

const statements =
  (provoke: ReadonlyArray<string>, heal: ReadonlyArray<string>) =>
  async (stage: Stage): Promise<Heal> => {
    await inTurn(stage, provoke)
    return () => inTurn(stage, heal)
  }

const slowFlushes = statements(
  [
    "CREATE FUNCTION delay() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$",
    "CREATE TRIGGER delay BEFORE INSERT ON journal EXECUTE FUNCTION delay()"
  ],
  ["DROP TRIGGER delay ON journal", "DROP FUNCTION delay"]
)

const failingFlushes = statements(
  [
    "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$",
    "CREATE TRIGGER fail BEFORE INSERT ON journal EXECUTE FUNCTION fail()"
  ],
  ["DROP TRIGGER fail ON journal", "DROP FUNCTION fail"]
)

/** Repeats a step until the fault is healed. */
const repeatedly =
  (step: (stage: Stage) => Promise<void>, after: (stage: Stage) => Promise<void> = async () => {}) =>
  async (stage: Stage): Promise<Heal> => {
    const over = new AbortController()
    const work = (async () => {
      while (!over.signal.aborted) await step(stage)
    })()
    // A failure is reported by the fault's end.
    work.catch(() => {})
    return async () => {
      over.abort()
      await work
      await after(stage)
    }
  }

/** Appends an empty record to the busiest account's journal, as another process would. False if Till was faster. */
const writeAsAnother = async (client: Client): Promise<boolean> => {
  const { rows } = await client.query<{ account: string; version: string; hash: Buffer; record: Buffer }>(
    `SELECT account, version, hash, record FROM journal WHERE account =
      (SELECT account FROM checkpoints WHERE account LIKE 'mer_%' ORDER BY version DESC LIMIT 1)
      ORDER BY version DESC LIMIT 2`
  )
  const [newest, before] = rows.map(({ account, hash, record, version }) => ({
    account,
    version: Number(version),
    hash: hash.toString("hex"),
    bytes: record
  }))
  const { record } = unseal(before!, newest! as JournalRow)
  const nothing = { changes: [], events: [], timers: [], subscriptions: [], deliveries: [], attempts: [], hastened: [] }
  const none = { request: null, response: null, apiVersion: null, wiped: false, advanced: 0 }
  const version = newest!.version + 1
  const { bytes, hash } = seal(newest!.hash, { ...record, ...nothing, ...none, version })
  const inserted = await client.query(
    "INSERT INTO journal (account, version, hash, record) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
    [newest!.account, version, Buffer.from(hash, "hex"), bytes]
  )
  return inserted.rowCount === 1
}

/** Runs an expression in the process, by its inspector. */
const evaluate = async ({ service }: Stage, expression: string): Promise<void> => {
  const opened = service.logged("ws://")
  signalIfThere(service.processId, "SIGUSR1")
  await opened
  const address = /ws:\/\/\S+/u.exec(service.stderr.slice(service.stderr.lastIndexOf("ws://")))![0]
  const socket = new WebSocket(address)
  await new Promise((resolve) => socket.addEventListener("open", resolve))
  const answered = new Promise((resolve, reject) => {
    socket.addEventListener("message", resolve)
    socket.addEventListener("close", () => reject(new Error("the process has ended")))
  })
  socket.send(JSON.stringify({ id: 1, method: "Runtime.evaluate", params: { expression } }))
  await answered
  socket.close()
}

const LEAK = `{
  const { getHeapStatistics } = process.getBuiltinModule("node:v8")
  globalThis.leaked = []
  for (;;) {
    const { heap_size_limit, used_heap_size } = getHeapStatistics()
    if (used_heap_size > 0.92 * heap_size_limit) break
    globalThis.leaked.push(Array.from({ length: 100_000 }, (_, i) => i + 0.5))
  }
}`

const restarted = async ({ service }: Stage): Promise<void> => {
  await service.kill()
  await service.start()
}

const FAULTS: ReadonlyArray<AlertFault<BusyStage>> = [
  {
    alert: "TillDown",
    provoke: async ({ service }) => {
      await service.kill()
      return () => service.start()
    }
  },
  {
    alert: "TillDatabaseHangs",
    also: [...DATABASE, ...VIEWS],
    provoke: async ({ proxy }) => {
      proxy.stall()
      return async () => proxy.resume()
    }
  },
  { alert: "TillRequestsFail", also: DATABASE, provoke: failingFlushes },
  { alert: "TillFlushesFail", also: DATABASE, provoke: failingFlushes },
  {
    alert: "TillWritesRefused",
    also: [...DATABASE, ...VIEWS, "TillReadingsFail", "TillLogsIncomplete"],
    provoke: async (stage) => {
      const change = async (value: string) => {
        const own = "SET default_transaction_read_only = off"
        await inTurn(stage, [own, `ALTER DATABASE ${stage.database} SET default_transaction_read_only = ${value}`])
        // Only new connections have the setting.
        stage.proxy.cut()
      }
      await change("on")
      return () => change("off")
    }
  },
  { alert: "TillRequestsSlow", also: [...DATABASE, ...VIEWS], provoke: slowFlushes },
  {
    alert: "TillRequestsRefused",
    also: [...DATABASE, ...VIEWS],
    provoke: async (stage) => {
      stage.proxy.slow(400)
      const flooding = await Promise.all(
        Array.from({ length: 400 }, () =>
          repeatedly(async ({ service }) => {
            const body = { amount: 2000, currency: "usd" }
            await service.http.request("POST", "/v1/payment_intents", { body }).catch(() => pause(50))
          })(stage)
        )
      )
      return async () => {
        stage.proxy.slow(0)
        await Promise.all(flooding.map((end) => end()))
      }
    }
  },
  {
    alert: "TillAccountsFenced",
    also: ["TillRequestsFail"],
    provoke: repeatedly(async ({ database, server }) => {
      await server.query(async (client) => {
        for (let tries = 0; tries < 100 && !(await writeAsAnother(client)); tries++);
      }, database)
      await pause(500)
    })
  },
  { alert: "TillViewsLag", also: VIEWS, provoke: locked("objects") },
  {
    alert: "TillWebhooksLate",
    // The views of the deliveries that are held wait.
    also: VIEWS,
    provoke: async (stage) => {
      await stage.service.post("/v1/webhook_endpoints", { url: "http://127.0.0.1:9/", enabled_events: ["*"] })
      await pause(5000)
      // Attempts that have failed are due again, and another process holds them.
      const due = "UPDATE deliveries SET wake_at = wake_at - 3600000 WHERE state = 'pending'"
      return held([due], "SELECT FROM deliveries WHERE state = 'pending' FOR UPDATE")(stage)
    }
  },
  {
    alert: "TillTimersLate",
    also: VIEWS,
    provoke: async (stage) => {
      const body = { amount: 2000, currency: "usd", payment_method: "pm_card_processing_success", confirm: true }
      for (let i = 0; i < 10; i++) await stage.service.post("/v1/payment_intents", body)
      await pause(500)
      return locked("timers")(stage)
    }
  },
  {
    alert: "TillOperationsUnresolved",
    provoke: async (stage) => {
      const id = `${idAt("op", Date.now() - 7_200_000)}${"0".repeat(15)}`
      // No process serves the account.
      const operation = `('mer_alert:live', '${id}', 'operation', 1, '{"status":"decide"}', 1)`
      return statements(
        [`INSERT INTO objects (account, id, kind, version, labels, format) VALUES ${operation}`],
        [`DELETE FROM objects WHERE id = '${id}'`]
      )(stage)
    }
  },
  {
    alert: "TillEventLoopBlocked",
    also: [...VIEWS, "TillRequestsRefused", "TillDown", "TillPartitionsUnserved"],
    provoke: repeatedly(
      async ({ service }) => {
        service.signal("SIGSTOP")
        await pause(600)
        service.signal("SIGCONT")
        await pause(300)
      },
      async ({ service }) => service.signal("SIGCONT")
    )
  },
  {
    alert: "TillHeapNearlyFull",
    also: [...VIEWS, "TillEventLoopBlocked", "TillDown", "TillPartitionsUnserved"],
    provoke: async (stage) => {
      await evaluate(stage, LEAK)
      return () => restarted(stage)
    }
  },
  {
    alert: "TillBackupOld",
    provoke: async ({ service }) => {
      setMark(service.folder, "backup", { at: Date.now() - 3 * DAY_MILLIS, folder: "/backups" })
      return async () => setMark(service.folder, "backup", { at: Date.now(), folder: "/backups" })
    }
  },
  { alert: "TillReadingsFail", provoke: locked("anchors", "ACCESS EXCLUSIVE") },
  {
    alert: "TillLogsIncomplete",
    // The size of the table cannot be read either.
    also: ["TillRequestsSlow", "TillReadingsFail"],
    provoke: locked("request_logs", "ACCESS EXCLUSIVE")
  },
  {
    alert: "TillAnchorOld",
    provoke: statements(["UPDATE anchors SET at = at - 14400000"], ["UPDATE anchors SET at = at + 14400000"])
  }
]

export const run = async (context: Context): Promise<ReadonlyArray<Row>> => {
  if (!isInstalled()) return [skipped("each alert", "`prometheus` is not installed")]
  const damage = damaged(context)
  const rows = await withServer(Path.join(context.folder, "server"), (server) => alone(context, server))
  return [...rows, await unserved(context), await damage]
}

const UNSERVED = "TillPartitionsUnserved"
const DAMAGE = "TillDamageFound"

/** Names of the alerts that are provoked. */
export const PROVOKED: ReadonlyArray<string> = [...FAULTS.map(({ alert }) => alert), UNSERVED, DAMAGE]

const isMeant = ({ fault = "" }: Context, alert: string): boolean => alert.includes(fault)

/** One process with clients: an hour without a fault, and then all faults in turn. */
const alone = async (context: Context, server: Server): Promise<ReadonlyArray<Row>> => {
  const database = "alerts"
  const proxy = await TcpProxy.start(server.port)
  const databaseUrl = await server.createDatabase(database, proxy.port)
  const metricsPort = await Effect.runPromise(serverPort)
  const service = await Service.start({
    checkout: context.checkout,
    folder: Path.join(context.folder, "alone"),
    databaseUrl,
    variables: {
      TILL_METRICS_PORT: String(metricsPort),
      TILL_HANG_SECONDS: "0",
      NODE_OPTIONS: `--max-old-space-size=${HEAP_MEGABYTES}`
    }
  })
  const receiver = await Receiver.start()
  await receiver.subscribe(service.http)
  const prometheus = await Prometheus.start(Path.join(context.folder, "prometheus"), [metricsPort])
  const options = { seed: context.seed, exchanges: [service.http], clients: 6, thinkMillisMax: WORKER_PAUSE_MILLIS }
  const traffic = new Traffic(options)
  traffic.start()
  try {
    const rows = isMeant(context, NONE) ? [await healthy(prometheus, traffic, service)] : []
    for (const fault of FAULTS) {
      if (!isMeant(context, fault.alert) || context.time.aborted) continue
      const stage = { service, server, database, proxy }
      const row = await fires(prometheus, fault, stage).catch((error) => broken(fault.alert, error))
      rows.push(row)
      const problems = row.findings.all.map(({ text }) => text)
      context.log(
        [`alerts: ${fault.alert} fired after ${row.recoveries[0]?.toFixed(1) ?? "–"} s`, ...problems].join("; ")
      )
    }
    return rows
  } finally {
    await traffic.stop()
    prometheus.close()
    receiver.close()
    await service.destroy()
    proxy.close()
  }
}

const rowOf = (fault: string, findings: Findings, acknowledged: number, seconds: number | undefined): Row => ({
  fault,
  rounds: 1,
  acknowledged,
  findings,
  recoveries: seconds === undefined ? [] : [seconds]
})

/** Pages that a person of a shop has open in turn. */
const PAGES = ["", "/payments", "/customers", "/products", "/webhooks", "/requests", "/developers", "/team"]

/** A person at the dashboard until the end of the hour, and an operator who makes a backup. */
const office = async (service: Service, over: AbortSignal): Promise<void> => {
  const { link } = JSON.parse(await service.command("dashboard", "--json")) as { readonly link: string }
  const tab = openTab({ url: service.baseUrl })
  await tab.signIn(link)
  await service.command("backup", Path.join(service.folder, "backup"))
  for (let i = 0; !over.aborted; i++) {
    const path = `/dashboard/test${PAGES[i % PAGES.length]}`
    const { status } = await tab.get(path)
    if (status !== 200) throw new Error(`${path} was answered with ${status}`)
    await pause(PAGE_PAUSE_MILLIS)
  }
}

const NONE = "none, for an hour of the alerts"

/** Clients, webhooks, the dashboard and a backup, for an hour. */
const healthy = async (prometheus: Prometheus, traffic: Traffic, service: Service): Promise<Row> => {
  const [findings, fired, over] = [new Findings(), new Set<string>(), new AbortController()]
  const working = office(service, over.signal).catch((error) => findings.add("wrong", "office", String(error)))
  await prometheus.watch(HEALTHY_MILLIS, fired, () => false)
  over.abort()
  await working
  for (const alert of fired) findings.add("wrong", alert, `${alert} fired without a fault`)
  return rowOf(NONE, findings, traffic.answered, undefined)
}

const fires = async <S extends Stage>(
  prometheus: Prometheus,
  { alert, also = [], provoke }: AlertFault<S>,
  stage: S,
  millisMax = FIRES_MILLIS_MAX
): Promise<Row> => {
  const [findings, fired] = [new Findings(), new Set<string>()]
  const begun = performance.now()
  let seconds: number | undefined
  const heal = await provoke(stage)
  try {
    const isFired = await prometheus.watch(millisMax, fired, (standing) => standing.get(alert) === "firing")
    if (isFired) seconds = (performance.now() - begun) / 1000
    else findings.add("wrong", alert, `${alert} did not fire within ${millisMax / 1000} s`)
  } finally {
    await heal()
  }
  const isOver = await prometheus.watch(ENDS_MILLIS_MAX, fired, ({ size }) => size === 0)
  const left = [...(await prometheus.standing()).keys()]
  if (!isOver) findings.add("wrong", `${alert} ends`, `after the fault of ${alert}, ${left.join(", ")} did not end`)
  for (const other of [...fired].filter((one) => one !== alert && !also.includes(one))) {
    findings.add("wrong", `${alert}: ${other}`, `${other} fired under the fault of ${alert}`)
  }
  return rowOf(alert, findings, 0, seconds)
}

/** A Till of its own, under a fault that would disturb the others. */
const apart = async (
  context: Context,
  fault: AlertFault,
  { args = [], millisMax, runners = 1 }: { args?: ReadonlyArray<string>; millisMax?: number; runners?: number }
): Promise<Row> => {
  const { alert } = fault
  if (!isMeant(context, alert)) return skipped(alert, "another fault was chosen")
  const folder = Path.join(context.folder, alert)
  try {
    return await withServer(Path.join(folder, "server"), async (server) => {
      // One port for each runner, taken here so that no other server gets it.
      const [metricsPort] = await Promise.all(Array.from({ length: runners }, () => Effect.runPromise(serverPort)))
      const database = alert.toLowerCase()
      const service = await Service.start({
        checkout: context.checkout,
        folder: Path.join(folder, "till"),
        databaseUrl: await server.createDatabase(database),
        args,
        variables: { TILL_METRICS_PORT: String(metricsPort), TILL_HANG_SECONDS: "0" }
      })
      const ports = () =>
        [...service.stderr.matchAll(/Metrics are served at \S+:(\d+)\//gu)].map(([, port]) => Number(port))
      await until("each runner serves its metrics", async () => ports().length === runners)
      const prometheus = await Prometheus.start(Path.join(folder, "prometheus"), ports())
      try {
        return await fires(prometheus, fault, { service, server, database }, millisMax)
      } finally {
        prometheus.close()
        await service.destroy()
      }
    })
  } catch (error) {
    return broken(alert, error)
  }
}

/** One of two runners freezes: half of the partitions have no process until the other one takes them over. */
const unserved = (context: Context): Promise<Row> => {
  const provoke: AlertFault["provoke"] = async ({ service }) => {
    const [frozen] = runnersOf(service)
    signalIfThere(frozen!, "SIGSTOP")
    return async () => signalIfThere(frozen!, "SIGCONT")
  }
  const fault: AlertFault = { alert: UNSERVED, also: ["TillDown"], provoke }
  return apart(context, fault, { args: ["--runners", "2"], runners: 2 })
}

/** The first scrub, some minutes after the start, finds a changed byte in every account. */
const damaged = (context: Context): Promise<Row> => {
  const provoke: AlertFault["provoke"] = async ({ database, server, service }) => {
    for (let i = 0; i < 3; i++) await service.post("/v1/customers", { name: "Ada" })
    const changed = "UPDATE journal SET record = set_byte(record, 10, get_byte(record, 10) # 1) WHERE version = 1"
    await server.query((client) => client.query(changed), database)
    return async () => {}
  }
  return apart(context, { alert: DAMAGE, provoke }, { millisMax: SCRUB_MILLIS_MAX })
}

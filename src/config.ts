/**
 * Reads the environment's variables into one typed service. No other file reads them.
 *
 * Guarantees: every variable is checked at start; a wrong value fails with an `InvalidConfiguration` whose message is
 * one line that names the variable; no message and no log ever holds a key or the database's password. An empty value
 * counts as unset, because container tools pass unset variables on as empty ones.
 *
 * The parsers are functions, not schemas given to `Config.schema`: a schema's issue is several lines for programmers,
 * so each schema would need its own line for operators, and most values are parsed to another type than a string.
 */
import { Config, ConfigProvider, Context, Effect, Layer, type LogLevel, Option, Redacted, Schema } from "effect"
import { type BlockList, isIPv6 } from "node:net"
import { homedir } from "node:os"
import * as Path from "node:path"
import { networksOf } from "./domain/Networks.ts"
import { type MailServer, parseMailServer, parseSender, type Sender } from "./domain/MailServer.ts"
import { isWebOrigin } from "./domain/Text.ts"
import { type AllowedHosts, parseAllowedHosts, PUBLIC_ONLY } from "./domain/WebhookHosts.ts"

/** A variable whose value Till cannot start with. */
export class InvalidConfiguration extends Schema.TaggedError<InvalidConfiguration>()("InvalidConfiguration", {
  variable: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `${this.variable}: ${this.problem}`
  }
}

/** The default merchant's keys in the environment; Till generates the others (semantics keys.first). */
export interface DefaultKeys {
  readonly secretTest: Redacted.Redacted | undefined
  readonly publishableTest: Redacted.Redacted | undefined
  readonly secretLive: Redacted.Redacted | undefined
  readonly publishableLive: Redacted.Redacted | undefined
}

export const KEY_VARIABLES = {
  secretTest: "TILL_SK_TEST",
  publishableTest: "TILL_PK_TEST",
  secretLive: "TILL_SK_LIVE",
  publishableLive: "TILL_PK_LIVE"
} as const satisfies Record<keyof DefaultKeys, string>

export interface TillConfigShape {
  /** TCP port of the HTTP server; 0 lets the system choose. */
  readonly port: number
  readonly host: string
  /** A second address to bind, if the machine has it; undefined with `HOST` (semantics operation.listening). */
  readonly hostBeside: string | undefined
  /** URL of the Postgres to use; undefined means the embedded one. */
  readonly databaseUrl: Redacted.Redacted | undefined
  /** True for the embedded Postgres, even if another process runs it: it serves only this installation. */
  readonly isEmbedded: boolean
  /** Absolute path of the folder for files on disk, such as those of the embedded Postgres. */
  readonly dataFolder: string
  /** Absolute path of the folder in which commands keep files of the person who runs them. */
  readonly stateFolder: string
  /** Absolute path of the file with the installation's secret; in the data folder by default. */
  readonly secretFile: string
  /** The longest shutdown of the service, in seconds from the signal (semantics operation.stop). */
  readonly drainSeconds: number
  /** Seconds of a blocked event loop after which a process is killed; 0 turns that off (semantics operation.hang). */
  readonly hangSeconds: number
  /** Address at which the other processes on the database reach this one, and TCP port; 0 lets the system choose. */
  readonly runnerHost: string
  readonly runnerPort: number
  /** Base of all links to this service, without a trailing slash; undefined means the address that it listens on. */
  readonly publicUrl: string | undefined
  readonly defaultKeys: DefaultKeys
  /** The API key that CLI commands use; undefined means the default merchant's, if the environment sets it. */
  readonly apiKey: Redacted.Redacted | undefined
  /** Processor of live card payments (semantics keys.live_processor); undefined means none is set up. */
  readonly liveProcessor: "simulator" | undefined
  /** An authorization holds this long, in seconds of the environment's clock (semantics payment_intents.holds). */
  readonly authorizationHoldSeconds: number
  /** The only currencies accepted, lower case; undefined means any three letters (semantics money.currencies). */
  readonly currencies: ReadonlySet<string> | undefined
  /** Allows live webhooks to addresses that are not public (semantics webhooks.url). */
  readonly webhookAllowPrivate: boolean
  /** Destinations of test webhooks beside public addresses (semantics webhooks.test_hosts). */
  readonly webhookTestHosts: "any" | AllowedHosts
  /** True if only this machine can reach the service: it listens on loopback, and its links lead there. */
  readonly isLocal: boolean
  /** The only origins that may show an embedded checkout; undefined means any in test mode, and none in live mode. */
  readonly embedOrigins: ReadonlySet<string> | undefined
  /** Turns the rate limits by merchant and by address on (semantics limits.rate). */
  readonly rateLimit: boolean
  /** Proxies whose `X-Forwarded-For` header is trusted; undefined means none (semantics limits.addresses). */
  readonly trustedProxies: BlockList | undefined
  /** The mail server and the sender of all mail; undefined means that no mail is sent (semantics mail.off). */
  readonly mail: { readonly server: MailServer; readonly from: Sender } | undefined
  readonly dashboard: boolean
  /** Allows signing in to the dashboard over connections that others may be able to listen to. */
  readonly dashboardInsecure: boolean
  /** Parses plain requests without Node's parser. */
  readonly plainHttp: boolean
  /** Days in which the running service checks every account once; 0 turns the checks off. */
  readonly scrubDays: number
  /** Days for which the request log keeps a request; 0 turns the log off. */
  readonly requestLogDays: number
  /** Days for which events are kept; undefined: for good (semantics storage.retention). */
  readonly eventsDays: number | undefined
  /** Days after which unpaid payments of test environments are deleted; undefined: never (semantics storage.unpaid). */
  readonly unpaidTestDays: number | undefined
  /** Writes a line for each answered request to standard error (semantics operation.access_log). */
  readonly accessLog: boolean
  /** Address and TCP port of the metrics; no port if they are not served, 0 lets the system choose. */
  readonly metricsHost: string
  readonly metricsPort: number | undefined
  /** True if the variables of OpenTelemetry name a collector of metrics. */
  readonly sendsMetrics: boolean
  /** The sampler of traces; undefined if the variables of OpenTelemetry name no collector for them. */
  readonly traceSampler: TraceSampler | undefined
  readonly logLevel: LogLevel.LogLevel
  /** Levels of single parts of Till, which are the folders of `src`. */
  readonly logLevels: ReadonlyMap<string, LogLevel.LogLevel>
}

/** A sampler of OpenTelemetry. `ratio` is the share of all traces, or with `followsParent` of those that begin here. */
export interface TraceSampler {
  readonly ratio: number
  /** True if a request with a parent is sampled if, and only if, its parent is. */
  readonly followsParent: boolean
}

export class TillConfig extends Context.Service<TillConfig, TillConfigShape>()("till/TillConfig") {}

/** A browser on this machine reaches these addresses as `localhost`. */
const LOCAL: ReadonlySet<string> = new Set(["127.0.0.1", "::1", "0.0.0.0", "::"])

/** Returns the base of all links to this service, without a trailing slash. */
export const publicUrlOf = ({ host, port, publicUrl }: TillConfigShape): string => {
  const name = LOCAL.has(host) ? "localhost" : isIPv6(host) ? `[${host}]` : host
  return publicUrl ?? `http://${name}:${port}`
}

const text = (variable: string): Effect.Effect<string | undefined, InvalidConfiguration> =>
  Config.String(variable).pipe(
    Config.option,
    Effect.map((value) => {
      const trimmed = Option.getOrElse(value, () => "").trim()
      return trimmed === "" ? undefined : trimmed
    }),
    Effect.mapError(() => new InvalidConfiguration({ variable, problem: "cannot be read" }))
  )

class Problem {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

const integer = (minimum: number, maximum: number) => (value: string) => {
  const parsed = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
  return parsed >= minimum && parsed <= maximum
    ? parsed
    : new Problem(`must be a whole number from ${minimum} to ${maximum}, got ${JSON.stringify(value)}`)
}

const host = (value: string) =>
  /^[0-9A-Za-z.:_-]+$/.test(value)
    ? value
    : new Problem(`must be a host name or an IP address, got ${JSON.stringify(value)}`)

const runnerHost = (value: string) =>
  /^(0\.0\.0\.0|::)$/.test(value)
    ? new Problem("must be the address at which other runners reach this one, not one that stands for all addresses")
    : host(value)

// The value may hold a password in a place that no parser finds, so no part of it is ever repeated. An `@` behind the
// first of `/?#` means that a password contains one of those characters: the rest of the password would be taken for
// the host, and shown.
const databaseUrl = (value: string) =>
  URL.canParse(value) && /^postgres(ql)?:\/\/[^/?#]*([/?#][^@]*)?$/i.test(value)
    ? Redacted.make(value, { label: "DATABASE_URL" })
    : new Problem(
        "must be a URL such as postgres://user:password@host/database, with the password percent-encoded; " +
          "for a socket, postgres:///database?host=/folder&user=user&password=password"
      )

/** Parses a command's flag that replaces `DATABASE_URL`. */
export const databaseUrlOf = (flag: string, value: string): Effect.Effect<Redacted.Redacted, InvalidConfiguration> => {
  const parsed = databaseUrl(value)
  return parsed instanceof Problem
    ? Effect.fail(new InvalidConfiguration({ variable: flag, problem: parsed.text }))
    : Effect.succeed(parsed)
}

const publicUrl = (value: string) => {
  const url = URL.parse(value)
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    return new Problem("must be a URL that begins with http:// or https://")
  }
  return url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== ""
    ? new Problem("must be a plain base URL, without user, query or fragment")
    : url.href.replace(/(?<!\/)\/+$/, "")
}

/** A key's prefix and at least 8 more characters, so that no truncated key is accepted (semantics keys.first). */
const key =
  (...prefixes: ReadonlyArray<string>) =>
  (value: string) =>
    prefixes.some((prefix) => value.startsWith(prefix) && /^[0-9A-Za-z_]{8,200}$/.test(value.slice(prefix.length)))
      ? Redacted.make(value, { label: "API key" })
      : new Problem(`must be ${prefixes.join(" or ")} followed by 8 to 200 letters, digits or underscores`)

const liveProcessor = (value: string) =>
  value === "simulator" ? value : new Problem(`must be simulator or unset, got ${JSON.stringify(value)}`)

const currencies = (value: string) => {
  const codes = value.split(",").map((code) => code.trim())
  return codes.every((code) => /^[A-Za-z]{3}$/.test(code))
    ? new Set(codes.map((code) => code.toLowerCase()))
    : new Problem(`must be three-letter currency codes separated by commas, got ${JSON.stringify(value)}`)
}

const webhookTestHosts = (value: string) => {
  if (value === "any") return value
  const hosts = value === "public" ? PUBLIC_ONLY : parseAllowedHosts(value)
  return hosts !== undefined && !hosts.names.has("any") && !hosts.names.has("public")
    ? hosts
    : new Problem(
        "must be any, public, or host names, IP addresses and networks such as 10.0.0.0/8 separated by commas, " +
          `got ${JSON.stringify(value)}`
      )
}

/** The reason why sign-in to the dashboard is impossible; null if it is possible (semantics dashboard.browser). */
export const dashboardRefusalOf = (config: TillConfigShape): string | null => {
  const { dashboard, dashboardInsecure, host, publicUrl } = config
  if (!dashboard) return "The dashboard is turned off: TILL_DASHBOARD is off."
  return dashboardInsecure || isLoopback(host) || publicUrl?.startsWith("https://") === true
    ? null
    : `Till listens on ${host}, where others on the network could read passwords. Put a proxy with TLS in front of it and ` +
        "set TILL_PUBLIC_URL to its https:// address; or, if the network is private, set TILL_DASHBOARD_INSECURE=on."
}

/** True if only browsers on this machine reach the dashboard, because its links name no other host. */
export const isForThisMachine = ({ host, publicUrl }: TillConfigShape): boolean =>
  isLoopback(host) && (publicUrl === undefined || isLoopback(new URL(publicUrl).hostname.replaceAll(/[[\]]/g, "")))

/** True for an address that only this machine reaches, unless a proxy passes requests on. */
const isLoopback = (host: string): boolean => /^(localhost|127(\.\d+){3}|::1)$/i.test(host)

/** A public URL on another host implies a proxy in front of the server, although the server listens on loopback. */
const isLocal = (host: string, publicUrl: string | undefined): boolean =>
  isLoopback(host) && (publicUrl === undefined || isLoopback(new URL(publicUrl).hostname.replace(/^\[|\]$/g, "")))

/** Origins in the form that browsers send: `https://shop.example`, `http://localhost:3000`. */
const embedOrigins = (value: string) => {
  const origins = value.split(",").map((origin) => origin.trim().replace(/\/$/, ""))
  return origins.every(isWebOrigin)
    ? new Set(origins)
    : new Problem(
        "must be origins such as https://shop.example separated by commas, in lower case and without a path, " +
          `got ${JSON.stringify(value)}`
      )
}

const trustedProxies = (value: string) =>
  networksOf(value) ??
  new Problem(`must be IP addresses or networks such as 10.0.0.0/8 separated by commas, got ${JSON.stringify(value)}`)

// The value holds a password, so no part of it is ever repeated.
const mailServer = (value: string) =>
  parseMailServer(value) ??
  new Problem(
    "must be smtp://user:password@host:port or smtps://user:password@host:port, with user and password " +
      "percent-encoded, or without them"
  )

const mailFrom = (value: string) =>
  parseSender(value) ??
  new Problem(
    "must be an address such as payments@shop.example or Shop <payments@shop.example>, " +
      `got ${JSON.stringify(value)}`
  )

const boolean = (value: string) =>
  value === "true" || value === "false"
    ? value === "true"
    : new Problem(`must be true or false, got ${JSON.stringify(value)}`)

const onOrOff = (value: string) =>
  value === "on" || value === "off" ? value === "on" : new Problem(`must be on or off, got ${JSON.stringify(value)}`)

const logLevels: ReadonlyArray<LogLevel.LogLevel> = ["Trace", "Debug", "Info", "Warn", "Error", "Fatal", "None"]

/** The parts of Till that write log lines: folders of `src`, and its start. */
export const LOG_PARTS = [
  "cli",
  "cluster",
  "dashboard",
  "engine",
  "html",
  "http",
  "mail",
  "payments",
  "postgres",
  "processors",
  "service",
  "webhooks"
]

const levelNamed = (name: string) => logLevels.find((level) => level.toLowerCase() === name.toLowerCase())

/** Parses `info,webhooks=debug`: a level for all parts, and levels of single parts. */
const levels = (value: string) => {
  let all: LogLevel.LogLevel = "Info"
  const parts = new Map<string, LogLevel.LogLevel>()
  for (const item of value.split(",").map((text) => text.trim())) {
    const [name, part, ...more] = item.split("=").toReversed() as [string, ...Array<string>]
    const level = levelNamed(name)
    if (level === undefined || more.length > 0 || (part !== undefined && !LOG_PARTS.includes(part))) {
      return new Problem(
        `must be one of ${logLevels.join(", ")}, and may set parts apart (info,webhooks=debug: ` +
          `${LOG_PARTS.join(", ")}), got ${JSON.stringify(value)}`
      )
    }
    if (part === undefined) all = level
    else parts.set(part, level)
  }
  return { all, parts }
}

const SAMPLERS: Readonly<Record<string, (ratio: number) => TraceSampler>> = {
  always_on: () => ({ ratio: 1, followsParent: false }),
  always_off: () => ({ ratio: 0, followsParent: false }),
  traceidratio: (ratio) => ({ ratio, followsParent: false }),
  parentbased_always_on: () => ({ ratio: 1, followsParent: true }),
  parentbased_always_off: () => ({ ratio: 0, followsParent: true }),
  parentbased_traceidratio: (ratio) => ({ ratio, followsParent: true })
}

const sampler = (value: string) =>
  SAMPLERS[value] ?? new Problem(`must be one of ${Object.keys(SAMPLERS).join(", ")}, got ${JSON.stringify(value)}`)

const share = (value: string) =>
  /^(?:0|1|[01]?\.\d{1,12})$/.test(value) && Number(value) <= 1
    ? Number(value)
    : new Problem(`must be a number from 0 to 1, got ${JSON.stringify(value)}`)

const path = (kind: "file" | "folder") => (value: string) =>
  value.includes("\0") ? new Problem(`must be the path of a ${kind}`) : Path.resolve(value)

const weekSeconds = 7 * 24 * 60 * 60
const centurySeconds = 100 * 366 * 24 * 60 * 60

const parsers = {
  PORT: integer(0, 65_535),
  HOST: host,
  DATABASE_URL: databaseUrl,
  TILL_DATA_DIR: path("folder"),
  TILL_SECRET_FILE: path("file"),
  XDG_STATE_HOME: path("folder"),
  TILL_PUBLIC_URL: publicUrl,
  TILL_SK_TEST: key("sk_test_"),
  TILL_PK_TEST: key("pk_test_"),
  TILL_SK_LIVE: key("sk_live_"),
  TILL_PK_LIVE: key("pk_live_"),
  TILL_API_KEY: key("sk_test_", "sk_live_"),
  TILL_LIVE_PROCESSOR: liveProcessor,
  TILL_AUTH_HOLD_SECONDS: integer(1, centurySeconds),
  TILL_CURRENCIES: currencies,
  TILL_WEBHOOK_ALLOW_PRIVATE: boolean,
  TILL_WEBHOOK_TEST_HOSTS: webhookTestHosts,
  TILL_EMBED_ORIGINS: embedOrigins,
  TILL_RATE_LIMIT: onOrOff,
  TILL_TRUSTED_PROXIES: trustedProxies,
  TILL_SMTP_URL: mailServer,
  TILL_MAIL_FROM: mailFrom,
  TILL_DASHBOARD: onOrOff,
  TILL_DASHBOARD_INSECURE: onOrOff,
  TILL_PLAIN_HTTP: onOrOff,
  TILL_SCRUB_DAYS: integer(0, 365),
  TILL_REQUEST_LOG_DAYS: integer(0, 365),
  TILL_RETENTION_EVENTS_DAYS: integer(1, 36_500),
  TILL_RETENTION_TEST_DAYS: integer(1, 36_500),
  TILL_RUNNER_HOST: runnerHost,
  TILL_RUNNER_PORT: integer(0, 65_535),
  TILL_DRAIN_SECONDS: integer(5, 600),
  TILL_HANG_SECONDS: integer(0, 3600),
  TILL_ACCESS_LOG: onOrOff,
  TILL_METRICS_HOST: host,
  TILL_METRICS_PORT: integer(0, 65_535),
  OTEL_TRACES_SAMPLER: sampler,
  OTEL_TRACES_SAMPLER_ARG: share,
  TILL_LOG_LEVEL: levels
}
type Variable = keyof typeof parsers
type Value<V extends Variable> = Exclude<ReturnType<(typeof parsers)[V]>, Problem>

const read = <V extends Variable>(variable: V): Effect.Effect<Value<V> | undefined, InvalidConfiguration> =>
  Effect.flatMap(text(variable), (value) => {
    if (value === undefined) return Effect.succeed(undefined)
    const parsed = parsers[variable](value)
    return parsed instanceof Problem
      ? Effect.fail(new InvalidConfiguration({ variable, problem: parsed.text }))
      : Effect.succeed(parsed as Value<V>)
  })

/** Mail needs a server and a sender. */
const readMail = Effect.gen(function* () {
  const [server, from] = [yield* read("TILL_SMTP_URL"), yield* read("TILL_MAIL_FROM")]
  if (server === undefined) return undefined
  if (from !== undefined) return { server, from }
  const problem = "must be set to the sender's address, because TILL_SMTP_URL is set"
  return yield* new InvalidConfiguration({ variable: "TILL_MAIL_FROM", problem })
})

/** Returns whether OpenTelemetry's variables name a collector for a signal, and none of them turns it off. */
const isSent = Effect.fnUntraced(function* (signal: "METRICS" | "TRACES") {
  const endpoint =
    (yield* text("OTEL_EXPORTER_OTLP_ENDPOINT")) ?? (yield* text(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`))
  const exporters = ((yield* text(`OTEL_${signal}_EXPORTER`)) ?? "otlp").split(",").map((name) => name.trim())
  const isOff = (yield* text("OTEL_SDK_DISABLED"))?.toLowerCase() === "true"
  return endpoint !== undefined && exporters.includes("otlp") && !isOff
})

/** Reads and checks every variable; fails with the first wrong one. */
export const load: Effect.Effect<TillConfigShape, InvalidConfiguration> = Effect.gen(function* () {
  const given = yield* read("HOST")
  const address = given ?? "127.0.0.1"
  const databaseUrl = yield* read("DATABASE_URL")
  const dataFolder = (yield* read("TILL_DATA_DIR")) ?? Path.resolve(".till")
  const publicUrl = yield* read("TILL_PUBLIC_URL")
  const local = isLocal(address, publicUrl)
  const logged = yield* read("TILL_LOG_LEVEL")
  const samplerOf = (yield* read("OTEL_TRACES_SAMPLER")) ?? SAMPLERS["parentbased_always_on"]!
  const ratio = (yield* read("OTEL_TRACES_SAMPLER_ARG")) ?? 1
  return {
    port: (yield* read("PORT")) ?? 4242,
    host: address,
    // `localhost` resolves to 127.0.0.1 or ::1, whichever the client tries first.
    hostBeside: given === undefined ? "::1" : undefined,
    databaseUrl,
    isEmbedded: databaseUrl === undefined,
    dataFolder,
    stateFolder: Path.join((yield* read("XDG_STATE_HOME")) ?? Path.join(homedir(), ".local/state"), "till"),
    secretFile: (yield* read("TILL_SECRET_FILE")) ?? Path.join(dataFolder, "secret"),
    drainSeconds: (yield* read("TILL_DRAIN_SECONDS")) ?? 10,
    hangSeconds: (yield* read("TILL_HANG_SECONDS")) ?? 10,
    runnerHost: (yield* read("TILL_RUNNER_HOST")) ?? "127.0.0.1",
    runnerPort: (yield* read("TILL_RUNNER_PORT")) ?? 0,
    publicUrl,
    defaultKeys: yield* Effect.all({
      secretTest: read(KEY_VARIABLES.secretTest),
      publishableTest: read(KEY_VARIABLES.publishableTest),
      secretLive: read(KEY_VARIABLES.secretLive),
      publishableLive: read(KEY_VARIABLES.publishableLive)
    }),
    apiKey: yield* read("TILL_API_KEY"),
    liveProcessor: yield* read("TILL_LIVE_PROCESSOR"),
    authorizationHoldSeconds: (yield* read("TILL_AUTH_HOLD_SECONDS")) ?? weekSeconds,
    currencies: yield* read("TILL_CURRENCIES"),
    webhookAllowPrivate: (yield* read("TILL_WEBHOOK_ALLOW_PRIVATE")) ?? false,
    webhookTestHosts: (yield* read("TILL_WEBHOOK_TEST_HOSTS")) ?? (local ? "any" : PUBLIC_ONLY),
    isLocal: local,
    embedOrigins: yield* read("TILL_EMBED_ORIGINS"),
    rateLimit: (yield* read("TILL_RATE_LIMIT")) ?? false,
    trustedProxies: yield* read("TILL_TRUSTED_PROXIES"),
    mail: yield* readMail,
    dashboard: (yield* read("TILL_DASHBOARD")) ?? true,
    dashboardInsecure: (yield* read("TILL_DASHBOARD_INSECURE")) ?? false,
    plainHttp: (yield* read("TILL_PLAIN_HTTP")) ?? true,
    scrubDays: (yield* read("TILL_SCRUB_DAYS")) ?? 7,
    requestLogDays: (yield* read("TILL_REQUEST_LOG_DAYS")) ?? 15,
    eventsDays: yield* read("TILL_RETENTION_EVENTS_DAYS"),
    unpaidTestDays: yield* read("TILL_RETENTION_TEST_DAYS"),
    metricsHost: (yield* read("TILL_METRICS_HOST")) ?? "127.0.0.1",
    metricsPort: yield* read("TILL_METRICS_PORT"),
    sendsMetrics: yield* isSent("METRICS"),
    traceSampler: (yield* isSent("TRACES")) ? samplerOf(ratio) : undefined,
    accessLog: (yield* read("TILL_ACCESS_LOG")) ?? false,
    logLevel: logged?.all ?? "Info",
    logLevels: logged?.parts ?? new Map()
  }
})

/** A variable that is set; `shown` is null if its value is a secret, or wrong. */
export interface SetVariable {
  readonly name: string
  readonly shown: string | null
}

/** Lists the variables that are set, in the order of their names. */
export const setVariables: Effect.Effect<ReadonlyArray<SetVariable>> = Effect.gen(function* () {
  const names = (Object.keys(parsers) as ReadonlyArray<Variable>).toSorted()
  const found = yield* Effect.forEach(names, (name) =>
    Effect.map(
      Effect.orElseSucceed(text(name), () => undefined),
      (value): ReadonlyArray<SetVariable> => {
        if (value === undefined) return []
        const parsed = parsers[name](value)
        return [{ name, shown: Redacted.isRedacted(parsed) || parsed instanceof Problem ? null : value }]
      }
    )
  )
  return found.flat()
})

/** Lists unknown TILL_ variables, which may be misspelt; other programs may set them, so they prevent nothing. */
export const unknownVariables: Effect.Effect<ReadonlyArray<string>> = Effect.gen(function* () {
  const provider = yield* ConfigProvider.ConfigProvider
  const below = Effect.fnUntraced(function* (
    path: ReadonlyArray<string>
  ): Effect.fn.Return<ReadonlyArray<string>, ConfigProvider.SourceError> {
    const node = yield* provider.load(path)
    const here = node?.value === undefined ? [] : [path.join("_")]
    if (node?._tag !== "Record") return here
    return [...here, ...(yield* Effect.forEach(node.keys, (key) => below([...path, key]))).flat()]
  })
  const names = yield* Effect.orElseSucceed(below(["TILL"]), () => [])
  return names.filter((name) => name.startsWith("TILL_") && !(name in parsers)).toSorted()
})

/** Provides the configuration of this process' environment, or of the `ConfigProvider` in force. */
export const layer: Layer.Layer<TillConfig, InvalidConfiguration> = Layer.effect(TillConfig, load)

/** The phases of a shutdown, in milliseconds from the signal. */
export interface End {
  /** Time for a load balancer to notice the shutdown, while requests are still accepted. */
  readonly noticeMillis: number
  /** Partitions are handed over one by one until then; the rest is released all at once. */
  readonly handOverMillisMax: number
  /** No requests are accepted from then on, even if partitions are left. */
  readonly drainMillisMax: number
  /** Time for running requests after `drainMillisMax`. */
  readonly answerMillisMax: number
  /** The process exits then, even with unfinished work. */
  readonly endMillisMax: number
  /** The same for a process that was started by another one, which kills it then; and for that other one. */
  readonly childMillisMax: number
  readonly parentMillisMax: number
}

/** The shortest time that a load balancer in front of several processes gets to notice a shutdown. */
const NOTICE_MILLIS_MIN = 2000
/** The longest time for running requests in a single process, which hands nothing over. */
const ALONE_ANSWER_MILLIS_MAX = 4000

/**
 * Divides the shutdown time. Given ten seconds (semantics operation.health, operation.stop), a healthy runner needs 4.5
 * to hand over: 1.2 until the others have noticed the shutdown, 1 until the cluster library has, 2 until webhook
 * attempts are abandoned, and a moment for requests and the last outcomes. It accepts requests until everything is
 * handed over, and for 5 at most. After 2.5 for answers, 1.5 are left: 1 for the listener of other runners, and the
 * rest for the connections to the database.
 *
 * Longer limits wait for a database that hangs: 5 for operations begun in a partition, 1 for a lock. Such a process
 * does not shut down in order, and need not: its locks end with its sessions.
 */
export const endOf = ({
  databaseUrl,
  drainSeconds,
  isEmbedded
}: Pick<TillConfigShape, "databaseUrl" | "drainSeconds" | "isEmbedded">): End => {
  const part = (share: number) => Math.round(drainSeconds * 1000 * share)
  return {
    // The processes of an embedded database share one port, so no balancer has to notice anything.
    noticeMillis: isEmbedded ? 0 : Math.max(NOTICE_MILLIS_MIN, part(0.2)),
    handOverMillisMax: part(0.45),
    drainMillisMax: part(0.5),
    answerMillisMax: databaseUrl === undefined ? Math.min(ALONE_ANSWER_MILLIS_MAX, part(0.4)) : part(0.25),
    endMillisMax: part(0.9),
    childMillisMax: part(0.95),
    parentMillisMax: part(0.98)
  }
}

import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, type LogLevel, Redacted, Schema } from "effect"
import { inspect } from "node:util"
import * as Config from "../src/config.ts"
import { networksOf } from "../src/domain/Networks.ts"
import { mayDial } from "../src/domain/WebhookHosts.ts"

const load = (environment: Record<string, string>) =>
  Effect.provideService(Config.load, ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: environment }))

const keyPrefixes = {
  TILL_SK_TEST: "sk_test_",
  TILL_PK_TEST: "pk_test_",
  TILL_SK_LIVE: "sk_live_",
  TILL_PK_LIVE: "pk_live_"
}

const keyVariables = Object.keys(keyPrefixes) as ReadonlyArray<keyof typeof keyPrefixes>

describe("configuration", () => {
  it.effect.each([
    [{}, true],
    [{ HOST: "localhost" }, true],
    [{ HOST: "0.0.0.0" }, false],
    [{ HOST: "0.0.0.0", TILL_PUBLIC_URL: "http://pay.example.com" }, false],
    [{ HOST: "0.0.0.0", TILL_PUBLIC_URL: "https://pay.example.com" }, true],
    [{ HOST: "0.0.0.0", TILL_DASHBOARD_INSECURE: "on" }, true]
  ] as ReadonlyArray<readonly [Record<string, string>, boolean]>)(
    "determines whether people may sign in to the dashboard (semantics dashboard.hosts): %o, %s",
    ([environment, may]) =>
      Effect.map(load(environment), (config) => {
        const refusal = Config.dashboardRefusalOf(config)
        assert.strictEqual(refusal === null, may)
        if (refusal !== null)
          for (const name of ["TILL_PUBLIC_URL", "TILL_DASHBOARD_INSECURE"]) assert.include(refusal, name)
      })
  )

  it.effect("has a default for every variable, also for empty values", () =>
    Effect.gen(function* () {
      const defaults = yield* load({})
      assert.deepInclude(defaults, {
        port: 4242,
        host: "127.0.0.1",
        hostBeside: "::1",
        databaseUrl: undefined,
        publicUrl: undefined,
        apiKey: undefined,
        liveProcessor: undefined,
        authorizationHoldSeconds: 604_800,
        currencies: undefined,
        webhookAllowPrivate: false,
        webhookTestHosts: "any",
        embedOrigins: undefined,
        rateLimit: false,
        trustedProxies: undefined,
        mail: undefined,
        dashboard: true,
        dashboardInsecure: false,
        plainHttp: true,
        drainSeconds: 10,
        hangSeconds: 10,
        eventsDays: undefined,
        unpaidTestDays: undefined,
        logLevel: "Info"
      })
      assert.match(defaults.dataFolder, /^\/.*\/\.till$/)
      assert.strictEqual(defaults.secretFile, `${defaults.dataFolder}/secret`)
      assert.deepStrictEqual(
        yield* load({ PORT: "", DATABASE_URL: " ", TILL_SK_TEST: "", TILL_CURRENCIES: "" }),
        defaults
      )
    })
  )

  it.effect("reads every variable", () =>
    Effect.gen(function* () {
      const config = yield* load({
        PORT: "8080",
        HOST: "::1",
        DATABASE_URL: "postgres://till:secret@db.example:5433/payments?sslmode=require",
        TILL_DATA_DIR: "/var/lib/till/../till",
        TILL_SECRET_FILE: "/run/secrets/till",
        TILL_DRAIN_SECONDS: "30",
        TILL_HANG_SECONDS: "0",
        TILL_PUBLIC_URL: "https://pay.example/till/",
        TILL_SK_TEST: "sk_test_12345678",
        TILL_PK_LIVE: "pk_live_abcdefgh_ABC",
        TILL_API_KEY: "sk_test_87654321",
        TILL_LIVE_PROCESSOR: "simulator",
        TILL_AUTH_HOLD_SECONDS: "60",
        TILL_CURRENCIES: "USD, eur",
        TILL_WEBHOOK_ALLOW_PRIVATE: "true",
        TILL_WEBHOOK_TEST_HOSTS: "any",
        TILL_EMBED_ORIGINS: "https://shop.example, http://localhost:3000/",
        TILL_RATE_LIMIT: "on",
        TILL_TRUSTED_PROXIES: "10.0.0.0/8, ::1",
        TILL_PLAIN_HTTP: "off",
        TILL_RETENTION_EVENTS_DAYS: "30",
        TILL_RETENTION_TEST_DAYS: "14",
        TILL_ACCESS_LOG: "on",
        TILL_METRICS_HOST: "10.0.0.7",
        TILL_METRICS_PORT: "9464",
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318",
        OTEL_METRICS_EXPORTER: "none",
        OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
        OTEL_TRACES_SAMPLER_ARG: "0.25",
        TILL_LOG_LEVEL: "warn, webhooks=debug,engine=None"
      })
      assert.deepInclude(config, {
        port: 8080,
        eventsDays: 30,
        unpaidTestDays: 14,
        host: "::1",
        hostBeside: undefined,
        dataFolder: "/var/lib/till",
        secretFile: "/run/secrets/till",
        drainSeconds: 30,
        hangSeconds: 0,
        publicUrl: "https://pay.example/till",
        liveProcessor: "simulator",
        authorizationHoldSeconds: 60,
        currencies: new Set(["usd", "eur"]),
        webhookAllowPrivate: true,
        webhookTestHosts: "any",
        embedOrigins: new Set(["https://shop.example", "http://localhost:3000"]),
        rateLimit: true,
        plainHttp: false,
        accessLog: true,
        metricsHost: "10.0.0.7",
        metricsPort: 9464,
        sendsMetrics: false,
        traceSampler: { ratio: 0.25, followsParent: true },
        logLevel: "Warn",
        logLevels: new Map<string, LogLevel.LogLevel>([
          ["webhooks", "Debug"],
          ["engine", "None"]
        ])
      })
      assert.deepStrictEqual(config.trustedProxies?.rules, networksOf("10.0.0.0/8,::1")!.rules)
      assert.strictEqual(Redacted.value(config.defaultKeys.secretTest!), "sk_test_12345678")
      assert.strictEqual(Redacted.value(config.apiKey!), "sk_test_87654321")
      assert.strictEqual(Redacted.value(config.defaultKeys.publishableLive!), "pk_live_abcdefgh_ABC")
      assert.isUndefined(config.defaultKeys.secretLive)
    })
  )

  it.effect.each([
    ["PORT", "65536"],
    ["PORT", "-1"],
    ["PORT", "80.5"],
    ["PORT", "0x50"],
    ["HOST", "http://localhost"],
    ["HOST", "a\nb"],
    ["DATABASE_URL", "mysql://localhost/x"],
    ["DATABASE_URL", "localhost:5432"],
    ["TILL_SMTP_URL", "https://mail.example"],
    ["TILL_SMTP_URL", "smtp://user:pass@w/ord@mail.example"],
    ["TILL_SMTP_URL", "smtp://user:password@mail.example/?tls=off"],
    ["TILL_MAIL_FROM", "Shop"],
    ["DATABASE_URL", "postgres://till:pass@w/ord@host/till"],
    ["DATABASE_URL", "postgres://till:1#ord@host/till"],
    ["DATABASE_URL", "postgres://till:password@/till?host=/run/postgresql"],
    ["TILL_DATA_DIR", "a\0b"],
    ["TILL_SECRET_FILE", "a\0b"],
    ["TILL_DRAIN_SECONDS", "4"],
    ["TILL_DRAIN_SECONDS", "soon"],
    ["TILL_HANG_SECONDS", "-1"],
    ["TILL_HANG_SECONDS", "3601"],
    ["TILL_PUBLIC_URL", "pay.example"],
    ["TILL_PUBLIC_URL", "ftp://pay.example"],
    ["TILL_PUBLIC_URL", "https://pay.example/?a=b"],
    ["TILL_SK_TEST", "sk_live_12345678"],
    ["TILL_API_KEY", "sk_live_1234567"],
    ["TILL_API_KEY", "pk_test_12345678"],
    ["TILL_SK_TEST", "sk_test_1234567"],
    ["TILL_SK_TEST", `sk_test_${"1".repeat(201)}`],
    ["TILL_PK_TEST", "sk_test_12345678"],
    ["TILL_SK_LIVE", "sk_live_1234-678"],
    ["TILL_PK_LIVE", "12345678"],
    ["TILL_LIVE_PROCESSOR", "acquirer"],
    ["TILL_AUTH_HOLD_SECONDS", "0"],
    ["TILL_AUTH_HOLD_SECONDS", "7 days"],
    ["TILL_CURRENCIES", "usd,euro"],
    ["TILL_CURRENCIES", "usd,,eur"],
    ["TILL_WEBHOOK_ALLOW_PRIVATE", "yes"],
    ["TILL_WEBHOOK_TEST_HOSTS", "*"],
    ["TILL_WEBHOOK_TEST_HOSTS", "public,10.0.0.0/8"],
    ["TILL_WEBHOOK_TEST_HOSTS", "any,hooks.internal"],
    ["TILL_WEBHOOK_TEST_HOSTS", "10.0.0.0/40"],
    ["TILL_WEBHOOK_TEST_HOSTS", "http://localhost:3000"],
    ["TILL_EMBED_ORIGINS", "*"],
    ["TILL_EMBED_ORIGINS", "shop.example"],
    ["TILL_EMBED_ORIGINS", "https://shop.example/cart"],
    ["TILL_EMBED_ORIGINS", "https://shop.example;script-src *"],
    ["TILL_EMBED_ORIGINS", "https://shop.example:443"],
    ["TILL_EMBED_ORIGINS", "https://shop.example,,https://b.example"],
    ["TILL_RATE_LIMIT", "true"],
    ["TILL_TRUSTED_PROXIES", "all"],
    ["TILL_TRUSTED_PROXIES", "10.0.0.0/33"],
    ["TILL_PLAIN_HTTP", "no"],
    ["TILL_SCRUB_DAYS", "weekly"],
    ["TILL_RETENTION_EVENTS_DAYS", "0"],
    ["TILL_RETENTION_TEST_DAYS", "a month"],
    ["TILL_ACCESS_LOG", "yes"],
    ["OTEL_TRACES_SAMPLER", "sometimes"],
    ["OTEL_TRACES_SAMPLER_ARG", "1.5"],
    ["TILL_METRICS_HOST", "http://localhost"],
    ["TILL_METRICS_PORT", "65536"],
    ["TILL_LOG_LEVEL", "loud"],
    ["TILL_LOG_LEVEL", "webhook=debug"],
    ["TILL_LOG_LEVEL", "webhooks=loud"],
    ["TILL_LOG_LEVEL", "webhooks=debug=info"],
    ["TILL_LOG_LEVEL", "info,"]
  ] as const)("refuses %s=%j in one line that names it", ([variable, value]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(load({ [variable]: value }))
      assert.strictEqual(error.variable, variable)
      assert.isTrue(error.message.startsWith(`${variable}: `))
      assert.notInclude(error.message, "\n")
    })
  )

  it.effect.each([
    [{}, true],
    [{ HOST: "localhost" }, true],
    [{ HOST: "127.0.0.2" }, true],
    [{ HOST: "::1" }, true],
    [{ HOST: "0.0.0.0" }, false],
    [{ HOST: "::" }, false],
    [{ HOST: "till.example" }, false],
    [{ HOST: "127.example" }, false],
    [{ TILL_PUBLIC_URL: "http://localhost:4242" }, true],
    [{ TILL_PUBLIC_URL: "http://127.0.0.1:4242/till" }, true],
    [{ TILL_PUBLIC_URL: "https://[::1]" }, true],
    [{ TILL_PUBLIC_URL: "https://pay.example" }, false],
    [{ TILL_PUBLIC_URL: "https://localhost.example" }, false],
    [{ TILL_PUBLIC_URL: "https://10.0.0.7" }, false],
    [{ HOST: "0.0.0.0", TILL_PUBLIC_URL: "http://localhost:4242" }, false],
    [{ TILL_PUBLIC_URL: "https://pay.example", TILL_WEBHOOK_TEST_HOSTS: "any" }, true],
    [{ TILL_WEBHOOK_TEST_HOSTS: "public" }, false],
    [{ HOST: "0.0.0.0", TILL_WEBHOOK_TEST_HOSTS: "any" }, true],
    [{ HOST: "0.0.0.0", TILL_WEBHOOK_TEST_HOSTS: "10.0.0.0/8" }, true],
    [{ HOST: "0.0.0.0", TILL_WEBHOOK_TEST_HOSTS: "hooks.internal,10.0.0.1" }, true],
    [{ HOST: "127.0.0.1", TILL_WEBHOOK_TEST_HOSTS: "10.0.0.2" }, false]
  ] as const)("webhooks.test_hosts: with %j, test webhooks may go to 10.0.0.1: %s", ([environment, expected]) =>
    Effect.gen(function* () {
      const { isLocal, webhookTestHosts } = yield* load(environment)
      if (!("TILL_WEBHOOK_TEST_HOSTS" in environment)) assert.strictEqual(isLocal, expected)
      const hosts = { httpsOnly: false, besidePublic: webhookTestHosts }
      assert.strictEqual(mayDial(hosts, "10.0.0.1", "10.0.0.1"), expected)
      assert.isTrue(mayDial(hosts, "8.8.8.8", "8.8.8.8"))
    })
  )

  it.effect(
    "sends mail with a server and a sender, and does not start with a server alone (semantics mail.server)",
    () =>
      Effect.gen(function* () {
        const url = { TILL_SMTP_URL: "smtps://till%40shop.example:p%40ss@mail.example" }
        const { mail } = yield* load({ ...url, TILL_MAIL_FROM: "Shop <pay@shop.example>" })
        const { password, ...server } = mail!.server
        assert.deepStrictEqual(server, { host: "mail.example", port: 465, isSecure: true, user: "till@shop.example" })
        assert.strictEqual(Redacted.value(password), "p@ss")
        assert.deepStrictEqual(mail!.from, { name: "Shop", address: "pay@shop.example" })
        const { message } = yield* Effect.flip(load(url))
        assert.match(message, /^TILL_MAIL_FROM: /)
        assert.isUndefined((yield* load({ TILL_MAIL_FROM: "pay@shop.example" })).mail)
      })
  )

  it.effect("lists set names with Till's prefix that are not variables", () =>
    Effect.gen(function* () {
      const unknown = yield* Effect.provideService(
        Config.unknownVariables,
        ConfigProvider.ConfigProvider,
        ConfigProvider.fromEnv({
          env: {
            TILL_RATE_LIMITS: "on",
            TILL_RATE_LIMIT: "on",
            TILL_SK: "sk_test_12345678",
            TILL_SK_TEST: "sk_test_12345678",
            TILL_: "x",
            TILL_EMPTY: "",
            TILL: "x",
            TILLER: "x",
            DATABASE_URI: "x"
          }
        })
      )
      assert.deepStrictEqual(unknown, ["TILL_", "TILL_RATE_LIMITS", "TILL_SK"])
    })
  )

  const keyBody = Schema.String.check(Schema.isPattern(/^[0-9A-Za-z_]{8,40}$/u))
  const variable = Schema.Literals(keyVariables)

  it.effect.prop("accepts exactly the keys of the right prefix", { variable, prefixOf: variable, keyBody }, (given) =>
    Effect.gen(function* () {
      const key = keyPrefixes[given.prefixOf] + given.keyBody
      const outcome = yield* Effect.result(load({ [given.variable]: key }))
      assert.strictEqual(outcome._tag, given.variable === given.prefixOf ? "Success" : "Failure")
    })
  )

  // Likely mistakes in such a variable: any text, and values that nearly parse.
  const mistake = Schema.Struct({
    before: Schema.Literals([
      "",
      "smtp://u:",
      "smtp//u:",
      "sk_test_",
      "pk_live_",
      "postgres://u:",
      "postgres//u:",
      "http://x:",
      "mysql://u:"
    ]),
    secret: Schema.String.check(Schema.isPattern(/^[0-9A-Za-z!$ ~-]{9,30}$/u)),
    after: Schema.Literals(["", "@host", "@host/db", "@host:port/db", "\n"])
  })

  it.effect.prop(
    "never repeats the value of a secret",
    { mistake, variable: Schema.Literals(["DATABASE_URL", "TILL_SMTP_URL", ...keyVariables]) },
    ({ mistake: { before, secret, after }, variable: name }) =>
      Effect.gen(function* () {
        const outcome = yield* Effect.result(load({ TILL_MAIL_FROM: "a@b.example", [name]: before + secret + after }))
        const shown =
          outcome._tag === "Failure"
            ? [outcome.failure.message, String(outcome.failure), inspect(outcome.failure, { depth: 9 })]
            : [JSON.stringify(outcome.success), inspect(outcome.success, { depth: 9 })]
        for (const text of shown) assert.isFalse(text.includes(secret.trim()), "the secret is shown")
      })
  )
})

describe("the end of a process", () => {
  it("fits all of its phases, one after the other, into TILL_DRAIN_SECONDS", () => {
    for (const drainSeconds of [5, 10, 30, 600]) {
      for (const [databaseUrl, isEmbedded] of [
        [undefined, true],
        [Redacted.make("postgres://of.runners/till"), true],
        [Redacted.make("postgres://of.one/till"), false]
      ] as const) {
        const end = Config.endOf({ drainSeconds, databaseUrl, isEmbedded })
        assert.isBelow(end.handOverMillisMax, end.drainMillisMax)
        assert.isAtMost(end.noticeMillis, end.drainMillisMax)
        const handedOver = databaseUrl === undefined ? 0 : end.drainMillisMax
        // Resources that are closed after that have limits of a second.
        assert.isAtLeast(end.endMillisMax - handedOver - end.answerMillisMax, Math.min(drainSeconds * 100, 1500))
        assert.isBelow(end.endMillisMax, end.childMillisMax)
        assert.isBelow(end.childMillisMax, end.parentMillisMax)
        assert.isBelow(end.parentMillisMax, drainSeconds * 1000)
      }
    }
  })
})

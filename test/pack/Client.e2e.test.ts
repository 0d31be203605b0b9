/**
 * The packed client, installed into an empty folder: `import` and `require`, its types under strict compilers, its
 * size, and its time to load. The programs of the README are compiled with it.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { createHmac } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as Path from "node:path"
import * as vm from "node:vm"
import { bytesOf, CLIENT, cpuSecondsOf, install, pack, read, ROOT, run } from "./Installed.ts"

const TSC = Path.join(ROOT, "node_modules/typescript/bin/tsc")

let packed = ""
let project = ""
beforeAll(() => {
  packed = fs.mkdtempSync(Path.join(os.tmpdir(), "till-packed-"))
  project = install(pack(packed, "client"))
}, 300_000)
afterAll(() => {
  for (const folder of [packed, project]) fs.rmSync(folder, { recursive: true, force: true })
})

const link = (name: string) => {
  const to = Path.join(project, "node_modules", name)
  fs.mkdirSync(Path.dirname(to), { recursive: true })
  if (!fs.existsSync(to)) fs.symlinkSync(Path.join(ROOT, "node_modules", name), to)
}

/** Compiles files of the project. Returns the compiler's errors. */
const compile = (files: ReadonlyArray<string>, options: object): string => {
  const compilerOptions = { strict: true, target: "es2023", noEmit: true, types: [], ...options }
  fs.writeFileSync(Path.join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files }))
  try {
    return run(project, process.execPath, TSC)
  } catch (error) {
    return (error as { readonly stdout: string }).stdout
  }
}

const PROGRAM = `
  const till = new TillClient({ apiKey: "sk_test_a", baseUrl: "http://localhost:4242" })
  export const amounts = async (): Promise<ReadonlyArray<number>> => {
    const found: Array<number> = []
    for await (const { amount } of till.payment_intents.list({ limit: 3 })) found.push(amount)
    return found
  }
`

describe("the packed client", () => {
  it("brings nothing along, and is at most 270 kB beside its changelog, which grows with every release", () => {
    assert.deepStrictEqual(fs.readdirSync(Path.join(project, "node_modules")).toSorted(), [
      ".package-lock.json",
      CLIENT
    ])
    const changelog = Buffer.byteLength(read(project, CLIENT, "CHANGELOG.md"))
    assert.isAtMost(bytesOf(Path.join(project, "node_modules", CLIENT)) - changelog, 270_000)
    const { dependencies, license, name } = JSON.parse(read(project, CLIENT, "package.json"))
    assert.deepStrictEqual(
      { dependencies, license, name },
      { dependencies: undefined, license: "Apache-2.0", name: CLIENT }
    )
    for (const file of ["README.md", "CHANGELOG.md", "LICENSE"]) assert.isNotEmpty(read(project, CLIENT, file))
    const notices = read(project, CLIENT, "THIRD_PARTY_NOTICES.md")
    for (const text of ["effect 4", "@noble/hashes", "Permission is hereby granted"]) assert.include(notices, text)
  })

  it("imports no module of a runtime", () => {
    const imported = ["index.js", "index.mjs", "effect.mjs"].flatMap((file) =>
      [...read(project, CLIENT, file).matchAll(/(?:\bfrom |\brequire\(|\bimport ?\(?)["'`]([^"'`]+)["'`]/gu)].map(
        ([, name]) => `${file} ${name}`
      )
    )
    assert.sameMembers(
      [...new Set(imported)],
      ["index.mjs ./index.js", "effect.mjs ./index.mjs", "effect.mjs effect", "effect.mjs effect/http"]
    )
  })

  it("runs with nothing but what all runtimes with fetch have", async () => {
    const requests: Array<readonly [string, string]> = []
    const answered = async (url: string | URL | Request, init?: RequestInit) => {
      requests.push([init!.method!, String(url)])
      return new Response('{"id":"cus_1"}', { headers: { "content-type": "application/json" } })
    }
    const web = {
      AbortController,
      TextDecoder,
      TextEncoder,
      URL,
      URLSearchParams,
      btoa,
      crypto,
      setTimeout,
      clearTimeout
    }
    const module = { exports: {} as typeof import("../../src/client/index.ts") }
    vm.runInNewContext(read(project, CLIENT, "index.js"), { ...web, fetch: answered, module, exports: module.exports })
    const till = new module.exports.TillClient({ apiKey: "sk_test_a", baseUrl: "http://localhost:1", fetch: answered })
    assert.strictEqual((await till.customers.create({ name: "A" })).id, "cus_1")
    assert.deepStrictEqual(requests, [["POST", "http://localhost:1/v1/customers"]])
  })

  it("loads by import and by require, with at most an eighth of a second of CPU time", () => {
    const program =
      "const { TillClient, verifyWebhook } = await import('till-payments-client'); console.log(typeof TillClient)"
    assert.strictEqual(run(project, process.execPath, "--input-type=module", "-e", program).trim(), "function")
    const required =
      "const { TillClient, PaymentError } = require('till-payments-client'); console.log(typeof PaymentError)"
    assert.strictEqual(run(project, process.execPath, "-e", required).trim(), "function")
    const best = (code: string) =>
      Math.min(...[1, 2, 3].map(() => cpuSecondsOf(project, process.execPath, "--input-type=module", "-e", code)))
    assert.isAtMost(best("await import('till-payments-client')") - best("0"), 0.125)
  })

  it.each([
    ["module", "shop.mts", 'import { TillClient } from "till-payments-client"', { module: "nodenext" }],
    ["require", "shop.cts", 'import { TillClient } from "till-payments-client"', { module: "nodenext" }],
    [
      "bundler",
      "shop.ts",
      'import { TillClient } from "till-payments-client"',
      { module: "esnext", moduleResolution: "bundler" }
    ]
  ])("compiles strictly for a %s, within three seconds of CPU time", (_name, file, line, options) => {
    fs.writeFileSync(Path.join(project, file), `${line}\n${PROGRAM}`)
    assert.strictEqual(compile([file], { ...options, lib: ["es2023", "dom"] }), "")
    assert.isAtMost(cpuSecondsOf(project, process.execPath, TSC), 3)
  })

  it("compiles the README's programs, and those for Effect", () => {
    for (const name of ["effect", "@types/node", "undici-types"]) link(name)
    const readmes = [fs.readFileSync(Path.join(ROOT, "README.md"), "utf8"), read(project, CLIENT, "README.md")]
    const programs = readmes.flatMap((text) => [...text.matchAll(/```ts\n(.*?)```/gs)].map(([, program]) => program!))
    assert.isAbove(programs.length, 3)
    const effects = `
      import { Effect, Redacted, Stream } from "effect"
      import { Till } from "till-payments-client/effect"
      export const program = Effect.gen(function* () {
        const till = yield* Till
        const { id } = yield* till.customers.create({ email: "jenny@example.com" })
        yield* Stream.runForEach(till.events.list.stream({ limit: 100 }), (event) => Effect.log(event.type))
        return id
      }).pipe(
        Effect.catchTag("PaymentError", ({ decline_code }) => Effect.succeed(decline_code ?? "")),
        Effect.provide(Till.layerFetch({ apiKey: Redacted.make("sk_test_a"), baseUrl: "http://localhost:4242" }))
      )`
    const files = [...programs, effects].map((program, index) => {
      fs.writeFileSync(Path.join(project, `${index}.mts`), program)
      return `${index}.mts`
    })
    assert.strictEqual(compile(files, { module: "nodenext", types: ["node"], skipLibCheck: false }), "")
  })

  it("has errors of one class for import, for require and for Effect", () => {
    link("effect")
    const program = `
      import { createRequire } from "node:module"
      const { PaymentError } = await import("till-payments-client")
      const effect = await import("till-payments-client/effect")
      const required = createRequire(import.meta.url)("till-payments-client")
      console.log(effect.PaymentError === PaymentError && required.PaymentError === PaymentError)`
    assert.strictEqual(run(project, process.execPath, "--input-type=module", "-e", program).trim(), "true")
  })

  it("verifies webhooks without Node's cryptography, and reads names that JSON.parse misreads", () => {
    const metadata = String.raw`{"a":0,"\n":0}`
    const body = `{"id":"evt_1","type":"customer.updated","metadata":${metadata}}`
    const header = (secret: string, time: number) =>
      `t=${time},v1=${createHmac("sha256", secret).update(`v1=${time}.${body}`).digest("hex")}`
    const now = Math.floor(Date.now() / 1000)
    const long = `whsec_${"a".repeat(100)}`
    const program = `
      const { verifyWebhook } = await import("till-payments-client")
      JSON.parse(${JSON.stringify(String.raw`{"a":0,"\\":0}`)})
      const outcome = (secret, header, body) => {
        try {
          return verifyWebhook({ body, header, secret }).metadata
        } catch ({ reason }) {
          return reason
        }
      }
      const body = ${JSON.stringify(body)}
      console.log(JSON.stringify([
        outcome("whsec_a", ${JSON.stringify(header("whsec_a", now))}, body),
        outcome(${JSON.stringify(long)}, ${JSON.stringify(header(long, now))}, new TextEncoder().encode(body).buffer),
        outcome("whsec_b", ${JSON.stringify(header("whsec_a", now))}, body),
        outcome("whsec_a", ${JSON.stringify(header("whsec_a", now))}, body + " "),
        outcome("whsec_a", ${JSON.stringify(header("whsec_a", now - 1000))}, body)
      ]))`
    assert.strictEqual(
      run(project, process.execPath, "--input-type=module", "-e", program).trim(),
      `[${metadata},${metadata},"signature_mismatch","signature_mismatch","timestamp_outside_tolerance"]`
    )
  })

  it("has the contract's types, written out", () => {
    const folder = fs.mkdtempSync(Path.join(ROOT, "dist/types-"))
    try {
      const types = JSON.stringify(Path.join(project, "node_modules", CLIENT, "Contract.js"))
      fs.writeFileSync(
        Path.join(folder, "same.ts"),
        `import type * as Printed from ${types}
         import type * as Source from "../../src/client/Contract.ts"
         type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
         type Keys<A, B> = keyof A | keyof B
         type DifferingIn<A, B> = { [N in Keys<A, B>]: N extends keyof A & keyof B
           ? Same<A[N], B[N]> extends true ? never : N
           : N }[Keys<A, B>]
         type Differing<A, B> = { [G in Keys<A, B>]: G extends keyof A & keyof B
           ? DifferingIn<A[G], B[G]>
           : G }[Keys<A, B>]
         export const endpoints: [Differing<Printed.Contract, Source.Contract>] extends [never] ? true : false = true
         export const objects: Same<
           [Printed.ApiVersion, Printed.Charge, Printed.CheckoutSession, Printed.Customer, Printed.Event,
             Printed.EventType, Printed.PaymentIntent, Printed.PaymentMethod, Printed.Price, Printed.Product,
             Printed.Refund],
           [Source.ApiVersion, Source.Charge, Source.CheckoutSession, Source.Customer, Source.Event, Source.EventType,
             Source.PaymentIntent, Source.PaymentMethod, Source.Price, Source.Product, Source.Refund]
         > = true`
      )
      const config = { extends: "../../tsconfig.json", include: [], files: ["same.ts"] }
      fs.writeFileSync(Path.join(folder, "tsconfig.json"), JSON.stringify(config))
      const output = (() => {
        try {
          return run(folder, process.execPath, TSC, "-p", ".")
        } catch (error) {
          return (error as { readonly stdout: string }).stdout
        }
      })()
      assert.strictEqual(output, "")
    } finally {
      fs.rmSync(folder, { recursive: true })
    }
  })
})

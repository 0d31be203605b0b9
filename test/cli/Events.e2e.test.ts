/** `till events` as typed in a terminal, with a real service: one request waits, and is answered when there is news. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { KEYS, run, type Running, startTill, type TillProcess, until } from "../support/TillProcess.ts"
import { startListen } from "./ListenProcess.ts"

/** Passes requests on to a service, and keeps their first lines. */
const startProxy = (server: TillProcess) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const asked: Array<string> = []
      const proxy = http.createServer((request, response) => {
        asked.push(`${request.method} ${request.url}`)
        const { headers, method, url: path } = request
        const passed = http.request({ port: server.port, method, path, headers }, (answer) => {
          response.writeHead(answer.statusCode!, answer.headers)
          answer.on("error", () => response.destroy()).pipe(response)
        })
        passed.on("error", () => response.destroy())
        request.pipe(passed)
      })
      await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve))
      return { proxy, asked, url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` }
    }),
    ({ proxy }) =>
      Effect.sync(() => {
        proxy.close()
        proxy.closeAllConnections()
      })
  )

const follow = (args: ReadonlyArray<string>, variables: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => run(["events", ...args], variables)),
    ({ child, ended }) => Effect.promise(() => (child.kill("SIGKILL"), ended))
  )

const shows = (running: Running, count: number) =>
  until(`till events shows ${count}`, () => running.stdout().split("\n").length - 1 >= count)

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

/** How long a command is watched while nothing happens, in milliseconds. */
const QUIET_MILLIS = 4000

describe("the command till events", () => {
  it.live("prints each event once, oldest first, sends no request while it waits, and misses none over a restart", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      const { asked, url } = yield* startProxy(server)
      const customer = (name: string) => server.post("/v1/customers", { name })
      yield* Effect.promise(() => customer("before"))
      const all = yield* follow(["--json", "--url", url], server.variables)
      const products = yield* follow(["--type", "product.*", "--limit", "0"], server.variables)
      yield* Effect.promise(async () => {
        await shows(all, 1)
        await until("it waits", () => asked.at(-1)!.includes("wait=25"))
        const before = asked.length
        await pause(QUIET_MILLIS)
        assert.lengthOf(asked, before)
        for (const name of ["one", "two"]) await customer(name)
        await server.post("/v1/products", { name: "three" })
        await shows(all, 4)
        await shows(products, 1)
        await server.kill("SIGKILL")
        await until("it is noticed", () => all.stderr().includes("Retrying") && products.stderr().includes("Retrying"))
        await server.start()
        await customer("four")
        await server.post("/v1/products", { name: "five" })
        await shows(all, 6)
        await shows(products, 2)

        await server.request("DELETE", "/v1/test_helpers/data")
        await customer("six")
        await shows(all, 7)
        const logged = (await server.get("/v1/request_logs?path=/v1/events&limit=100")).data
        // A refusal is logged: the wipe has deleted the event after which the command asks.
        assert.isEmpty(
          logged.filter(
            ({ query, status }: { readonly query: object | null; readonly status: number }) =>
              status === 200 && "wait" in (query ?? {})
          )
        )
      })
      const names = all
        .stdout()
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).data.object.name)
      assert.deepStrictEqual(names, ["before", "one", "two", "three", "four", "five", "six"])
      assert.match(products.stdout(), /^(?:\S+Z {2}product\.created {2}evt_\w+ {2}prod_\w+\n){2}$/u)
      assert.strictEqual(all.stderr().match(/Retrying/gu)?.length, 1)
      assert.notInclude(all.stdout() + all.stderr(), KEYS.secretTest)
    })
  )

  it.live("has no effect on the end of the service, and ends with the reason if its key is refused", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      const waiting = yield* follow([], server.variables)
      const { asked, url } = yield* startProxy(server)
      const watched = yield* follow(["--url", url], server.variables)
      const refused = yield* follow([], { ...server.variables, TILL_API_KEY: "sk_test_unknown" })
      yield* Effect.promise(async () => {
        assert.deepStrictEqual(await refused.ended, { code: 1, signal: null })
        assert.match(refused.stderr(), /^till: /u)
        await until("it waits", () => asked.at(-1)?.includes("wait=25") === true)
        const begun = performance.now()
        await server.kill("SIGTERM")
        assert.isBelow(performance.now() - begun, 10_000)
        for (const { child, ended } of [waiting, watched]) {
          child.kill("SIGTERM")
          assert.deepStrictEqual(await ended, { code: 0, signal: null })
        }
      })
    })
  )
})

describe("the command till listen", () => {
  it.live("sends no request while it waits", () =>
    Effect.gen(function* () {
      const server = yield* startTill()
      const { asked, url } = yield* startProxy(server)
      yield* startListen(server, "--forward-to", "http://127.0.0.1:1/", "--url", url)
      yield* Effect.promise(async () => {
        await until("it waits", () => asked.at(-1)!.includes("wait=25"))
        const before = asked.length
        await pause(QUIET_MILLIS)
        assert.lengthOf(asked, before)
      })
    })
  )
})

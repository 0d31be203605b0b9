/**
 * Without HOST, Till listens on both loopback addresses, because `localhost` is one or the other (semantics
 * operation.listening).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as http from "node:http"
import { createServer } from "node:net"
import { networkInterfaces } from "node:os"
import { KEYS, prepareTill, run, startTill, type TillProcess } from "../support/TillProcess.ts"

const hasIPv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"))

const authorization = `Basic ${Buffer.from(`${KEYS.secretTest}:`).toString("base64")}`

/** Returns the status of an answer, or the code of the connection's error. */
const ask = (
  { port }: TillProcess,
  host: string,
  path: string,
  headers: http.OutgoingHttpHeaders = {}
): Promise<number | string> =>
  new Promise((resolve) => {
    const method = path === "/v1/customers" ? "POST" : "GET"
    const request = http.request({ host, port, path, method, headers: { authorization, ...headers }, agent: false })
    request.on("response", (response) => {
      response.resume().once("end", () => resolve(response.statusCode!))
    })
    request.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    request.end()
  })

const failedStart = async (variables: Readonly<Record<string, string>>): Promise<string> => {
  const { child, ended, stderr } = run(["serve"], variables)
  const closed = new Promise((resolve) => child.once("close", resolve))
  assert.deepStrictEqual(await ended, { code: 1, signal: null })
  await closed
  return stderr()
}

const assertAnswersOn = async (server: TillProcess, hosts: ReadonlyArray<string>) => {
  for (const host of hosts) {
    assert.strictEqual(await ask(server, host, "/healthz"), 200, host)
    assert.strictEqual(await ask(server, host, "/docs"), 200, host)
    assert.strictEqual(await ask(server, host, "/nowhere"), 404, host)
    assert.strictEqual(await ask(server, host, "/v1/customers", { "idempotency-key": `at ${host}` }), 200, host)
    assert.strictEqual(
      await ask(server, host, "/v1/customers", { "idempotency-key": `expected at ${host}`, expect: "100-continue" }),
      200,
      host
    )
  }
}

describe.skipIf(!hasIPv6)("a service without HOST", () => {
  it.live("answers on both loopback addresses, and names an occupied one; with HOST it answers there alone", () =>
    Effect.flatMap(startTill(), (server) =>
      Effect.promise(async () => {
        await assertAnswersOn(server, ["127.0.0.1", "::1", "localhost"])
        assert.deepStrictEqual(await server.kill("SIGTERM"), { code: 0, signal: null })
        assert.strictEqual(await ask(server, "::1", "/healthz"), "ECONNREFUSED")

        const holder = createServer()
        await new Promise<void>((resolve) => holder.listen(server.port, "::1", resolve))
        const inUse = `till: PORT: ${server.port} on ::1 is in use by another process\n`
        assert.strictEqual(await failedStart(server.variables), inUse)
        await new Promise((resolve) => holder.close(resolve))
      })
    )
  )

  it.live("answers on both as several processes", () =>
    Effect.flatMap(startTill({ args: ["--runners", "2"] }), (server) =>
      Effect.promise(() => assertAnswersOn(server, ["::1", "127.0.0.1", "::1"]))
    )
  )

  it.live("answers at a HOST that is named, and nowhere else", () =>
    Effect.flatMap(prepareTill({ variables: { HOST: "::1" } }), (server) =>
      Effect.promise(async () => {
        const { child, ended, stdout } = run(["serve"], server.variables)
        while (!stdout().includes("Till listens on")) await new Promise((resolve) => setTimeout(resolve, 50))
        assert.strictEqual(await ask(server, "::1", "/healthz"), 200)
        assert.strictEqual(await ask(server, "127.0.0.1", "/healthz"), "ECONNREFUSED")
        child.kill("SIGTERM")
        await ended
      })
    )
  )
})

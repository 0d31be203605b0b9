/**
 * A service whose event loop hangs is killed, and after the restart it has everything that it acknowledged (semantics
 * operation.hang).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Path from "node:path"
import { HttpExchange, Lost } from "../support/HttpExchange.ts"
import { KEYS, runnersOf, signalIfThere, startTill, type TillProcess, until } from "../support/TillProcess.ts"

const HANG = Path.resolve(import.meta.dirname, "../support/HangOnSignal.ts")
/** A shorter limit than the default would also kill a healthy process on a busy machine. */
const variables = { NODE_OPTIONS: `--import=${HANG}` }

/** The lines with which processes log that they are killed. */
const lastWords = ({ stderr }: TillProcess): ReadonlyArray<{ readonly annotations: { readonly request_id: string } }> =>
  stderr
    .split("\n")
    .filter((line) => line.includes("The event loop has not turned"))
    .map((line) => JSON.parse(line))

const named = (name: string) => ({ body: { name }, idempotencyKey: `key of ${name}` })

describe("a service whose event loop stands still", () => {
  it.live("is killed, logs the last request, and has everything acknowledged after its restart", () =>
    Effect.flatMap(startTill({ variables }), (server) =>
      Effect.promise(async () => {
        const first = await server.post("/v1/customers", { name: "first" }, named("first"))
        const second = await server.request("POST", "/v1/customers", named("second"))
        signalIfThere(server.processId, "SIGUSR2")
        assert.deepStrictEqual(await server.ended, { code: null, signal: "SIGKILL" })
        assert.deepStrictEqual(
          lastWords(server).map(({ annotations }) => annotations.request_id),
          [second.headers["x-request-id"]]
        )
        await server.start()
        assert.strictEqual((await server.get(`/v1/customers/${first.id}`)).name, "first")
        const again = await server.request("POST", "/v1/customers", named("second"))
        assert.strictEqual(again.text, second.text)
        assert.strictEqual(again.headers["idempotent-replayed"], "true")
      })
    )
  )

  it.live("as one of two processes is started again by the one that has started it, while the other one answers", () =>
    Effect.flatMap(startTill({ variables, args: ["--runners", "2"] }), (server) =>
      Effect.promise(async () => {
        const [victim] = runnersOf(server)
        const created = async (name: string): Promise<boolean> => {
          // A new connection, which may lead to the hanging process.
          const http = new HttpExchange(server.port, KEYS.secretTest)
          try {
            return (await http.request("POST", "/v1/customers", named(name))).status === 200
          } catch (error) {
            if (error instanceof Lost) return false
            throw error
          } finally {
            http.close()
          }
        }
        for (const name of ["a", "b", "c", "d"]) assert.isTrue(await created(name))
        signalIfThere(victim!, "SIGUSR2")
        for (const name of ["e", "f", "g", "h"]) await until(`${name} is created`, () => created(name))
        await until("it is started again", () => {
          const runners = runnersOf(server)
          return runners.length === 2 && !runners.includes(victim!)
        })
        assert.include(server.stderr, "A runner has ended")
        assert.lengthOf(lastWords(server), 1)
        await until("both answer", async () => (await Promise.all(["i", "j", "k", "l"].map(created))).every(Boolean))
        const { data } = await server.get("/v1/customers?limit=100")
        assert.deepStrictEqual(data.map(({ name }: { readonly name: string }) => name).toSorted(), [..."abcdefghijkl"])
      })
    )
  )
})

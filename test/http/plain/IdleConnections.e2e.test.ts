/** Ten thousand idle connections, held by another process, do not keep a request from its answer. */
import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import type { AddressInfo } from "node:net"
import * as Path from "node:path"
import { createInterface } from "node:readline"
import { promisify } from "node:util"
import * as NodeServer from "../../../src/server/NodeServer.ts"

/** Opens idle connections from another process. `untouched` counts the open ones that received nothing. */
const idleClients = async (port: number, count: number) => {
  const child = spawn(process.execPath, [Path.join(import.meta.dirname, "IdleClients.ts"), String(port), String(count)])
  const ended = new Promise((resolve) => child.once("exit", resolve))
  let errors = ""
  child.stderr.on("data", (text) => (errors += text))
  const said = createInterface(child.stdout)[Symbol.asyncIterator]()
  const next = async () => {
    const { done, value } = await said.next()
    if (done === true) throw new Error(`The clients ended: ${errors}`)
    return value
  }
  assert.strictEqual(await next(), "open")
  const untouched = async () => {
    child.stdin.write("?")
    return Number(await next())
  }
  const end = () => {
    child.stdin.end()
    return ended
  }
  return { untouched, end }
}

describe("a connection", () => {
  it("gets its answer beside 10,000 idle ones", async () => {
    const server = NodeServer.create({ arrivalMillisMax: 60_000 })
    NodeServer.setApi(server, {
      plain: (incoming) => incoming.answer(200, { "content-type": "text/plain" }, "plain"),
      request: (_, response) => void response.end("node")
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", 4096, resolve))
    try {
      const { port } = server.address() as AddressInfo
      const idle = await idleClients(port, 10_000)
      assert.strictEqual(await (await fetch(`http://127.0.0.1:${port}/v1/a`)).text(), "plain")
      assert.strictEqual(await idle.untouched(), 10_000)
      assert.isAbove(await promisify(server.getConnections.bind(server))(), 10_000)
      await idle.end()
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})

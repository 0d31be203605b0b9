/** The network before Postgres: slow, silent for a while, half-open, and cut between a commit and its answer. */
import * as Path from "node:path"
import { pause } from "../../support/TillProcess.ts"
import { TcpProxy } from "../TcpProxy.ts"
import { type Context, type Row, scene, type SceneOptions } from "../Scene.ts"
import { withServer } from "../Server.ts"

interface NetworkFault {
  readonly fault: string
  readonly rounds: number
  readonly inject: (proxy: TcpProxy, began: () => void) => Promise<void>
  readonly options?: Partial<SceneOptions>
}

const RESETS_PER_ROUND = 3
const RESET_MILLIS_MAX = 10_000

const FAULTS: ReadonlyArray<NetworkFault> = [
  {
    fault: "reset after COMMIT",
    rounds: 5,
    inject: async (proxy, began) => {
      for (let reset = 0; reset < RESETS_PER_ROUND; reset++) {
        await Promise.race([proxy.resetAfterCommit(), pause(RESET_MILLIS_MAX)])
      }
      began()
    },
    options: { remark: `each round resets ${RESETS_PER_ROUND} flushes that were committed, before the answer.` }
  },
  {
    fault: "slow database, 200 ms each way",
    rounds: 2,
    inject: async (proxy, began) => {
      proxy.slow(200)
      await pause(4000)
      proxy.slow(0)
      began()
    }
  },
  {
    fault: "silent database, 4 s",
    rounds: 2,
    inject: async (proxy, began) => {
      proxy.stall()
      await pause(4000)
      proxy.resume()
      began()
    }
  },
  {
    fault: "half-open connections",
    rounds: 1,
    inject: (proxy, began) => {
      began()
      proxy.swallow()
      return Promise.resolve()
    },
    options: {
      remark: "Till gets no error for its dead connections: it waits for its statement timeout, 15 s."
    }
  }
]

export const run = (context: Context): Promise<ReadonlyArray<Row>> =>
  withServer(Path.join(context.folder, "server"), async (server) => {
    const rows: Array<Row> = []
    for (const [number, one] of FAULTS.entries()) {
      const proxy = await TcpProxy.start(server.port)
      try {
        const databaseUrl = await server.createDatabase(`network_${number}`, proxy.port)
        rows.push(await through(context, one, proxy, databaseUrl))
      } finally {
        proxy.close()
      }
    }
    return rows
  })

const through = (context: Context, one: NetworkFault, proxy: TcpProxy, databaseUrl: string): Promise<Row> =>
  scene(context, { fault: one.fault, service: { databaseUrl }, ...one.options }, async (scene) => {
    for (let round = 0; round < one.rounds * context.times; round++) {
      await scene.round((began) => one.inject(proxy, began))
    }
  })

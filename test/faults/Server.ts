/** A Postgres of the fault suite: for several Tills on one database, behind a proxy, and with edited tables. */
import { Effect, Exit, Redacted, Scope } from "effect"
import { Client } from "pg"
import * as EmbeddedPostgres from "../../src/postgres/embedded/EmbeddedPostgres.ts"
import { environment } from "../../src/postgres/embedded/Postmaster.ts"
import { grantIn, MAKES_DATABASES } from "../support/DatabaseRights.ts"
import { killFamily, pause } from "../support/TillProcess.ts"

const CONNECT_TRIES = 40
const CONNECT_PAUSE_MILLIS = 250

export class Server {
  readonly port: number
  readonly #server: EmbeddedPostgres.EmbeddedPostgres
  readonly #scope: Scope.Closeable
  readonly #forget: () => void

  private constructor(server: EmbeddedPostgres.EmbeddedPostgres, scope: Scope.Closeable, forget: () => void) {
    this.#server = server
    this.#forget = forget
    this.#scope = scope
    this.port = server.port
  }

  /** `variables` are set at every start of Postgres. */
  static async start(dataFolder: string, variables: Readonly<Record<string, string>> = {}): Promise<Server> {
    const scope = await Effect.runPromise(Scope.make())
    Object.assign(environment, variables)
    const forget = () => {
      for (const name of Object.keys(variables)) delete environment[name]
    }
    try {
      const making = grantIn(dataFolder, MAKES_DATABASES).pipe(
        Effect.andThen(EmbeddedPostgres.make({ dataFolder })),
        Scope.provide(scope)
      )
      return new Server(await Effect.runPromise(making), scope, forget)
    } catch (error) {
      forget()
      throw error
    }
  }

  /** Creates a database, empty or as a copy of an unused one; returns its address on this port. */
  async createDatabase(name: string, port: number = this.port, template?: string): Promise<string> {
    const copied = template === undefined ? "" : ` TEMPLATE ${template}`
    await this.query((client) => client.query(`CREATE DATABASE ${name}${copied}`))
    return this.url(port, name)
  }

  /** Returns the address on a port of this machine: the server's own, or a proxy's. */
  url(port: number = this.port, database?: string): string {
    const url = new URL(Redacted.value(this.#server.url))
    url.port = String(port)
    url.searchParams.delete("host")
    if (database !== undefined) url.pathname = `/${database}`
    return url.href
  }

  /** Runs statements on a new connection; waits for a server that is restarting. */
  async query<A>(use: (client: Client) => Promise<A>, database?: string): Promise<A> {
    const client = await this.#connect(this.url(undefined, database))
    try {
      return await use(client)
    } finally {
      await client.end().catch(() => {})
    }
  }

  async #connect(connectionString: string): Promise<Client> {
    for (let triesLeft = CONNECT_TRIES; ; triesLeft--) {
      const client = new Client({ connectionString })
      client.on("error", () => {})
      try {
        await client.connect()
        return client
      } catch (error) {
        if (triesLeft === 0) throw error
        await pause(CONNECT_PAUSE_MILLIS)
      }
    }
  }

  /** Kills the server with all its backends; it restarts by itself. */
  async kill(): Promise<void> {
    killFamily(await Effect.runPromise(this.#server.processId))
  }

  async close(): Promise<void> {
    this.#forget()
    await Effect.runPromise(Scope.close(this.#scope, Exit.void))
  }
}

/** Runs a server during `use`. */
export const withServer = async <A>(
  dataFolder: string,
  use: (server: Server) => Promise<A>,
  variables?: Readonly<Record<string, string>>
): Promise<A> => {
  const server = await Server.start(dataFolder, variables)
  try {
    return await use(server)
  } finally {
    await server.close()
  }
}

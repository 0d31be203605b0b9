/**
 * The runners that the files in `deploy` start, as plain processes: their own commands and variables, with a folder of
 * the test's in the place of those that a machine has for them, and free ports of this one in that of theirs.
 */
import { spawn, type ChildProcess } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import { HttpExchange } from "../support/HttpExchange.ts"
import { KEYS, until, type End } from "../support/TillProcess.ts"
import { composeRunners, dockerfile, environmentFile, interpolated, ROOT, unit } from "./Deployment.ts"
import { specified, valueOf, valuesOf, variablesOf } from "./UnitFile.ts"

export interface Launch {
  readonly name: string
  readonly port: number
  readonly command: ReadonlyArray<string>
  readonly variables: Readonly<Record<string, string>>
  readonly stopSignal: NodeJS.Signals
  /** Tells how the runner is: command and parameters. */
  readonly health?: ReadonlyArray<string>
}

export interface Place {
  /** Everything on disk is in here. */
  readonly folder: string
  readonly databaseUrl: string
  /** Free ones. */
  readonly ports: ReadonlyArray<number>
}

const SECRET = "5".repeat(64)

/** Puts paths of this machine in the place of those that the files name. */
const placed = (text: string, paths: Readonly<Record<string, string>>): string =>
  Object.entries(paths).reduce((text, [from, to]) => text.replaceAll(from, to), text)

const mapped = (variables: Readonly<Record<string, string>>, paths: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, placed(value, paths)]))

/** An instance of till@.service per port. */
export const systemd = ({ databaseUrl, folder, ports }: Place): ReadonlyArray<Launch> => {
  const service = unit("till@.service")
  const credentials = Path.join(folder, "credentials")
  const [credential] = valueOf(service, "Service", "LoadCredential").split(":")
  fs.mkdirSync(credentials)
  fs.writeFileSync(Path.join(credentials, credential!), `${SECRET}\n`, { mode: 0o400 })
  const paths = { "/opt/till": ROOT, "/var/lib/till": Path.join(folder, "state") }
  return ports.map((port): Launch => {
    const specifiers = { i: String(port), d: credentials }
    const own = valuesOf(service, "Service", "Environment").map((value) => specified(value, specifiers))
    const state = specified(valueOf(service, "Service", "StateDirectory"), specifiers)
    fs.mkdirSync(placed(`/var/lib/${state}`, paths), { recursive: true, mode: 0o700 })
    return {
      name: `till@${port}`,
      port,
      command: placed(valueOf(service, "Service", "ExecStart"), paths).split(" "),
      variables: { ...variablesOf(environmentFile()), ...mapped(variablesOf(own), paths), DATABASE_URL: databaseUrl },
      stopSignal: valueOf(service, "Service", "KillSignal") as NodeJS.Signals
    }
  })
}

/** The services of the Compose file that are Till, as its image starts them; as many as there are two ports for. */
export const compose = ({ databaseUrl, folder, ports }: Place): ReadonlyArray<Launch> => {
  const last = (name: string): string => dockerfile().findLast((one) => one.name === name)!.value
  const image = variablesOf(last("ENV").split(" "))
  const secret = Path.join(folder, "secret")
  fs.writeFileSync(secret, `${SECRET}\n`, { mode: 0o400 })
  const runners = composeRunners().slice(0, ports.length >> 1)
  return runners.map(([name, { environment, healthcheck }], index): Launch => {
    const [port, runnerPort] = [ports[2 * index]!, ports[2 * index + 1]!]
    // Nobody makes it here: it is one that a container would have.
    const paths = { "/opt/till": ROOT, "/var/lib/till": Path.join(folder, name), "/run/secrets/till": secret }
    const given = Object.entries(environment).map(([variable, value]) => [
      variable,
      interpolated(value, { POSTGRES_PASSWORD: "password" })
    ])
    const command = [...JSON.parse(last("ENTRYPOINT")), ...JSON.parse(last("CMD"))] as ReadonlyArray<string>
    const [kind, ...health] = healthcheck.test
    if (kind !== "CMD") throw new Error(`health is asked by ${kind}`)
    return {
      name,
      port,
      command: command.map((part) => placed(part, paths)),
      variables: {
        ...mapped({ ...image, ...Object.fromEntries(given) }, paths),
        DATABASE_URL: databaseUrl,
        PORT: String(port),
        TILL_RUNNER_HOST: "127.0.0.1",
        TILL_RUNNER_PORT: String(runnerPort)
      },
      stopSignal: "SIGTERM",
      health: health.map((part) => part.replace(":4242/", `:${port}/`))
    }
  })
}

/** A runner that was started. */
export class Runner {
  readonly launch: Launch
  readonly http: HttpExchange
  readonly ended: Promise<End>
  readonly #child: ChildProcess
  #output = ""
  #end: End | undefined

  constructor(launch: Launch) {
    this.launch = launch
    this.http = new HttpExchange(launch.port, KEYS.secretTest)
    const [program, ...parameters] = launch.command
    this.#child = spawn(program!, parameters, {
      env: {
        PATH: "/usr/bin:/bin",
        NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
        TILL_SK_TEST: KEYS.secretTest,
        ...launch.variables
      },
      stdio: ["ignore", "pipe", "pipe"]
    })
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.on("data", (chunk) => (this.#output += String(chunk)))
    }
    this.ended = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => resolve((this.#end = { code, signal })))
    })
  }

  /** Everything that it has written so far. */
  get output(): string {
    return this.#output
  }

  async ready(): Promise<void> {
    await until(`${this.launch.name} is ready`, async () => {
      if (this.#end !== undefined) throw new Error(`${this.launch.name} has ended: ${this.#output}`)
      const answer = await this.http.request("GET", "/readyz", { key: null }).catch(() => undefined)
      return answer?.status === 200
    })
  }

  /** Stops it as whoever has started it does, and waits until it is gone. */
  stop(): Promise<End> {
    this.#child.kill(this.launch.stopSignal)
    return this.ended
  }

  async destroy(): Promise<void> {
    this.http.close()
    this.#child.kill("SIGKILL")
    await this.ended
  }
}

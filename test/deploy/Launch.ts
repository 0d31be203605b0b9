/**
 * The runners that the files in `deploy` start, as plain processes with the commands and variables of those files.
 * A folder of the test replaces the machine's folders, and free ports replace the files' ports.
 */
import * as fs from "node:fs"
import * as Path from "node:path"
import { KEYS, TillProcess } from "../support/TillProcess.ts"
import { composeRunners, dockerfile, environmentFile, interpolated, ROOT, unit } from "./Deployment.ts"
import { specified, valueOf, valuesOf, variablesOf } from "./UnitFile.ts"

export interface Launch {
  readonly name: string
  readonly port: number
  readonly command: ReadonlyArray<string>
  readonly variables: Readonly<Record<string, string>>
  readonly stopSignal: NodeJS.Signals
  /** The health check: command and parameters. */
  readonly health?: ReadonlyArray<string>
}

export interface Place {
  /** Holds all files of the runners. */
  readonly folder: string
  readonly databaseUrl: string
  /** Free ports. */
  readonly ports: ReadonlyArray<number>
}

const SECRET = "5".repeat(64)

/** Replaces the paths that the files name by paths of this machine. */
const placed = (text: string, paths: Readonly<Record<string, string>>): string =>
  Object.entries(paths).reduce((text, [from, to]) => text.replaceAll(from, to), text)

const mapped = (variables: Readonly<Record<string, string>>, paths: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, placed(value, paths)]))

/** Returns an instance of till@.service per port. */
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

/** Returns the Compose file's Till services as the image starts them, one for every two ports. */
export const compose = ({ databaseUrl, folder, ports }: Place): ReadonlyArray<Launch> => {
  const last = (name: string): string => dockerfile().findLast((one) => one.name === name)!.value
  const image = variablesOf(last("ENV").split(" "))
  const secret = Path.join(folder, "secret")
  fs.writeFileSync(secret, `${SECRET}\n`, { mode: 0o400 })
  const runners = composeRunners().slice(0, ports.length >> 1)
  return runners.map(([name, { environment, healthcheck }], index): Launch => {
    const [port, runnerPort] = [ports[2 * index]!, ports[2 * index + 1]!]
    // The folder is not created: Till does that in a container, too.
    const paths = { "/opt/till": ROOT, "/var/lib/till": Path.join(folder, name), "/run/secrets/till": secret }
    const given = Object.entries(environment).map(([variable, value]) => [
      variable,
      interpolated(value, { POSTGRES_PASSWORD: "password" })
    ])
    const command = [...JSON.parse(last("ENTRYPOINT")), ...JSON.parse(last("CMD"))] as ReadonlyArray<string>
    const [kind, ...health] = healthcheck.test
    if (kind !== "CMD") throw new Error(`The health check is of the kind ${kind}, not CMD`)
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

/** Returns the process of a launch, which is not started yet. Its own variables are all that it gets. */
export const processOf = ({ command, name, port, variables }: Launch, folder: string): TillProcess =>
  new TillProcess({
    name,
    command,
    environment: {
      PATH: "/usr/bin:/bin",
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
      TILL_SK_TEST: KEYS.secretTest,
      ...variables
    },
    variables,
    folder,
    port,
    apiKey: KEYS.secretTest
  })

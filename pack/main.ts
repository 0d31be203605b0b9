/**
 * `npm run pack`: makes the two packages, server and client, as tarballs in `dist`; `npm run pack -- FOLDER client`
 * makes only the client, elsewhere.
 */
import { execFileSync } from "node:child_process"
import * as Path from "node:path"
import { ROOT } from "./Bundle.ts"
import { stageClient } from "./client/Client.ts"
import { stageServer } from "./server/Server.ts"

/** Runs npm in a folder. The npm that runs this script is used, on the Node that it runs on. */
const npm = (folder: string, ...args: ReadonlyArray<string>): string => {
  const script = process.env["npm_execpath"]
  const [command, first] = script === undefined ? ["npm", []] : [process.env["npm_node_execpath"] ?? "node", [script]]
  return execFileSync(command, [...first, ...args], { cwd: folder, encoding: "utf8" })
}

/** Makes the tarball of a staged package. */
const tarballOf = (folder: string, destination: string): string => {
  const [packed] = JSON.parse(npm(folder, "pack", "--json", "--pack-destination", destination)) as [
    { readonly filename: string; readonly size: number; readonly unpackedSize: number }
  ]
  const kilobytes = (bytes: number) => `${Math.ceil(bytes / 1000)} kB`
  return `${Path.join(destination, packed.filename)} (${kilobytes(packed.size)}, installed ${kilobytes(packed.unpackedSize)})`
}

const STAGES = { server: stageServer, client: stageClient }
type Name = keyof typeof STAGES

const isName = (name: string): name is Name => Object.hasOwn(STAGES, name)

const [destination = Path.join(ROOT, "dist"), ...only] = process.argv.slice(2)
const folder = Path.resolve(destination)
const names = only.length === 0 ? (Object.keys(STAGES) as ReadonlyArray<Name>) : only.filter(isName)
await Promise.all(
  names.map(async (name) => {
    const staged = Path.join(folder, name)
    await STAGES[name](staged)
    process.stdout.write(`${tarballOf(staged, folder)}\n`)
  })
)

/** The metrics of docs/metrics.md. */
import * as fs from "node:fs"
import * as Path from "node:path"

export interface Documented {
  readonly type: string
  readonly labels: ReadonlyArray<string>
}

const text = fs.readFileSync(Path.join(import.meta.dirname, "../../docs/metrics.md"), "utf8")

export const documented: ReadonlyMap<string, Documented> = new Map(
  [...text.matchAll(/^\| `(\w+)` +\| (\w+) +\| ([^|]*)\|/gmu)].map(([, name = "", type = "", labels = ""]) => [
    name,
    { type, labels: [...labels.matchAll(/`(\w+)`/gu)].map(([, label]) => label!) }
  ])
)

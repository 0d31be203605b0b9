/** The command `till` in a project that depends on Till. */
import { afterAll, assert, describe, it } from "@effect/vitest"
import { execFileSync, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as Path from "node:path"

const root = Path.resolve(import.meta.dirname, "../..")
const project = fs.mkdtempSync(Path.join(os.tmpdir(), "till-command-"))
afterAll(() => fs.rmSync(project, { recursive: true }))

describe("the command till", () => {
  it("runs on its own Node, with any node on the PATH", () => {
    const { bin, version } = JSON.parse(fs.readFileSync(Path.join(root, "package.json"), "utf8")) as {
      readonly bin: { readonly till: string }
      readonly version: string
    }
    fs.writeFileSync(Path.join(project, "node"), "#!/bin/sh\necho 'an old Node'; exit 1\n", { mode: 0o755 })
    // npm installs a folder as a link, and the command as a link into it.
    fs.symlinkSync(root, Path.join(project, "the package"))
    const command = Path.join(project, "till")
    fs.symlinkSync(Path.join("the package", bin.till), command)
    const PATH = `${project}:/usr/bin:/bin`
    assert.include(execFileSync(command, ["--version"], { cwd: project, encoding: "utf8", env: { PATH } }), version)
  })

  it("writes nothing of its own to standard error", () => {
    const env = { PATH: "/usr/bin:/bin" }
    const { status, stderr } = spawnSync(Path.join(root, "src/cli/till.sh"), ["--version"], { encoding: "utf8", env })
    assert.deepStrictEqual({ status, stderr }, { status: 0, stderr: "" })
  })
})

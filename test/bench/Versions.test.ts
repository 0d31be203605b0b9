import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import * as Versions from "../../bench/compare/Versions.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"

const ROOT = Path.resolve(import.meta.dirname, "../..")
const git = (...parameters: ReadonlyArray<string>) => execFileSync("git", parameters, { cwd: ROOT, encoding: "utf8" })

describe("Versions", () => {
  it.live("writes the commit and the current checkout, and git records neither", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder()
      const before = git("status", "--porcelain") + git("worktree", "list")
      const { other, own } = yield* Versions.lay("HEAD", folder)
      const hash = git("rev-parse", "HEAD").slice(0, 7)
      assert.deepStrictEqual([own.title, other.title], ["this checkout", `HEAD (${hash})`])
      const read = (name: string) => fs.readFileSync(Path.join(folder, name), "utf8")
      // The commit's file byte for byte, also if the checkout has changed it.
      assert.strictEqual(read("other/package.json"), git("show", "HEAD:package.json"))
      assert.strictEqual(read("this/package.json"), fs.readFileSync(Path.join(ROOT, "package.json"), "utf8"))
      assert.isFalse(fs.existsSync(Path.join(folder, "this/.git")))
      for (const [name, version] of [
        ["this", own],
        ["other", other]
      ] as const) {
        assert.deepStrictEqual(version.contender.parameters, [Path.join(folder, name, "src/main.ts"), "serve"])
        assert.isTrue(version.command.node.startsWith(Path.join(folder, name, "node_modules/node-")))
        assert.isTrue(fs.existsSync(Path.join(folder, name, "node_modules/effect/package.json")))
        // Tools, this test's own among them, may change the folder during the copy.
        assert.isFalse(fs.existsSync(Path.join(folder, name, "node_modules/.package-lock.json")))
        assert.include(version.command.options.join(" "), "--max-semi-space-size=")
      }
      assert.strictEqual(git("status", "--porcelain") + git("worktree", "list"), before)
    })
  )

  for (const reference of ["no-such-branch", "--all", "", "HEAD:package.json"]) {
    it.live(`names a reference without a commit: "${reference}"`, () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder()
        const { problem } = yield* Effect.flip(Versions.lay(reference, folder))
        assert.isTrue(problem.startsWith(`"${reference}" names no commit here.`), problem)
        assert.deepStrictEqual(fs.readdirSync(folder), [])
      })
    )
  }
})

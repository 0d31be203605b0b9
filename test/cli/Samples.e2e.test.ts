/** The samples of commands in README and documents: npm gives their flags to the script, and the flags exist. */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as Path from "node:path"
import { COMMAND_NAMES } from "../../src/cli/Summaries.ts"
import { till } from "../support/TillProcess.ts"

const ROOT = Path.join(import.meta.dirname, "../..")

const documents = ["", "docs", "docs/guide", "deploy", "examples", "examples/testing", "bench", "test/faults"].flatMap(
  (folder) =>
    (fs.existsSync(Path.join(ROOT, folder)) ? fs.readdirSync(Path.join(ROOT, folder)) : [])
      .filter((name) => name.endsWith(".md"))
      .map((name) => Path.posix.join(folder, name))
)

interface Sample {
  readonly document: string
  readonly line: string
  readonly script: string
  /** The words behind the script's name, up to the next command of the shell. */
  readonly words: ReadonlyArray<string>
}

/** Lists the runs of npm scripts in a document. */
const samplesIn = (document: string, text: string): ReadonlyArray<Sample> =>
  text.split("\n").flatMap((line) =>
    [...line.matchAll(/npm run (?:-s )?([a-z:]+)([^`&|;#]*)/gu)].map(([, script, rest]) => ({
      document,
      line,
      script: script!,
      words: rest!.split(/\s+/u).filter((word) => word !== "")
    }))
  )

/** Returns a line if npm would take a flag for its own. */
const misled = ({ document, line, words }: Sample): ReadonlyArray<string> => {
  const flag = words.findIndex((word) => /^-{1,2}[a-z]/u.test(word))
  const separator = words.indexOf("--")
  return flag !== -1 && (separator === -1 || separator > flag) ? [`${document}: ${line}`] : []
}

const samples = documents.flatMap((document) => samplesIn(document, fs.readFileSync(Path.join(ROOT, document), "utf8")))
const { scripts } = JSON.parse(fs.readFileSync(Path.join(ROOT, "package.json"), "utf8")) as {
  readonly scripts: Readonly<Record<string, string>>
}

describe("samples of commands", () => {
  it("give flags to the script behind --, and run scripts that exist", () => {
    assert.isAbove(samples.length, 40)
    assert.deepStrictEqual(samples.flatMap(misled), [])
    assert.deepStrictEqual(
      samples.filter(({ script }) => scripts[script] === undefined),
      []
    )
  })

  it("are found wanting without --", () => {
    const [good, bad, plain] = samplesIn("a.md", "npm run -s till -- a --b c\nnpm run -s till a --b\n`npm run till` -x")
    assert.deepStrictEqual(
      [good, bad, plain].map((sample) => misled(sample!).length),
      [0, 1, 0]
    )
  })

  it("name commands and flags of till that exist", { timeout: 240_000 }, async () => {
    const flags = new Map<string, Set<string>>()
    for (const { document, line, script, words } of samples) {
      if (script !== "till") continue
      const [command, second = ""] = words.filter((word) => word !== "--")
      if (command === undefined) continue
      assert.include(COMMAND_NAMES, command, `${document}: ${line}`)
      const path = ["merchants", "keys", "operations", "processor", "processors"].includes(command)
        ? `${command} ${second}`
        : command
      const given = words.filter((word) => /^--[a-z]/u.test(word)).map((word) => word.split("=")[0]!)
      flags.set(path, new Set([...(flags.get(path) ?? []), ...given]))
    }
    assert.isAbove(flags.size, 8)
    for (const [path, given] of flags) {
      const { code, stdout } = await till([...path.split(" "), "--help"], {})
      assert.strictEqual(code, 0, path)
      for (const flag of given) assert.include(stdout, flag, path)
    }
  })
})

/**
 * Links, pipes and folders that another user has put into a folder for backups (semantics operation.files,
 * backups.folder): none is followed, and nothing outside changes. Creating a pipe takes a process, so this is no unit
 * test.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { backUp, checking, outside, grown } from "./Backups.ts"

/** Every name in a backup's folder. */
const NAMES = [
  "lock",
  "lock-journal",
  "owner",
  "manifest.json",
  "unfinished.json",
  "secret",
  "records",
  "records/00000001.zst",
  "records/00000001.zst.part",
  "records/00000002.zst",
  "records/00000002.zst.part"
]

describe("a folder for backups", () => {
  it.effect.prop(
    "with a link, a pipe or a folder in place of a file is refused or replaces it, and nothing outside changes",
    {
      name: Schema.Literals(NAMES),
      planted: Schema.Literals(["file", "folder", "free", "relative", "pipe", "directory"]),
      isFirst: Schema.Boolean
    },
    ({ isFirst, name, planted }) =>
      Effect.gen(function* () {
        const { folder, source } = yield* grown(20)
        const place = outside(yield* temporaryFolder())
        if (!isFirst) yield* backUp(source.storage, { folder, fileBytes: 2000 })
        const path = Path.join(folder, name)
        fs.rmSync(path, { recursive: true, force: true })
        fs.mkdirSync(Path.dirname(path), { recursive: true, mode: 0o700 })
        if (planted === "pipe") spawnSync("mkfifo", [path])
        else if (planted === "directory") fs.mkdirSync(path)
        else if (planted === "relative") fs.symlinkSync(Path.relative(Path.dirname(path), place.file), path)
        else fs.symlinkSync(place[planted], path)
        const before = place.seen()
        yield* source.grow(20)
        const done = yield* Effect.exit(backUp(source.storage, { folder, fileBytes: 2000 }))
        yield* Effect.exit(checking(folder))
        assert.deepStrictEqual(place.seen(), before)
        assert.strictEqual(fs.readFileSync(place.file, "utf8"), "an important file")
        if (Exit.isFailure(done)) {
          const { message } = (yield* Effect.flip(done)) as Error
          assert.notInclude(message, "\n")
          assert.include(message, folder)
        }
      }),
    { arbitrary: { runs: 150, maxShrinks: 5 } }
  )

  const mine = process.geteuid!()
  const OTHERS: Readonly<Record<string, (folder: string) => void>> = {
    "that its group may write to": (folder) => fs.chmodSync(folder, 0o770),
    "that everybody may write to": (folder) => fs.chmodSync(folder, 0o777),
    "that everybody may write to, though not over others' files": (folder) => fs.chmodSync(folder, 0o1777),
    "in a folder that everybody may write to": (folder) => fs.chmodSync(Path.dirname(folder), 0o777),
    ...(mine === 0 && {
      "of somebody else": (folder) => fs.chownSync(folder, 65_534, 65_534),
      "in a folder of somebody else": (folder) => fs.chownSync(Path.dirname(folder), 65_534, 65_534)
    })
  }

  it.effect.each(Object.keys(OTHERS))("%s is refused, empty or not, to write and to read", (name) =>
    Effect.gen(function* () {
      const { folder, source } = yield* grown(10)
      yield* backUp(source.storage, { folder })
      const empty = Path.join(yield* temporaryFolder(), "backup")
      fs.mkdirSync(empty)
      for (const one of [folder, empty]) {
        OTHERS[name]!(one)
        const names = fs.readdirSync(one, { recursive: true })
        const { message } = yield* Effect.flip(backUp(source.storage, { folder: one }))
        assert.match(
          message,
          /is no safe place for a backup: .* (belongs to another user|others may write to)|others may/u
        )
        assert.notInclude(message, "\n")
        assert.deepStrictEqual(fs.readdirSync(one, { recursive: true }), names)
      }
      assert.include((yield* Effect.flip(checking(folder))).message, "is no safe place for a backup: ")
    })
  )

  it.effect.skipIf(mine !== 0)("is refused behind another user's link, and nothing is created at its target", () =>
    Effect.gen(function* () {
      const { source } = yield* grown(5)
      const shared = yield* temporaryFolder()
      fs.chmodSync(shared, 0o1777)
      const link = Path.join(shared, "backups")
      const target = yield* temporaryFolder()
      fs.symlinkSync(target, link)
      fs.lchownSync(link, 65_534, 65_534)
      for (const folder of [link, Path.join(link, "new")]) {
        const { message } = yield* Effect.flip(backUp(source.storage, { folder }))
        assert.include(message, `${link} belongs to another user (65534)`)
      }
      assert.deepStrictEqual(fs.readdirSync(target), [])
    })
  )

  it.effect("is used in a sticky folder, also behind a link of its owner's, and gets mode 0700", () =>
    Effect.gen(function* () {
      const { source } = yield* grown(5)
      const shared = yield* temporaryFolder()
      fs.chmodSync(shared, 0o1777)
      const folder = Path.join(shared, "a", "b")
      fs.mkdirSync(folder, { recursive: true, mode: 0o755 })
      fs.symlinkSync(folder, Path.join(shared, "link"))
      yield* backUp(source.storage, { folder: Path.join(shared, "link") })
      assert.strictEqual(fs.statSync(folder).mode & 0o777, 0o700)
      yield* checking(Path.join(shared, "link"))
    })
  )
})

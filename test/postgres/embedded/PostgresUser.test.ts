/** The modes of folders decide the user that Postgres runs as, and its programs. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { changeOwner, chooseUsers, commandAs, makeOwned, usersOf } from "../../../src/postgres/embedded/PostgresUser.ts"
import { temporaryFolder } from "../../support/TemporaryFolder.ts"

// All parent folders count, and the one for temporary files may be closed to other users.
const folderForAll = temporaryFolder("/tmp")

const OTHER = { userId: 4711, groupId: 4712 }

describe("the user of the embedded Postgres", () => {
  it.effect("gets root's capability to pass through closed folders only if a folder is closed to it", () =>
    Effect.gen(function* () {
      const folder = yield* folderForAll
      const { gid, uid } = fs.statSync(folder)
      const inside = Path.join(folder, "postgres")
      const isDirect = (mode: number, user: typeof OTHER, paths: ReadonlyArray<string>, file: string) => {
        fs.chmodSync(folder, mode)
        const { args, options, ...command } = commandAs(user, paths, file, ["-D", "x"])
        if (command.file === "setpriv") {
          assert.deepStrictEqual(options, {})
          assert.includeMembers([...args], [`--reuid=${user.userId}`, `--regid=${user.groupId}`, "--clear-groups"])
          assert.deepStrictEqual(args.slice(-3), [file, "-D", "x"])
          return false
        }
        assert.deepStrictEqual(
          { args, options, ...command },
          {
            file,
            args: ["-D", "x"],
            options: { uid: user.userId, gid: user.groupId }
          }
        )
        return true
      }
      for (const [mode, user, expected] of [
        [0o711, OTHER, true],
        [0o710, OTHER, false],
        [0o710, { ...OTHER, groupId: gid }, true],
        [0o701, { ...OTHER, groupId: gid }, false],
        [0o700, { ...OTHER, userId: uid }, true],
        [0o611, { ...OTHER, userId: uid }, false]
      ] as const) {
        assert.strictEqual(isDirect(mode, user, [], inside), expected, mode.toString(8))
        assert.strictEqual(isDirect(mode, user, [inside], "/bin/postgres"), expected, mode.toString(8))
      }
      assert.deepStrictEqual(commandAs(undefined, [inside], inside, []), { file: inside, args: [], options: {} })
    })
  )

  it.effect.skipIf(process.geteuid!() !== 0)("is the owner of an existing cluster, but never root", () =>
    Effect.gen(function* () {
      const folder = Path.join(yield* folderForAll, "postgres")
      const { keeper } = yield* chooseUsers(folder)
      assert.isAbove(keeper!.userId, 0)
      fs.mkdirSync(folder)
      assert.deepStrictEqual((yield* chooseUsers(folder)).keeper, keeper)
      yield* makeOwned(folder, OTHER)
      const { gid, mode, uid } = fs.statSync(folder)
      assert.deepStrictEqual([uid, gid, mode & 0o777], [OTHER.userId, OTHER.groupId, 0o700])
      assert.deepStrictEqual((yield* chooseUsers(folder)).keeper, OTHER)
    })
  )

  it.effect.skipIf(process.geteuid!() !== 0)(
    "becomes the owner of a folder and its content, but not of the targets of links",
    () =>
      Effect.gen(function* () {
        const outside = yield* folderForAll
        fs.writeFileSync(Path.join(outside, "file"), "")
        const folder = Path.join(yield* folderForAll, "data")
        fs.mkdirSync(Path.join(folder, "base", "1"), { recursive: true })
        fs.writeFileSync(Path.join(folder, "base", "1", "a"), "")
        fs.symlinkSync(outside, Path.join(folder, "base", "folder"))
        fs.symlinkSync(Path.join(outside, "file"), Path.join(folder, "file"))
        changeOwner(folder, OTHER)
        const owners = (top: string, names: ReadonlyArray<string>) =>
          new Set(names.map((name) => fs.lstatSync(Path.join(top, name)).uid))
        const all = ["", "base", "base/1", "base/1/a", "base/folder", "file"]
        assert.deepStrictEqual(owners(folder, all), new Set([OTHER.userId]))
        assert.deepStrictEqual(owners(outside, ["", "file"]), new Set([0]))
        fs.symlinkSync(outside, Path.join(outside, "link"))
        assert.throws(() => changeOwner(Path.join(outside, "link"), OTHER))
        assert.deepStrictEqual(owners(outside, ["", "file", "link"]), new Set([0]))
      })
  )
})

describe("the users as which root runs Postgres and creates its cluster", () => {
  const nobody = { userId: 65534, groupId: 65534 }
  const linux = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
  const macOS = "nobody:*:-2:-2::/var/empty:/usr/bin/false\nroot:*:0:0::/var/root:/bin/sh\n"

  it("are the machine's user for Postgres", () => {
    const alone = (userId: number, groupId: number) => ({ keeper: { userId, groupId }, maker: { userId, groupId } })
    assert.deepStrictEqual(usersOf(`${linux}postgres:x:70:71::/:/bin/sh\n`), alone(70, 71))
    const macOSWith = `${macOS}_postgres:*:216:216:PostgreSQL Server:/var/empty:/usr/bin/false\n`
    assert.deepStrictEqual(usersOf(macOSWith), alone(216, 216))
    assert.isUndefined(usersOf(macOS))
  })

  it("are an unused number and the user `nobody`, who creates the cluster and does not keep it, without one", () => {
    const free = { keeper: { userId: 61_000, groupId: 61_000 }, maker: nobody }
    assert.deepStrictEqual(usersOf(linux), free)
    assert.deepStrictEqual(usersOf(linux, nobody), free)
    assert.deepStrictEqual(usersOf(linux, { userId: 0, groupId: 0 }), free)
    const next = { userId: 61_002, groupId: 61_002 }
    assert.deepStrictEqual(usersOf(`${linux}a:x:61000:100::/:/bin/sh\nb:x:7:61001::/:/bin/sh\n`)?.keeper, next)
  })

  it("are the owner of an existing cluster", () => {
    assert.deepStrictEqual(usersOf(linux, OTHER), { keeper: OTHER, maker: nobody })
    const named = `${linux}ann:x:${OTHER.userId}:100::/:/bin/sh\n`
    assert.deepStrictEqual(usersOf(named, OTHER), { keeper: OTHER, maker: OTHER })
  })
})

/** The modes of folders decide as which user Postgres runs, and with which binaries. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { choose, commandAs, own, userOf } from "../../src/postgres/PostgresUser.ts"
import { temporaryFolder } from "../support/TemporaryFolder.ts"

// Every folder above counts, and the one for temporary files may be closed to others.
const folderForAll = temporaryFolder("/tmp")

const OTHER = { userId: 4711, groupId: 4712 }

describe("the user of the embedded Postgres", () => {
  it.effect("gets root's way through closed folders along only where one is closed to it", () =>
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

  it.effect.skipIf(process.geteuid!() !== 0)("is whoever has the cluster already, and root never", () =>
    Effect.gen(function* () {
      const folder = Path.join(yield* folderForAll, "postgres")
      const chosen = yield* choose(folder)
      assert.isAbove(chosen!.userId, 0)
      fs.mkdirSync(folder)
      assert.deepStrictEqual(yield* choose(folder), chosen)
      yield* own(folder, OTHER)
      const { gid, mode, uid } = fs.statSync(folder)
      assert.deepStrictEqual([uid, gid, mode & 0o777], [OTHER.userId, OTHER.groupId, 0o700])
      assert.deepStrictEqual(yield* choose(folder), OTHER)
    })
  )
})

describe("the user that root runs Postgres as", () => {
  const linux = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
  const macOS = "nobody:*:-2:-2::/var/empty:/usr/bin/false\nroot:*:0:0::/var/root:/bin/sh\n"

  it("is the one that the machine has for Postgres, else nobody", () => {
    assert.deepStrictEqual(userOf(linux), { userId: 65534, groupId: 65534 })
    assert.deepStrictEqual(userOf(`${linux}postgres:x:70:71::/:/bin/sh\n`), { userId: 70, groupId: 71 })
    assert.deepStrictEqual(userOf(`${macOS}_postgres:*:216:216:PostgreSQL Server:/var/empty:/usr/bin/false\n`), {
      userId: 216,
      groupId: 216
    })
    assert.isUndefined(userOf(macOS))
  })
})

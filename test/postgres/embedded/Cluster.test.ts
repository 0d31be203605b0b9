/** Messages about a Postgres that cannot be run or has failed. */
import { assert, describe, it } from "@effect/vitest"
import { cannotRun, startFailure } from "../../../src/postgres/embedded/Cluster.ts"

describe("a failure of the embedded Postgres", () => {
  it("is described by the last error line of its output", () => {
    const outputs = {
      "LOG:  a\nFATAL:  first\nFATAL:  second\nLOG:  shut down\n": "It: second.",
      "initdb: error: no\n": "It: no.",
      "PANIC:  lost\n\n": "It: lost.",
      "one\ntwo\n\n": "It: two.",
      " \n": "It: it said nothing."
    }
    for (const [output, message] of Object.entries(outputs)) {
      const failure = startFailure("It", output)
      assert.deepStrictEqual([failure.reason, failure.message], ["StartFailed", message])
    }
  })

  it("concerns the folder, if its disk is full", () => {
    for (const cause of ["No space left on device", "Disk quota exceeded"]) {
      const failure = startFailure("It", `FATAL:  could not write to file "pg_wal": ${cause}\nLOG:  shut down\n`)
      assert.strictEqual(failure.reason, "FolderUnusable")
      assert.strictEqual(failure.message, "The disk of the data folder is full: no space left on the device.")
    }
  })

  it("names the program that root needs, if that is missing", () => {
    const failing = (file: string, code: string) =>
      cannotRun({ file, args: [], options: {} }, Object.assign(new Error("spawn"), { code })).message
    assert.include(failing("setpriv", "ENOENT"), "without the program setpriv (util-linux): install it")
    assert.strictEqual(failing("setpriv", "EMFILE"), "Postgres cannot be run: too many open files.")
    assert.strictEqual(failing("postgres", "ENOENT"), "Postgres cannot be run: spawn.")
    assert.strictEqual(failing("postgres", "EACCES"), "Postgres cannot be run: permission denied.")
  })
})

import { Effect, type Scope } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as Path from "node:path"

/** A folder that is removed with the scope, by its real path. */
export const temporaryFolder = (within: string = os.tmpdir()): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => fs.realpathSync(fs.mkdtempSync(Path.join(within, "till-test-")))),
    (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }))
  )

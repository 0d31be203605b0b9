/**
 * Follows the documents of the installation's account in every process, within two seconds of a change: the process
 * that serves the account is notified, and another process is notified or reads once a second.
 */
import { Effect, Exit, Latch, type Scope } from "effect"
import type { Unavailable } from "../../engine/Accounts.ts"
import type { Kind } from "../../engine/log/Document.ts"
import * as Loop from "../../engine/process/Loop.ts"
import { Placement } from "../../engine/process/Placement.ts"
import { CommitFeed } from "../../engine/views/CommitFeed.ts"
import { INSTALLATION } from "./AccountIds.ts"

/** Pause between two reads in a process that does not serve the installation's account. */
const POLL_MILLIS = 1000

/** Calls `read` at once, and after each change of a document of the kind, until the scope closes. */
export const follow = Effect.fnUntraced(function* (
  kind: Pick<Kind<never, never>, "name">,
  read: Effect.Effect<unknown, Unavailable>
): Effect.fn.Return<void, never, CommitFeed | Placement | Scope.Scope> {
  const placement = yield* Placement
  const changed = Latch.makeUnsafe(true)
  const open = () => void changed.openUnsafe()
  const feed = yield* CommitFeed
  yield* feed.watch(INSTALLATION, (kinds) => (kinds.has(kind.name) ? open() : undefined))
  yield* placement.listen({ onChanged: (account) => (account === INSTALLATION ? open() : undefined) })
  const step = Effect.gen(function* () {
    const isNotified = placement.held() === null || placement.isHere(INSTALLATION)
    yield* isNotified ? changed.await : Effect.timeoutOption(changed.await, POLL_MILLIS)
    changed.closeUnsafe()
    // The feed publishes a record just before it counts as durable: a read within the same turn would miss it.
    yield* Effect.yieldNow
    if (Exit.isSuccess(yield* Effect.exit(read))) return
    // The account moves, or its storage does not answer: the next read brings the change.
    yield* Effect.sleep(POLL_MILLIS)
    open()
  })
  yield* Effect.forkScoped(Loop.forever(`following of ${kind.name}`, step))
})

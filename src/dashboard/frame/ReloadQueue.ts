/**
 * Limits how often open pages reload after a change: one at a time with a pause in between, so that the cost stays
 * small with any number of open pages. Five hundred pages that watch the same account reload within seconds of one
 * another, and more slowly while the process is busy. Accounts take turns, so a merchant with many open pages does not
 * delay the others.
 */
import { Effect, Latch, type Scope } from "effect"
import type { AccountId } from "../../engine/log/Document.ts"
import { measureUtilisation } from "../../engine/process/EventLoop.ts"
import * as Loop from "../../engine/process/Loop.ts"

/** Pause between two reloads. */
const PAUSE_MILLIS = 20
/** Pause while the process is busy. */
const BUSY_PAUSE_MILLIS = 400
/** Event-loop utilisation above which the process counts as busy. */
const BUSY_SHARE = 0.8
/** Shortest time over which the event-loop utilisation is measured, in milliseconds. */
const MEASURED_MILLIS_MIN = 250

export class ReloadQueue {
  /** Waiting pages by account. Accounts are in the order of their turns, pages in the order of their requests. */
  readonly #waiting = new Map<AccountId, Set<() => void>>()
  readonly #work = Latch.makeUnsafe(false)

  /** Calls `go` once when its turn comes. A page that waits already keeps its place. */
  enqueue(account: AccountId, go: () => void): void {
    const others = this.#waiting.get(account)
    if (others === undefined) this.#waiting.set(account, new Set([go]))
    else others.add(go)
    this.#work.openUnsafe()
  }

  remove(account: AccountId, go: () => void): void {
    const others = this.#waiting.get(account)
    if (others?.delete(go) === true && others.size === 0) this.#waiting.delete(account)
  }

  /** Gives the turns until the scope closes. */
  start(shareNow: () => number = measureUtilisation(MEASURED_MILLIS_MIN)): Effect.Effect<void, never, Scope.Scope> {
    const turn = Effect.gen({ self: this }, function* () {
      yield* this.#work.await
      if (!this.#reloadNext()) return this.#work.closeUnsafe()
      return yield* Effect.sleep(shareNow() > BUSY_SHARE ? BUSY_PAUSE_MILLIS : PAUSE_MILLIS)
    })
    return Effect.asVoid(Effect.forkScoped(Loop.forever("reloading of open pages", turn)))
  }

  /** Calls the first page of the first account; false if no page waits. */
  #reloadNext(): boolean {
    const [first] = this.#waiting
    if (first === undefined) return false
    const [account, pages] = first
    const [go] = pages
    this.#waiting.delete(account)
    pages.delete(go!)
    if (pages.size > 0) this.#waiting.set(account, pages)
    go!()
    return true
  }
}

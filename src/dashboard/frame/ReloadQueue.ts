/**
 * Limits how often open pages reload after a change: one at a time with a pause in between, so that the cost stays
 * small with any number of open pages. Five hundred pages that watch the same account reload within seconds of one
 * another, and more slowly while the process is busy. Accounts take turns, so a merchant with many open pages does not
 * delay the others.
 */
import { performance } from "node:perf_hooks"
import type { AccountId } from "../../engine/log/Document.ts"
import { measureUtilisation } from "../../engine/process/EventLoop.ts"

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
  readonly #shareNow: () => number
  #timer: NodeJS.Timeout | undefined
  #last = Number.NEGATIVE_INFINITY

  constructor(shareNow: () => number = measureUtilisation(MEASURED_MILLIS_MIN)) {
    this.#shareNow = shareNow
  }

  /** Calls `go` once when its turn comes. A page that waits already keeps its place. */
  enqueue(account: AccountId, go: () => void): void {
    const others = this.#waiting.get(account)
    if (others === undefined) this.#waiting.set(account, new Set([go]))
    else others.add(go)
    this.#arm()
  }

  remove(account: AccountId, go: () => void): void {
    const others = this.#waiting.get(account)
    if (others?.delete(go) === true && others.size === 0) this.#waiting.delete(account)
  }

  #arm(): void {
    if (this.#timer !== undefined) return
    const pause = this.#shareNow() > BUSY_SHARE ? BUSY_PAUSE_MILLIS : PAUSE_MILLIS
    this.#timer = setTimeout(() => this.#reloadNext(), Math.max(0, this.#last + pause - performance.now()))
  }

  #reloadNext(): void {
    this.#timer = undefined
    const [first] = this.#waiting
    if (first === undefined) return
    const [account, pages] = first
    const [go] = pages
    this.#waiting.delete(account)
    pages.delete(go!)
    if (pages.size > 0) this.#waiting.set(account, pages)
    this.#last = performance.now()
    go!()
    if (this.#waiting.size > 0) this.#arm()
  }
}

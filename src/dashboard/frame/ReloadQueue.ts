/**
 * When open pages may load themselves again: one after the other, with a pause between two of them, so that however
 * many are open, what they cost stays small. Five hundred who all see the same change see it within seconds of one
 * another, and later while the process has hardly time for them. Accounts take turns as well: a merchant who has many
 * pages open makes no other one wait for them.
 */
import { performance } from "node:perf_hooks"
import type { AccountId } from "../../engine/log/Document.ts"
import { measureUtilisation } from "../../engine/process/EventLoop.ts"

/** Between two pages, in milliseconds. */
const PAUSE_MILLIS = 20
/** The same while the process is busy: the pages of all people take a small part of it. */
const BUSY_PAUSE_MILLIS = 400
/** An event loop that works for a larger share of the time is busy. */
const BUSY_SHARE = 0.8
/** Shortest time over which the event-loop utilisation is measured, in milliseconds. */
const MEASURED_MILLIS_MIN = 250

export class ReloadQueue {
  /** Whoever waits, by account: the account whose turn it is first, and of each whoever came first. */
  readonly #waiting = new Map<AccountId, Set<() => void>>()
  readonly #shareNow: () => number
  #timer: NodeJS.Timeout | undefined
  #last = Number.NEGATIVE_INFINITY

  constructor(shareNow: () => number = measureUtilisation(MEASURED_MILLIS_MIN)) {
    this.#shareNow = shareNow
  }

  /** Calls it once when its turn has come. Whoever waits already keeps its place. */
  ask(account: AccountId, go: () => void): void {
    const others = this.#waiting.get(account)
    if (others === undefined) this.#waiting.set(account, new Set([go]))
    else others.add(go)
    this.#arm()
  }

  forget(account: AccountId, go: () => void): void {
    const others = this.#waiting.get(account)
    if (others?.delete(go) === true && others.size === 0) this.#waiting.delete(account)
  }

  #arm(): void {
    if (this.#timer !== undefined) return
    const pause = this.#shareNow() > BUSY_SHARE ? BUSY_PAUSE_MILLIS : PAUSE_MILLIS
    this.#timer = setTimeout(() => this.#next(), Math.max(0, this.#last + pause - performance.now()))
  }

  #next(): void {
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

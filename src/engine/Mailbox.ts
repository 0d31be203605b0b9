/**
 * What waits for an actor, in the order of its arrival, until the one fiber that takes it.
 *
 * An array instead of a linked list: a link that has grown old keeps every later one, and what hangs on it, alive until
 * the next major garbage collection. Under load that was half of what each minor one had to copy.
 */
import { Effect, Latch } from "effect"

/** Places at the front that may be empty. */
const GAP_MAX = 1024

export class Mailbox<Mail> {
  #mails: Array<Mail | undefined> = []
  /** Index of the next one to take. */
  #next = 0
  #ended = false
  readonly #filled = Latch.makeUnsafe(false)

  /** Waits for the next one. Ends its fiber once the mailbox has ended. */
  readonly take: Effect.Effect<Mail> = Effect.flatMap(this.#filled.await, () =>
    this.#ended ? Effect.interrupt : Effect.succeed(this.#takeNext())
  )

  offer(mail: Mail): void {
    this.#mails.push(mail)
    this.#filled.openUnsafe()
  }

  /** Gives back what nobody has taken; nobody will take anything any more. */
  end(): ReadonlyArray<Mail> {
    const left = this.#mails.slice(this.#next) as Array<Mail>
    this.#mails = []
    this.#ended = true
    this.#filled.openUnsafe()
    return left
  }

  #takeNext(): Mail {
    const mail = this.#mails[this.#next]!
    this.#mails[this.#next++] = undefined
    if (this.#next === this.#mails.length) {
      this.#mails = []
      this.#next = 0
      this.#filled.closeUnsafe()
    } else if (this.#next > GAP_MAX) {
      this.#mails = this.#mails.slice(this.#next)
      this.#next = 0
    }
    return mail
  }
}

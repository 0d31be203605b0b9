/** What the judge finds. */

/** Something acknowledged is gone; something was done twice, or unasked; an answer is not true. */
export type Kind = "lost" | "doubled" | "wrong"

export interface Finding {
  readonly kind: Kind
  readonly text: string
}

/** Findings by what they are about: several symptoms of one thing count once. */
export class Findings {
  readonly #bySubject = new Map<string, Finding>()

  add(kind: Kind, subject: string, text: string): void {
    if (!this.#bySubject.has(subject)) this.#bySubject.set(subject, { kind, text: text.slice(0, 1500) })
  }

  get all(): ReadonlyArray<Finding> {
    return [...this.#bySubject.values()]
  }

  count(kind: Kind): number {
    return this.all.filter((finding) => finding.kind === kind).length
  }
}

/** The judge's findings. */

/** Something acknowledged is lost; something was done twice, or without a request; an answer is not true. */
export type Kind = "lost" | "doubled" | "wrong"

export interface Finding {
  readonly kind: Kind
  readonly text: string
}

/** Findings by their subject: several symptoms of one thing count once. */
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

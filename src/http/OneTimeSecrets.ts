/**
 * Secrets in an answer. They are kept beside the object that they belong to, so that no document contains them, and the
 * code that writes the answer decides how they are stored.
 */

/**
 * The answer to a repeated request: the object alone, or the whole first answer, which the journal then stores sealed.
 */
export type Repetition = "object" | "all"

/** A command's answer: an object together with secrets. */
export class Revealed<A extends object, S extends object, R extends Repetition = Repetition> {
  readonly value: A
  readonly secrets: S
  readonly repetition: R

  constructor(value: A, secrets: S, repetition: R) {
    this.value = value
    this.secrets = secrets
    this.repetition = repetition
  }

  /** The object and its secrets, as sent to the client. */
  get shown(): A & S {
    return { ...this.value, ...this.secrets }
  }
}

/**
 * The types of `Revealed` for an answer of type `Shown`. If repetitions get the object alone, the object itself must be
 * of that type.
 */
export type Reveals<Shown> =
  | (Revealed<object, object, "all"> & { readonly shown: Shown })
  | (Revealed<object, object, "object"> & { readonly shown: Shown; readonly value: Shown })

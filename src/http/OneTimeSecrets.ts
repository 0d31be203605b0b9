/**
 * Secrets that an answer shows. They travel beside the object that they belong to, so that neither its document nor
 * anything that is made of it can hold them, and whoever writes the answer says what becomes of them.
 */

/** Whoever repeats a request gets the object alone, or all of the first answer, which the journal then keeps sealed. */
export type Repetition = "object" | "all"

/** The answer of a command that shows an object together with secrets. */
export class Revealed<A extends object, S extends object, R extends Repetition = Repetition> {
  readonly value: A
  readonly secrets: S
  readonly repetition: R

  constructor(value: A, secrets: S, repetition: R) {
    this.value = value
    this.secrets = secrets
    this.repetition = repetition
  }

  /** The object and its secrets, as the client gets them. */
  get shown(): A & S {
    return { ...this.value, ...this.secrets }
  }
}

/**
 * What may be `Revealed` where the contract promises `Shown`; the object alone must do if it is all that repetitions
 * get.
 */
export type Reveals<Shown> =
  | (Revealed<object, object, "all"> & { readonly shown: Shown })
  | (Revealed<object, object, "object"> & { readonly shown: Shown; readonly value: Shown })

/** JSON of the first answer, if it shows more than the journal lets repetitions show. */
export const firstAnswer = (answer: object): string | undefined =>
  answer instanceof Revealed && answer.repetition === "object" ? JSON.stringify(answer.shown) : undefined

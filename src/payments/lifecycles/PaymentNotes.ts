/**
 * Notes of people on payments (semantics dashboard.notes): documents of the payment's account, beside the payment, so
 * that backups, verification and wipes include them and the API's object stays as it is. The payment's label brings
 * their records into its history. A deleted note leaves its page; the journal keeps its record, as of every document.
 */
import { Effect, Schema } from "effect"
import { withoutCardNumbers } from "../../domain/Cards.ts"
import { ParameterInvalid, ResourceMissing } from "../../domain/Errors.ts"
import { PREFIXES } from "../../domain/Identifiers.ts"
import { hasLengthAtMost } from "../../domain/Length.ts"
import { NOTE_LENGTH_MAX, NOTES_MAX, PaymentNote } from "../../domain/PaymentNote.ts"
import type { Person } from "../../domain/Person.ts"
import { secondsOf } from "../../domain/Time.ts"
import { Transaction } from "../../engine/actor/Transaction.ts"
import { findDocument, type Kept, PAYMENT_INTENT } from "../shared/Documents.ts"

export const PAYMENT_NOTE: Kept<PaymentNote> = {
  name: "payment_note",
  shape: { value: PaymentNote },
  prefix: PREFIXES.payment_note,
  labels: ({ payment_intent }) => ({ payment_intent })
}

/** The ids of a payment's notes, oldest first. */
const NotesOf = Schema.Struct({
  /** `<payment>_notes` */
  id: Schema.String,
  notes: Schema.Array(Schema.String)
})
export const NOTES_OF: Kept<typeof NotesOf.Type> = { name: "payment_notes", shape: { value: NotesOf } }

export const notesOfId = (payment: string): string => `${payment}_notes`

const notesOf = Effect.fnUntraced(function* (
  payment: string
): Effect.fn.Return<ReadonlyArray<string>, never, Transaction> {
  const transaction = yield* Transaction
  return (yield* transaction.get(NOTES_OF, notesOfId(payment)))?.value.notes ?? []
})

/** Adds a note to a payment. Fails with `ResourceMissing` without the payment. */
export const add = Effect.fnUntraced(function* (
  author: Pick<Person, "id" | "email">,
  payment: string,
  text: string
): Effect.fn.Return<PaymentNote, ResourceMissing | ParameterInvalid, Transaction> {
  const transaction = yield* Transaction
  yield* findDocument(PAYMENT_INTENT, payment)
  if (text === "" || !hasLengthAtMost(text, NOTE_LENGTH_MAX)) {
    return yield* new ParameterInvalid({ param: "text", rule: `a text of 1 to ${NOTE_LENGTH_MAX} characters` })
  }
  const notes = yield* notesOf(payment)
  if (notes.length >= NOTES_MAX) {
    return yield* new ParameterInvalid({ param: "text", rule: `one of at most ${NOTES_MAX} notes of a payment` })
  }
  const note: PaymentNote = {
    id: transaction.newId(PREFIXES.payment_note),
    object: "payment_note",
    payment_intent: payment,
    text: withoutCardNumbers(text),
    person: author.id,
    email: author.email,
    created: secondsOf(transaction.startedAt)
  }
  transaction.put(PAYMENT_NOTE, note)
  transaction.put(NOTES_OF, { id: notesOfId(payment), notes: [...notes, note.id] })
  return note
})

/** Deletes a note. Fails with `ResourceMissing` if the payment has none of this id. */
export const remove = Effect.fnUntraced(function* (
  payment: string,
  id: string
): Effect.fn.Return<PaymentNote, ResourceMissing, Transaction> {
  const transaction = yield* Transaction
  const note = yield* transaction.get(PAYMENT_NOTE, id)
  if (note?.value.payment_intent !== payment) return yield* new ResourceMissing({ kind: "Note", id, param: "id" })
  transaction.delete(PAYMENT_NOTE, id)
  const notes = (yield* notesOf(payment)).filter((other) => other !== id)
  transaction.put(NOTES_OF, { id: notesOfId(payment), notes })
  return note.value
})

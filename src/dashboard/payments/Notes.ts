/** Notes on a payment (semantics dashboard.notes). The payment's history shows them. */
import { Effect, Layer } from "effect"
import { NOTE_LENGTH_MAX } from "../../domain/PaymentNote.ts"
import type { Child } from "../../html/Html.ts"
import * as PaymentNotes from "../../payments/lifecycles/PaymentNotes.ts"
import { readDocument } from "../../payments/shared/ReadDocument.ts"
import { dialog, type Problem } from "../frame/Form.ts"
import { action, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"
import { mayDeleteNote } from "../history/History.ts"

export const noteDialog = (visit: Visit, payment: string, problem: Problem | null): Child =>
  dialog("Add a note", {
    visit,
    action: `/payments/${payment}/notes`,
    submit: "Add",
    tone: "primary",
    problem,
    content: (fields) =>
      fields.area({
        name: "text",
        label: "Note",
        required: true,
        hint: `For your team only, up to ${NOTE_LENGTH_MAX} characters.`
      })
  })

const PAGE = "/payments/:id"

const addAction = (show: Show) =>
  action({
    name: "payment_note.create",
    right: "see",
    page: PAGE,
    path: `${PAGE}/notes`,
    show,
    notice: "Note added.",
    prepare: ({ person }, { id = "" }, values) => {
      const text = values.get("text") ?? ""
      return Effect.succeed({ entered: { text }, command: PaymentNotes.add(person, id, text) })
    }
  })

const deleteAction = (show: Show) =>
  action({
    name: "payment_note.delete",
    right: "see",
    page: PAGE,
    path: `${PAGE}/notes/:note/delete`,
    show,
    notice: "Note deleted.",
    // A repeated submission finds no note and gets the stored response.
    allows: (visit, { note = "" }) =>
      Effect.map(
        readDocument(visit.account, PaymentNotes.PAYMENT_NOTE, note),
        (found) => found === undefined || mayDeleteNote(visit, found.value.person)
      ),
    prepare: (_, { id = "", note = "" }) =>
      Effect.succeed({ entered: {}, detail: note, command: PaymentNotes.remove(id, note) })
  })

export const noteActions = (show: Show) => Layer.merge(addAction(show), deleteAction(show))

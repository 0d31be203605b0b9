/** Attempts to sign in as somebody, newest first. */
import type { SignIn } from "../../domain/Person.ts"
import type { Html } from "../../pages/Html.ts"
import { html } from "../../pages/Html.ts"
import { table } from "./Table.ts"
import { badge, time } from "./Values.ts"

export const signInTable = (rows: ReadonlyArray<SignIn>): Html =>
  table({
    caption: "Attempts to sign in, newest first",
    columns: [
      { name: "When", cell: ({ created }) => time(created) },
      { name: "Outcome", cell: ({ succeeded }) => (succeeded ? badge("succeeded") : badge("refused", "bad")) },
      { name: "By", cell: ({ means }) => means },
      { name: "From", cell: ({ address, agent }) => html`${address} <small>${agent}</small>`, wide: true }
    ],
    rows,
    empty: "Never."
  })

/** Progress of work on whole journals. Without a provided service it is not shown. */
import { Context } from "effect"

export interface ProgressShape {
  readonly begin: (records: number) => void
  /** Adds records that are done; negative if records have to be done again. */
  readonly advance: (records: number) => void
}

export const Progress = Context.Reference<ProgressShape>("till/engine/Progress", {
  defaultValue: () => ({ begin: () => {}, advance: () => {} })
})

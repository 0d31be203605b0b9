/** Progress of work on whole journals, for whoever watches it. Nobody does unless this is provided. */
import { Context } from "effect"

export interface ProgressShape {
  /** So many records are to be worked on. */
  readonly begin: (records: number) => void
  /** So many more are done; fewer, if some have to be done again. */
  readonly advance: (records: number) => void
}

export const Progress = Context.Reference<ProgressShape>("till/engine/Progress", {
  defaultValue: () => ({ begin: () => {}, advance: () => {} })
})

/** What the pages are told about the installation. */
import { Context } from "effect"

export interface PagesConfigShape {
  /**
   * The origins whose pages may show an embedded checkout in a frame. Null if nobody has said: in test mode all of them,
   * in live mode none.
   */
  readonly embedOrigins: ReadonlySet<string> | null
}

export const PagesConfig: Context.Reference<PagesConfigShape> = Context.Reference<PagesConfigShape>(
  "till/pages/PagesConfig",
  { defaultValue: () => ({ embedOrigins: null }) }
)

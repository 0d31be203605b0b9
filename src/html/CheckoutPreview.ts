/** The checkout page as an example, for the preview of a brand on the dashboard. Payers' pages implement it. */
import { Context } from "effect"
import type { Brand } from "./Brand.ts"
import type { Html } from "./Html.ts"

export interface CheckoutPreviewShape {
  /** `depth` is the number of folders between Till's base address and the page. */
  readonly render: (brand: Brand, depth: number) => Html
}

export class CheckoutPreview extends Context.Service<CheckoutPreview, CheckoutPreviewShape>()(
  "till/html/CheckoutPreview"
) {}

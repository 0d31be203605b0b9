/** The test-mode panel at the top of a page: no money moves, and the test cards to try (semantics test_cards.*). */
import { outcomeOf, TEST_CARDS, type TestCard } from "../domain/TestCards.ts"
import { brandName } from "./CardBrands.ts"
import { html, type Html } from "./Html.ts"
import type { Translation } from "./Translation.ts"

/** `4242 4242 4242 4242`, `3782 822463 10005`. */
const groupedNumber = (number: string): string =>
  /^3[47]/.test(number) ? number.replace(/^(.{4})(.{6})(.*)$/, "$1 $2 $3") : number.replaceAll(/(.{4})(?=.)/g, "$1 ")

const row = (testCard: TestCard): Html => {
  const number = groupedNumber(testCard.numbers[0])
  return html`<li>
    <button type="button" class="test-card" data-number="${number}">
      <code>${number}</code> <span>${brandName(testCard.brand)}, ${outcomeOf(testCard)}</span>
    </button>
  </li>`
}

/** The plain success first, then declines and other outcomes, then further cards that succeed. */
const [plain, ...others] = TEST_CARDS
const isPlain = ({ refunds, result }: TestCard): boolean => result.kind === "approves" && refunds === "succeed"
const rows = [plain!, ...others.filter((one) => !isPlain(one)), ...others.filter(isPlain)].map(row)

/**
 * Cards fill in the form by a click with the script; without it they can be copied. Their outcomes are the API's terms,
 * in English.
 */
export const testModePanel = (withCards: boolean, translation: Translation): Html =>
  html`<aside class="test-mode" aria-label="${translation.text("test.title")}">
    <p><strong>${translation.text("test.title")}.</strong> ${translation.text("test.text")}</p>
    ${
      withCards &&
      html`<details>
        <summary>${translation.text("test.cards")}</summary>
        <p>${translation.text("test.choose")}</p>
        <ul lang="en" dir="ltr">
          ${rows}
        </ul>
      </details>`
    }
  </aside>`

/** The page of test cards, which are not in the contract: there, their IDs and numbers are like any others. */
import { outcomeOf, TEST_CARDS, type TestCard } from "../../domain/TestCards.ts"
import { html } from "../../html/Html.ts"
import { type Page, prose } from "./Frame.ts"

const PATH = "/docs/test-cards"

const INTRODUCTION =
  "In test mode, use one of these as `payment_method`, or its number with any future expiry date and any security code. " +
  "Any other number is declined."

const OUTCOMES = [
  "A decline is a 402 in response to the confirmation.",
  "A card that requires authentication leaves the PaymentIntent in `requires_action`.",
  "A slow card leaves it in `processing` for two seconds of the test clock; pending refunds and refunds that fail later " +
    "take as long.",
  "If the processor does not respond, the request gets a 500, nothing has changed, and you can repeat it."
]

export const testCardsPage: Page = {
  path: PATH,
  title: "Test cards",
  section: null,
  content: (link) =>
    html`<h1>Test cards</h1>
      <p class="lead">${prose(INTRODUCTION)}</p>
      <div class="scroll" tabindex="0" role="group" aria-label="Test cards">
        <table>
          <thead>
            <tr>
              <th>Payment method</th>
              <th>Number</th>
              <th>Outcome</th>
            </tr>
          </thead>
          <tbody>
            ${TEST_CARDS.map(
              (card) =>
                html`<tr>
                  <td>${lines(card.ids)}</td>
                  <td>${lines(card.numbers)}</td>
                  <td>${outcomeOf(card)}</td>
                </tr>`
            )}
          </tbody>
        </table>
      </div>
      <ul>
        ${OUTCOMES.map((outcome) => html`<li>${prose(outcome)}</li>`)}
      </ul>
      <p>The guide <a href="${link("/docs/guide/testing")}">Testing</a> shows them at work.</p>`,
  markdown: () =>
    [
      "# Test cards",
      INTRODUCTION,
      ["| Payment method | Number | Outcome |", "| --- | --- | --- |", ...TEST_CARDS.map(row)].join("\n"),
      OUTCOMES.map((outcome) => `- ${outcome}`).join("\n")
    ].join("\n\n") + "\n",
  entries: [
    {
      title: "Test cards",
      path: PATH,
      text: [INTRODUCTION, ...TEST_CARDS.flatMap(({ ids, numbers }) => [...ids, ...numbers])].join(" ")
    }
  ]
}

const lines = (texts: ReadonlyArray<string>) => texts.map((text) => html`<code>${text}</code><br />`)

const row = (card: TestCard): string => {
  const cells = [card.ids, card.numbers].map((texts) => texts.map((text) => `\`${text}\``).join(", "))
  return `| ${[...cells, outcomeOf(card)].join(" | ")} |`
}

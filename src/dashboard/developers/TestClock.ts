/** The clock of the test environment and its next timers (semantics §8.27). */
import { Effect, Layer } from "effect"
import { Accounts } from "../../engine/Accounts.ts"
import { html } from "../../html/Html.ts"
import * as TestHelpers from "../../payments/TestHelpers.ts"
import { subjectOf } from "../../payments/TimerNames.ts"
import { dialog } from "../frame/Form.ts"
import { table } from "../frame/Table.ts"
import { badge, facts, section, time } from "../frame/Values.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import type { Show } from "../frame/Page.ts"
import { action, Invalid, page } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

const SHOWN_MAX = 25

const outlookOf = ({ account }: Visit) => Accounts.use((accounts) => accounts.outlook(account, SHOWN_MAX))

/** Descriptions of timers. */
const WORDS: Readonly<Record<string, string>> = {
  "payment_intent.settle": "A payment settles",
  "payment_intent.expire_hold": "An authorization expires",
  "refund.settle": "A refund settles",
  "checkout.session.expire": "A checkout session expires",
  "checkout.session.reopen": "A checkout session takes payments again"
}

/** Durations to choose from, in seconds. */
const STEPS: ReadonlyArray<readonly [seconds: string, label: string]> = [
  ["next", "Until the next one has happened"],
  ["3600", "An hour"],
  ["86400", "A day"],
  ["604800", "A week"],
  ["2592000", "30 days"]
]

const show: Show = Effect.fnUntraced(function* (visit, _, problem) {
  // Live mode runs on real time.
  if (visit.livemode) return undefined
  const { clockOffset, now, timers } = yield* outlookOf(visit)
  const advance = dialog("Advance the clock", {
    visit,
    action: "/developers/clock/advance",
    submit: "Advance",
    tone: "primary",
    problem,
    content: (fields) => [
      fields.choice({ name: "step", label: "By", options: STEPS }),
      fields.text({
        name: "seconds",
        label: "Or by seconds",
        inputmode: "numeric",
        hint: "The clock never goes back, but with all data of the environment."
      })
    ]
  })
  return {
    title: "Test clock",
    section: "Developers",
    back: ["/developers", "Developers"],
    aside: [
      clockOffset > 0 ? badge("ahead", "wait") : badge("on time", "good"),
      html`<div class="buttons">${advance}</div>`
    ],
    content: [
      facts([
        ["Now, in the test environment", time(Math.floor(now / 1000))],
        ["Ahead by", clockOffset === 0 ? "nothing" : `${Math.ceil(clockOffset / 1000).toLocaleString("en")} seconds`]
      ]),
      section(
        "Due next",
        table({
          caption: "What is due next, soonest first",
          columns: [
            { name: "What", long: true, cell: ({ name }) => WORDS[name] ?? name },
            { name: "Of", cell: ({ id }) => objectLink(visit, subjectOf(id)) },
            { name: "When", cell: ({ dueAt }) => time(Math.ceil(dueAt / 1000)) }
          ],
          rows: timers,
          empty: "Nothing waits for its time: no session, no authorization and no settlement is open."
        })
      )
    ]
  }
})

const advance = action({
  name: "test_clock.advance",
  right: "build",
  page: "/developers/clock",
  path: "/developers/clock/advance",
  show,
  notice: "The clock is advanced, and what was due has happened.",
  prepare: Effect.fnUntraced(function* (visit, _, values) {
    const [step, entered] = [values.get("step") ?? "", values.get("seconds") ?? ""]
    const asked = entered === "" ? step : entered
    let seconds = Number(asked)
    if (asked === "next") {
      const { now, timers } = yield* outlookOf(visit)
      // A repeated submission would compute another duration. The stored result of the first one applies.
      seconds = Math.max(1, Math.ceil(((timers[0]?.dueAt ?? now) - now) / 1000))
    }
    if (!Number.isSafeInteger(seconds) || seconds < 1) {
      return new Invalid({ seconds: "Enter a whole number of seconds, 1 or more." })
    }
    return {
      entered: { asked },
      detail: `${seconds} seconds`,
      command: TestHelpers.advanceClock({ seconds })
    }
  })
})

export const layer = Layer.merge(page("/developers/clock", "build", show), advance)

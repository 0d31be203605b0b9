/** The clock of the test environment and its next timers (semantics test_helpers.clock). */
import { Effect, Layer } from "effect"
import { Accounts } from "../../engine/Accounts.ts"
import { html } from "../../html/Html.ts"
import * as TestHelpers from "../../payments/TestHelpers.ts"
import { subjectOf } from "../../payments/shared/TimerNames.ts"
import { dialog } from "../frame/Form.ts"
import { table } from "../frame/Table.ts"
import { badge, facts, section, time } from "../frame/Values.ts"
import { objectLink } from "../frame/ObjectLinks.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

const SHOWN_MAX = 25

const outlookOf = ({ account }: Visit) => Accounts.use((accounts) => accounts.outlook(account, SHOWN_MAX))

const WORDS: Readonly<Record<string, string>> = {
  "payment_intent.settle": "A payment settles",
  "payment_intent.expire_hold": "An authorization expires",
  "refund.settle": "A refund settles",
  "checkout.session.expire": "A checkout session expires",
  "checkout.session.reopen": "A checkout session accepts payments again"
}

const STEPS: ReadonlyArray<readonly [seconds: string, label: string]> = [
  ["next", "To the next scheduled event"],
  ["3600", "1 hour"],
  ["86400", "1 day"],
  ["604800", "1 week"],
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
        label: "Or by a number of seconds",
        inputmode: "numeric",
        hint: "The clock cannot go back. Only wiping the test data resets it."
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
        ["Current time", time(Math.floor(now / 1000))],
        ["Ahead by", clockOffset === 0 ? "0 seconds" : `${Math.ceil(clockOffset / 1000).toLocaleString("en")} seconds`]
      ]),
      section(
        "Scheduled",
        table({
          caption: "Scheduled events, soonest first",
          columns: [
            { name: "Event", long: true, cell: ({ name }) => WORDS[name] ?? name },
            { name: "Object", cell: ({ id }) => objectLink(visit, subjectOf(id)) },
            { name: "Due", cell: ({ dueAt }) => time(Math.ceil(dueAt / 1000)) }
          ],
          rows: timers,
          empty: "Nothing is scheduled: there are no open sessions, authorizations or settlements."
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
  notice: "Clock advanced. Everything due until then has happened.",
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

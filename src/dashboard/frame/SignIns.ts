/** Tables of sign-ins and of open sessions, newest first. */
import type { DashboardSession, SignIn } from "../../domain/Person.ts"
import { type Child, html, type Html } from "../../html/Html.ts"
import { table } from "./Table.ts"
import { time } from "./Values.ts"
import type { Visit } from "./Visit.ts"

const BROWSERS = [
  ["Edge", /\bEdg/],
  ["Opera", /\bOPR\//],
  ["Firefox", /\bFirefox\/|\bFxiOS\//],
  ["Chrome", /Chrome\/|\bCriOS\/|\bChromium\//],
  ["Safari", /\bSafari\//]
] as const

const SYSTEMS = [
  ["Android", /\bAndroid\b/],
  ["iPhone", /\biPhone\b/],
  ["iPad", /\biPad\b/],
  ["Windows", /\bWindows\b/],
  ["macOS", /\bMacintosh\b/],
  ["Linux", /\bLinux\b/]
] as const

/** `Firefox on Windows`; for unknown browsers, the user agent itself. */
const browserName = (agent: string): string => {
  const named = (names: typeof BROWSERS | typeof SYSTEMS) => names.find(([, mark]) => mark.test(agent))?.[0]
  const [browser, system] = [named(BROWSERS), named(SYSTEMS)]
  return browser === undefined ? agent : system === undefined ? browser : `${browser} on ${system}`
}

/** `Firefox on Windows 203.0.113.7` */
const originHtml = ({ address, agent }: Pick<SignIn, "address" | "agent">): Html =>
  html`<span title="${agent}">${browserName(agent) || "An unknown browser"}</span> <small>${address}</small>`

/** How a person signed in: `password, app`. */
const meansOf = ({ means, second_means }: SignIn): string =>
  second_means === undefined ? means : `${means}, ${second_means === "app" ? "app" : "recovery code"}`

export const signInTable = (rows: ReadonlyArray<SignIn>): Html =>
  table({
    caption: "Sign-ins, newest first",
    columns: [
      { name: "When", cell: ({ created }) => time(created) },
      { name: "Method", cell: meansOf },
      { name: "From", cell: originHtml, wide: true }
    ],
    rows,
    empty: "None yet."
  })

/** The last use of a session, with its address if that is not the one of the sign-in. */
const lastUseHtml = (visit: Visit, { address, created, id, last_used }: DashboardSession): Child =>
  id === visit.session.id
    ? "now"
    : [
        time(last_used?.at ?? created),
        last_used !== undefined && last_used.address !== address && html` <small>${last_used.address}</small>`
      ]

/** Open sessions; `end` is the form that signs one of them out. */
export const sessionTable = (
  visit: Visit,
  rows: ReadonlyArray<DashboardSession>,
  end: (session: DashboardSession) => Child
): Html =>
  table({
    caption: "Active sessions, newest first",
    columns: [
      { name: "Browser", cell: originHtml },
      { name: "Last used", cell: (session) => lastUseHtml(visit, session) },
      { name: "Signed in", cell: ({ created }) => time(created), wide: true },
      { name: "Expires", cell: ({ expires_at }) => time(expires_at), wide: true },
      { name: "Sign out", align: "end", cell: end }
    ],
    rows,
    empty: "No active sessions."
  })

/** A table of sign-ins, newest first. */
import type { SignIn } from "../../domain/Person.ts"
import { html, type Html } from "../../html/Html.ts"
import { table } from "./Table.ts"
import { time } from "./Values.ts"

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

export const originHtml = ({ address, agent }: Pick<SignIn, "address" | "agent">): Html =>
  html`${address} <small title="${agent}">${browserName(agent)}</small>`

export const signInTable = (rows: ReadonlyArray<SignIn>): Html =>
  table({
    caption: "Sign-ins, newest first",
    columns: [
      { name: "When", cell: ({ created }) => time(created) },
      { name: "Method", cell: ({ means }) => means },
      { name: "From", cell: originHtml, wide: true }
    ],
    rows,
    empty: "None yet."
  })

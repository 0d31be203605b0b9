/** `till open`: opens the dashboard, the documentation, or an object's page in the dashboard. */
import { Console, Effect } from "effect"
import { spawn } from "node:child_process"
import { publicUrlOf, layer as configuration, TillConfig } from "../config.ts"
import { didYouMean } from "./Suggestion.ts"
import { WrongArguments } from "./WrongArguments.ts"

/** An object's ID. */
const ID = /^[a-z]+_[0-9A-Za-z]+$/u

/** Opens an address in the browser of the person at the terminal. Fails silently: the address is printed, too. */
const browse = (url: string): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const command = process.platform === "darwin" ? "open" : "xdg-open"
    const browser = spawn(command, [url], { detached: true, stdio: "ignore" })
    browser.once("error", () => resume(Effect.void))
    browser.once("spawn", () => {
      browser.unref()
      resume(Effect.void)
    })
  })

/** Finds the address of a thing. */
const addressOf = Effect.fnUntraced(function* (what: string, live: boolean) {
  if (what === "dashboard") {
    const { linkFor } = yield* Effect.promise(() => import("./Dashboard.ts"))
    return yield* linkFor({ merchant: null })
  }
  const base = publicUrlOf(yield* Effect.provide(TillConfig, configuration))
  if (what === "docs") return `${base}/docs`
  // The dashboard's search leads to the page of the object.
  if (ID.test(what)) return `${base}/dashboard/${live ? "live" : "test"}/find?query=${what}`
  const suggestion = didYouMean(what, ["dashboard", "docs"]) || "; name dashboard, docs or the ID of an object"
  return yield* new WrongArguments({ message: `there is nothing to open for ${JSON.stringify(what)}${suggestion}` })
})

/** The thing to open. */
export interface OpenOptions {
  readonly what: string
  /** Objects of live mode. */
  readonly live: boolean
  readonly json: boolean
  /** Only prints the address. */
  readonly print: boolean
}

/** Prints an address, and opens it. */
export const open = Effect.fnUntraced(function* ({ json, live, print, what }: OpenOptions) {
  const address = yield* addressOf(what, live)
  yield* Console.log(json ? JSON.stringify({ link: address }) : address)
  if (!print) yield* browse(address)
})

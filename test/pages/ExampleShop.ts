/** The shops of `examples`, each as a process of its own. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import * as Path from "node:path"
import type { PagesServer } from "./PagesServer.ts"

export interface ExampleShop {
  /** `http://localhost:<port>`: to a browser, another site than Till's `127.0.0.1`. */
  readonly url: string
  readonly close: () => Promise<void>
}

const EXAMPLES = Path.join(import.meta.dirname, "../../examples")

/** Starts a shop that sells by a Till. */
export const openExample = async (
  name: "hosted" | "embedded" | "custom",
  { publishableTest, secretTest, url }: PagesServer
): Promise<ExampleShop> => {
  const shop = spawn(process.execPath, [Path.join(EXAMPLES, name, "shop.mjs")], {
    env: { TILL_URL: url, TILL_SK_TEST: secretTest, TILL_PK_TEST: publishableTest, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"]
  })
  const address = await new Promise<string>((resolve, reject) => {
    let said = ""
    shop.stdout.on("data", (chunk) => {
      said += String(chunk)
      const found = /http:\/\/localhost:\d+/.exec(said)?.[0]
      if (found !== undefined) resolve(found)
    })
    shop.once("exit", (code) => reject(new Error(`The shop ${name} has ended with ${code}`)))
  })
  return {
    url: address,
    close: async () => {
      const ended = once(shop, "exit")
      shop.kill()
      await ended
    }
  }
}

/** The commands on Till's home page run as shown (semantics pages.home). */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { exec } from "node:child_process"
import { promisify } from "node:util"
import { tryOut } from "../../src/pages/Home.ts"
import { type MemoryTillWithPages, start } from "../support/MemoryTillWithPages.ts"
import { visit } from "../support/fixtures/CheckoutPages.ts"

let server: MemoryTillWithPages
beforeAll(async () => void (server = await start()))
afterAll(() => server.close())

describe("Till's own address", () => {
  it("pages.home: has commands that create a checkout, with only the key to fill in", async () => {
    const { text } = await visit(`${server.url}/`, { accept: "text/html" })
    const shown = /<pre[^>]*><code>([^]*?)<\/code>/.exec(text)![1]!
    const entities: Readonly<Record<string, string>> = { "&quot;": '"', "&#39;": "'", "&amp;": "&", "&lt;": "<" }
    const commands = shown.replaceAll(/&(?:quot|#39|amp|lt);/g, (entity) => entities[entity]!)
    assert.strictEqual(commands, tryOut(server.url))
    const { stdout } = await promisify(exec)(commands.replace("sk_test_…", server.secretTest))
    const url = /"url":"([^"]+)"/.exec(stdout)![1]!
    const page = await visit(url)
    assert.strictEqual(page.status, 200)
    assert.include(page.text, "House Espresso")
    assert.include(page.text, "2 × $12.00")
  })
})

/** A project can copy the file of `verifyWebhook` alone (semantics webhooks.signature). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import { temporaryFolder } from "../support/TemporaryFolder.ts"

/** The specification's test vector. */
const VECTOR = {
  secret: "whsec_your_secret",
  time: 1_709_913_600,
  body: '{"id":"evt_123","type":"payment_intent.succeeded"}',
  signature: "2ad968208b3f4ecfded3a7607f0df647249560fb9e9febeec80ff784f0276a1e"
}

describe("a webhook", () => {
  it.live("is verified by one file of Till's, without the others", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder()
      const source = Path.resolve(import.meta.dirname, "../../src/client/WebhookVerification.ts")
      fs.copyFileSync(source, Path.join(folder, "verify.ts"))
      const { body, secret, signature, time } = VECTOR
      const options = { body, header: `t=${time},v1=${signature}`, secret, nowMillis: time * 1000 }
      const script = `import("./verify.ts").then((m) => console.log(m.verifyWebhook(${JSON.stringify(options)}).id))`
      assert.strictEqual(execFileSync(process.execPath, ["-e", script], { cwd: folder, encoding: "utf8" }), "evt_123\n")
    })
  )
})

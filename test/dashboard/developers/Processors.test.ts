/** Processors on the dashboard (semantics dashboard.processors, processors.states, processors.credentials). */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import * as Configured from "../../../src/payments/processing/ConfiguredProcessors.ts"
import { type MemoryTillWithPages, start } from "../../support/MemoryTillWithPages.ts"
import { addProcessor, gatewayUrl, makeRoom } from "../../support/fixtures/Processors.ts"
import { formTo, signedIn, type Tab } from "../People.ts"

const SECRET = /whsec_[0-9A-Za-z]{40}/
const LIST = "/dashboard/test/developers/processors"

describe("dashboard.processors: processors", () => {
  let server: MemoryTillWithPages
  let owner: Tab
  beforeAll(async () => {
    server = await start()
    owner = await signedIn(server)
  })
  afterAll(() => server.close())

  const submit = async (path: string, end: string, entered: Readonly<Record<string, string>> = {}) => {
    const { action, values } = formTo(await owner.get(path), end)
    return await owner.post(action, { ...values, ...entered })
  }
  const added = async (url: string) => {
    await makeRoom(server)
    return await submit(LIST, "/add", { url })
  }

  it("start paused, with a generated secret that is shown once and not stored", async () => {
    await makeRoom(server)
    const { action, values } = formTo(await owner.get(LIST), "/add")
    const entered = { ...values, url: "https://gateway.example/till" }
    const made = await owner.post(action, entered)
    const secret = SECRET.exec(made.text)![0]
    const again = await owner.post(action, entered)
    assert.notMatch(again.text, SECRET)
    assert.include(again.text, "already shown")
    const page = await owner.get(`${LIST}/${/prc_\w+/.exec(made.text)![0]}`)
    assert.include(page.text, "paused")
    assert.notMatch(page.text, SECRET)
    assert.notInclude(await server.journalOfAll(), secret.slice("whsec_".length))
  })

  it("show the secret of a roll once, too", async () => {
    const id = await addProcessor(server)
    const rolled = await submit(`${LIST}/${id}`, "/roll")
    assert.match(rolled.text, SECRET)
    assert.notMatch((await owner.get(`${LIST}/${id}`)).text, SECRET)
  })

  it("processors.restored: that are held cannot be resumed, and say how they can, also on the first page", async () => {
    const id = await addProcessor(server)
    const hold = Configured.hold([id], 1_795_000_000_000)
    await Effect.runPromise(Effect.orDie(server.accounts.run(INSTALLATION, hold)))
    const { text } = await owner.get(`${LIST}/${id}`)
    assert.include(text, Configured.mustReconcile(id))
    assert.notInclude(text, `/${id}/resume"`)
    assert.include(text, `/${id}/retire"`)
    assert.include((await owner.get("/dashboard/test")).text, Configured.mustReconcile(id))
  })

  it("are resumed only if their gateway answers with their secret", async () => {
    const id = /prc_\w+/.exec((await added(await gatewayUrl())).text)![0]
    // The gateway has another secret than the generated one.
    const refused = await submit(`${LIST}/${id}`, "/resume")
    assert.strictEqual(refused.status, 400)
    assert.include(refused.text, "The gateway failed the check")
    assert.include(refused.text, "paused")
    const known = await addProcessor(server, false)
    const resumed = await submit(`${LIST}/${known}`, "/resume")
    assert.strictEqual(resumed.status, 200)
    assert.include(resumed.text, "Processor resumed.")
    assert.include(resumed.text, "Acme")
    assert.include((await submit(`${LIST}/${known}`, "/pause")).text, "Processor paused.")
    assert.include((await submit(`${LIST}/${known}`, "/retire")).text, "Processor retired.")
  })

  it("are refused beside another one, and with a URL that is not allowed", async () => {
    await addProcessor(server)
    const beside = await submit(LIST, "/add", { url: "https://gateway.example/" })
    assert.strictEqual(beside.status, 400)
    assert.include(beside.text, "retire the other one first")
    await makeRoom(server)
    for (const url of ["http://gateway.example/", "https://user:password@gateway.example/", "gateway", ""]) {
      const { status, text } = await submit(LIST, "/add", { url })
      assert.strictEqual(status, 400, url)
      assert.include(text, "The URL must")
    }
  })

  it("are for owners only, and belong to one environment", async () => {
    const id = await addProcessor(server)
    for (const role of ["developer", "support"] as const) {
      const tab = await signedIn(server, role)
      for (const path of [LIST, `${LIST}/${id}`, "/dashboard/live/developers/processors"]) {
        assert.strictEqual((await tab.get(path)).status, 403, path)
      }
      assert.strictEqual((await tab.post(`${LIST}/${id}/pause`, {})).status, 403)
    }
    assert.strictEqual((await owner.get(`${LIST}/${id}`)).status, 200)
    assert.strictEqual((await owner.get(`/dashboard/live/developers/processors/${id}`)).status, 404)
    assert.notInclude((await owner.get("/dashboard/live/developers/processors")).text, id)
  })
})

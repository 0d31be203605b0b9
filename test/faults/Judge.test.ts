/**
 * The judge of `npm run faults`: real clients on the real service, and then memories that differ from the answers. A
 * fault of the service and the opposite error in memory look the same to the judge.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type MemoryTill, start } from "../support/MemoryTill.ts"
import { HttpExchange, walk } from "../support/HttpExchange.ts"
import { runSeed } from "../support/Random.ts"
import { mutated, open } from "./Checkout.ts"
import { type Control, CONTROLS, runControl } from "./Controls.ts"
import { Findings, type Kind } from "./Finding.ts"
import { linesOf } from "./History.ts"
import { Judge } from "./Judge.ts"
import { Receiver } from "./Receiver.ts"
import { type Deed, Traffic } from "./Traffic.ts"
import { mkdtempSync, rmSync } from "node:fs"
import * as os from "node:os"
import * as Path from "node:path"

let server: MemoryTill
let exchange: HttpExchange
let receiver: Receiver
let traffic: Traffic

beforeAll(async () => {
  server = await start()
  exchange = new HttpExchange(server.port, server.keys.secretTest)
  receiver = await Receiver.start()
  traffic = new Traffic({ seed: runSeed, exchanges: [exchange] })
  traffic.start()
  await traffic.work(500)
  await traffic.stop()
  await traffic.settle()
  for (const event of await walk(exchange, "/v1/events")) receiver.deliveries.set(event.id, event)
})
afterAll(async () => {
  receiver.close()
  exchange.close()
  await server.close()
})

const judged = async () => {
  const judge = new Judge({ traffic, exchange, receiver })
  await judge.checkAll()
  return judge.findings
}

const done = (f: Deed["operation"]["f"]): Deed => traffic.deeds.find((deed) => deed.operation.f === f)!

const assertSees = async (kind: Kind, pattern: RegExp) => {
  const { all } = await judged()
  const found = all.filter((finding) => finding.kind === kind && pattern.test(finding.text))
  assert.isNotEmpty(found, `TILL_SEED=${runSeed}: ${JSON.stringify(all)}`)
}

describe("the judge", () => {
  it("finds nothing where nothing is wrong", async () => {
    assert.deepStrictEqual((await judged()).all, [], `TILL_SEED=${runSeed}`)
  })

  it("sees that an answer is not the first one", async () => {
    const deed = done("write")
    const answer = deed.answer!
    deed.answer = { ...answer, text: answer.text.replace("cus_", "cus-") }
    await assertSees("wrong", /first 200/)
    deed.answer = answer
  })

  it("finds objects that no answer has shown", async () => {
    const index = traffic.deeds.indexOf(done("pay"))
    const [deed] = traffic.deeds.splice(index, 1)
    const { all } = await judged()
    traffic.deeds.splice(index, 0, deed!)
    const texts = all.filter(({ kind }) => kind === "doubled").map(({ text }) => text)
    assert.isTrue(texts.some((text) => text.includes("no answer has shown it")))
    assert.isTrue(texts.some((text) => text.includes(`events of ${deed!.key}, which no request has sent`)))
    assert.isTrue(texts.some((text) => text.includes("were captured")))
  })

  it("sees a delivery of what did not happen, and one with other data", async () => {
    const [[id, event]] = receiver.deliveries as unknown as [[string, { readonly data: object }]]
    receiver.deliveries.set("evt_none", event)
    receiver.deliveries.set(id, { ...event, data: {} })
    await assertSees("wrong", /evt_none .* was delivered, and there is none/)
    await assertSees("wrong", /was delivered with other data/)
    receiver.deliveries.delete("evt_none")
    receiver.deliveries.set(id, event)
  })

  it("sees that a read showed what was not there", async () => {
    const read = traffic.reads.find(({ id }) => id.startsWith("cus_"))!
    const stale = { ...read.answer, body: { ...read.answer.body, metadata: { value: "-1" } } }
    traffic.reads.push({ ...read, answer: stale })
    await assertSees("wrong", /is not linearizable/)
    traffic.reads.pop()
  })

  it("sees that a capture was done twice", async () => {
    const capture = traffic.deeds.find(({ answer, operation }) => operation.f === "capture" && answer?.status === 200)!
    const twice = { ...capture, invokedAt: performance.now(), answeredAt: performance.now() + 1 }
    traffic.deeds.push(twice)
    await assertSees("wrong", /is not linearizable/)
    traffic.deeds.pop()
  })

  it("writes histories whose operations begin before they end", () => {
    const open = new Set<number>()
    for (const { process, type } of linesOf(traffic)) {
      if (type === "invoke") open.add(process)
      else assert.isTrue(open.delete(process))
    }
    assert.strictEqual(open.size, 0)
  })

  it("sees that what was acknowledged is gone", async () => {
    const deed = traffic.newDeed(0, { f: "pay", amount: 4321 })
    deed.answer = { ...done("pay").answer!, body: { ...done("pay").answer!.body, id: "pi_none" } }
    deed.answeredAt = performance.now()
    const found = (await judged()).all
    assert.deepStrictEqual(
      found.map(({ kind }) => kind),
      ["lost"],
      JSON.stringify(found)
    )
  })
})

describe("the controls", () => {
  it("change lines that are there", () => {
    const folder = mkdtempSync(Path.join(os.tmpdir(), "till-faults-"))
    const checkout = open(Path.join(import.meta.dirname, "../.."))
    for (const [number, { mutation }] of CONTROLS.entries()) {
      assert.doesNotThrow(() => mutated(checkout, Path.join(folder, String(number)), mutation))
    }
    rmSync(folder, { recursive: true })
  })

  it.each([
    [1, 1, true],
    [3, 3, true],
    [4, 3, false]
  ])("that would show the mistake in run %i take %i, each with other choices", async (shownIn, runs, isSeen) => {
    const folder = mkdtempSync(Path.join(os.tmpdir(), "till-faults-"))
    const checkout = open(Path.join(import.meta.dirname, "../.."))
    const seeds: Array<number> = []
    const control: Control = {
      ...CONTROLS[0]!,
      isSeenBy: () => true,
      run: async ({ seed }) => {
        const findings = new Findings()
        if (seeds.push(seed) === shownIn) findings.add("lost", "a payment", "It is lost.")
        return { fault: "power cut", rounds: 1, acknowledged: 1, findings, recoveries: [] }
      }
    }
    const time = new AbortController().signal
    const context = { checkout, folder, seed: 7, patience: 1, times: 1, fault: undefined, time, histories: undefined }
    const result = await runControl(control, { ...context, log: () => {} })
    assert.deepInclude(result, { runs, seen: isSeen ? "lost: It is lost." : undefined })
    assert.deepStrictEqual(seeds, [7, 8, 9].slice(0, runs))
    rmSync(folder, { recursive: true })
  })
})

/**
 * `till erase` and `till purge` as operators use them: a search through all files of the data folder, a later backup
 * and the logs finds nothing of the customer, and a restored older backup has nothing either (semantics erasure.*).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as Path from "node:path"
import { zstdDecompressSync } from "node:zlib"
import { temporaryFolder } from "../support/TemporaryFolder.ts"
import { launchOf, prepareTill, till, TillProcess } from "../support/TillProcess.ts"

type Variables = TillProcess["variables"]

const succeeds = async (args: ReadonlyArray<string>, variables: Variables): Promise<string> => {
  const { code, stderr, stdout } = await till(args, variables)
  assert.strictEqual(code, 0, `${args.join(" ")}: ${stderr}`)
  return stdout
}

/** The files below a folder that contain a text. Files of backups are decompressed. */
const filesWith = (folder: string, text: string): ReadonlyArray<string> =>
  fs
    .readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => fs.statSync(Path.join(folder, name)).isFile())
    .filter((name) => {
      const content = fs.readFileSync(Path.join(folder, name))
      return (name.endsWith(".zst") ? zstdDecompressSync(content) : content).includes(text)
    })

/** Part of every text of the customer. */
const SECRET = "Xq7vJaneZw3"

const makeCustomer = async (server: TillProcess): Promise<string> => {
  const texts = { name: SECRET, description: `${SECRET} x`, metadata: { [SECRET]: SECRET.repeat(40) } }
  const customer = await server.post("/v1/customers", { ...texts, email: `${SECRET}@example.com` })
  await server.post(`/v1/customers/${customer.id}`, { phone: SECRET })
  for (let i = 0; i < 30; i++) {
    await server.post("/v1/payment_intents", {
      amount: 1000 + i,
      currency: "eur",
      customer: customer.id,
      description: `${SECRET} ${i}`,
      metadata: { [SECRET]: SECRET },
      payment_method: "pm_card_visa",
      confirm: true
    })
  }
  return customer.id
}

describe("till erase", () => {
  it.live(
    "erasure.purge, erasure.backups, erasure.restore: leaves nothing in files, later backups and restored ones",
    () =>
      Effect.gen(function* () {
        const server = yield* prepareTill()
        const folder = yield* temporaryFolder()
        const { TILL_DATA_DIR: dataFolder = "", ...others } = server.variables
        const restored = new TillProcess(launchOf(Path.join(folder, "data"), server.port, others))
        const [backup, earlier] = [Path.join(folder, "backup"), Path.join(folder, "earlier")]
        yield* Effect.addFinalizer(() => Effect.promise(() => restored.destroy()))
        yield* Effect.promise(async () => {
          await server.start()
          const id = await makeCustomer(server)
          await succeeds(["backup", backup], server.variables)
          assert.isNotEmpty(filesWith(backup, SECRET))
          fs.cpSync(backup, earlier, { recursive: true })
          const until = new Date().toISOString()

          const done = await succeeds(["erase", id, "--mode", "test"], server.variables)
          assert.include(done, `The data of ${id} is erased.`)
          assert.strictEqual((await server.get(`/v1/customers/${id}`)).erasure, "completed")
          await succeeds(["backup", backup], server.variables)
          assert.deepStrictEqual(filesWith(backup, SECRET), [])
          await server.kill("SIGTERM")
          assert.notInclude(server.stdout + server.stderr, SECRET)
          assert.isNotEmpty(filesWith(dataFolder, SECRET))
          assert.include(await succeeds(["purge"], server.variables), "The files of the database hold no erased data.")
          assert.deepStrictEqual(filesWith(dataFolder, SECRET), [])
          assert.match(await succeeds(["verify"], server.variables), /; data was erased from \d+ records\.\n$/)

          const again = await succeeds(["restore", earlier, "--erasures", backup], restored.variables)
          assert.include(again, "The data of 1 person is erased again. `till purge` removes its remains")
          assert.include(await succeeds(["verify"], restored.variables), "data was erased from")
          assert.isNotEmpty(filesWith(restored.folder, SECRET))
          await succeeds(["purge"], restored.variables)
          assert.deepStrictEqual(filesWith(restored.folder, SECRET), [])
          await restored.start()
          assert.strictEqual((await restored.get(`/v1/customers/${id}`)).erasure, "completed")
          await succeeds(["backup", Path.join(folder, "third")], restored.variables)
          assert.deepStrictEqual(filesWith(Path.join(folder, "third"), SECRET), [])

          // A later backup, restored up to a time at which nothing was erased.
          const cut = { ...restored.variables, TILL_DATA_DIR: Path.join(folder, "cut") }
          await succeeds(["restore", backup, "--until", until], cut)
          assert.include(await succeeds(["verify"], cut), "data was erased from")
        })
      }),
    600_000
  )

  it.live("erasure.request: names what stands against it", () =>
    Effect.gen(function* () {
      const server = yield* prepareTill()
      yield* Effect.promise(async () => {
        await server.start()
        const { id: customer } = await server.post("/v1/customers", { name: SECRET })
        const sale = { amount: 1000, currency: "eur", customer, payment_method: "pm_card_visa", confirm: true }
        const { id } = await server.post("/v1/payment_intents", { ...sale, capture_method: "manual" })
        const refused = async (args: ReadonlyArray<string>, line: string) => {
          const { code, stderr } = await till(["erase", ...args], server.variables)
          assert.deepStrictEqual({ code, stderr }, { code: 1, stderr: `till: ${line}\n` })
        }
        const inProgress = "is in progress: capture or cancel it, or wait for its end."
        await refused([customer, "--mode", "test"], `The payment ${id} of this customer ${inProgress}`)
        const { merchant_id: merchant } = await server.get(`/v1/payment_intents/${id}`)
        await refused([customer], `The merchant ${merchant} has no customer ${customer} in live mode.`)
        await server.post(`/v1/payment_intents/${id}/cancel`, {})
        await succeeds(["erase", customer, "--mode", "test", "--json"], server.variables)
        await server.kill("SIGTERM")
        await refused([customer], "Till is not running here. Start it with `till serve`, then run this command again.")
      })
    })
  )
})

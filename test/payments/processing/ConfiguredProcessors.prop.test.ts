/** The lifecycle of configured processors (semantics processors.states, processors.credentials). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Redacted, Schema } from "effect"
import { type ProcessorStatus, STATUS_AFTER } from "../../../src/domain/Processor.ts"
import { isSecret } from "../../../src/domain/StandardWebhooks.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import * as Configured from "../../../src/payments/processing/ConfiguredProcessors.ts"
import * as Merchants from "../../../src/payments/merchants/Merchants.ts"
import { MemoryAccount } from "../../support/MemoryAccount.ts"

const SECRET = Redacted.make(`whsec_${Buffer.alloc(32, 7).toString("base64")}`)
const OTHER = Redacted.make(`whsec_${Buffer.alloc(32, 8).toString("base64")}`)
const PROFILE = { name: "Acme", currencies: null, fields_url: null }
const URL = "https://gateway.example/till"

const installation = Effect.gen(function* () {
  const account = new MemoryAccount(INSTALLATION)
  const { id } = yield* account.run(Merchants.create("Shop"), null)
  return { account, merchant: id }
})

const newOf = (merchant: string, part: Partial<Configured.NewProcessor> = {}): Configured.NewProcessor => ({
  merchant,
  livemode: false,
  kind: "http",
  url: URL,
  secret: SECRET,
  profile: PROFILE,
  ...part
})

const secretsAt = (account: MemoryAccount, id: string, now: number) => {
  const document = account.documents.get(id) as unknown as Configured.ProcessorDocument
  return Configured.secretsOf(account.config, document, now).map((secret) => Redacted.value(secret))
}

describe("processors.states: a processor", () => {
  it.effect("is active after a check, and paused without one", () =>
    Effect.gen(function* () {
      const { account, merchant } = yield* installation
      const { value } = yield* account.run(Configured.add(newOf(merchant)), null)
      assert.deepInclude(value, { status: "active", profile: PROFILE, merchant_id: merchant, livemode: false })
      const live = yield* account.run(Configured.add(newOf(merchant, { livemode: true, profile: null })), null)
      assert.deepInclude(live.value, { status: "paused", profile: null, livemode: true })
    })
  )

  it.effect("of a merchant that does not exist is refused", () =>
    Effect.gen(function* () {
      const { account } = yield* installation
      const failure = yield* Effect.flip(account.run(Configured.add(newOf("mer_x")), null))
      assert.strictEqual(failure.message, "There is no merchant mer_x.")
    })
  )

  const Step = Schema.Literals(["add", "pause", "resume", "retire"])
  const Program = Schema.Array(
    Schema.Struct({ step: Step, of: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 })) })
  ).check(Schema.isMaxLength(12))

  it.effect.prop("is the only one of its mode that is active or paused, whatever happens", [Program], ([program]) =>
    Effect.gen(function* () {
      const { account, merchant } = yield* installation
      const model = new Map<string, ProcessorStatus>()
      const isFree = () => [...model.values()].every((status) => status === "retiring")
      for (const { of, step } of program) {
        if (step === "add") {
          const added = yield* Effect.exit(account.run(Configured.add(newOf(merchant)), null))
          assert.strictEqual(Exit.isSuccess(added), isFree())
          if (Exit.isSuccess(added)) model.set(added.value.value.id, "active")
          continue
        }
        const id = [...model.keys()][of] ?? "prc_missing"
        const status = model.get(id)
        const isAllowed = {
          pause: status === "active",
          resume: status === "paused" || (status === "retiring" && isFree()),
          retire: status === "active" || status === "paused"
        }[step]
        const taken = yield* Effect.exit(account.run(Configured.take(id, step), null))
        assert.strictEqual(Exit.isSuccess(taken), isAllowed, `${step} of a ${status} one`)
        if (isAllowed) model.set(id, STATUS_AFTER[step])
        for (const [known, expected] of model) {
          assert.strictEqual(account.value(Configured.PROCESSOR, known)?.status, expected)
        }
      }
    })
  )

  it.effect("of another account is not found", () =>
    Effect.gen(function* () {
      const { account, merchant } = yield* installation
      const { value } = yield* account.run(Configured.add(newOf(merchant)), null)
      const failure = yield* Effect.flip(account.run(Configured.find(value.id, `${merchant}:live`), null))
      assert.strictEqual(failure.message, `There is no processor ${value.id}.`)
    })
  )
})

describe("processors.credentials: a secret", () => {
  it.effect("is stored sealed, and opens for its processor only", () =>
    Effect.gen(function* () {
      const { account, merchant } = yield* installation
      const { value } = yield* account.run(Configured.add(newOf(merchant)), null)
      assert.notInclude(account.text, Redacted.value(SECRET).slice(6))
      assert.deepStrictEqual(secretsAt(account, value.id, 0), [Redacted.value(SECRET)])
      const document = account.documents.get(value.id) as unknown as Configured.ProcessorDocument
      const moved = { ...document, value: { ...document.value, id: "prc_other" } }
      assert.throws(() => Configured.secretsOf(account.config, moved, 0))
    })
  )

  it.effect("is generated if none is given, and differs each time", () =>
    Effect.gen(function* () {
      const { account, merchant } = yield* installation
      const made = yield* Effect.forEach([false, true], (livemode) =>
        account.run(Configured.add(newOf(merchant, { livemode, secret: null })), null)
      )
      const secrets = made.map(({ secret }) => Redacted.value(secret))
      assert.isTrue(secrets.every(isSecret))
      assert.strictEqual(new Set(secrets).size, 2)
      assert.deepStrictEqual(secretsAt(account, made[0]!.value.id, 0), [secrets[0]!])
    })
  )

  it.effect("that is replaced counts for its grace period, and no longer", () =>
    Effect.gen(function* () {
      const { account, merchant } = yield* installation
      const { value } = yield* account.run(Configured.add(newOf(merchant)), null)
      const change = { secret: OTHER, expiresIn: 60, profile: PROFILE }
      yield* account.run(Configured.update(value.id, change), null)
      const [old, young] = [Redacted.value(SECRET), Redacted.value(OTHER)]
      assert.deepStrictEqual(secretsAt(account, value.id, account.now + 59_999), [young, old])
      assert.deepStrictEqual(secretsAt(account, value.id, account.now + 60_000), [young])
      yield* account.run(Configured.update(value.id, { secret: SECRET, profile: PROFILE }), null)
      assert.deepStrictEqual(secretsAt(account, value.id, account.now), [old])
    })
  )

  it.effect("stays as it is when only the URL changes", () =>
    Effect.gen(function* () {
      const { account, merchant } = yield* installation
      const { value } = yield* account.run(Configured.add(newOf(merchant)), null)
      const changed = yield* account.run(Configured.update(value.id, { url: `${URL}/2`, profile: PROFILE }), null)
      assert.strictEqual(changed.url, `${URL}/2`)
      assert.deepStrictEqual(secretsAt(account, value.id, 0), [Redacted.value(SECRET)])
    })
  )
})

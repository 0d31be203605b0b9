/** Administration commands and replies as JSON, between processes of the same and of other versions of Till. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Unavailable } from "../../../src/engine/Accounts.ts"
import { type Administered, AdministrationFailed } from "../../../src/payments/administration/Administration.ts"
import * as Wire from "../../../src/payments/administration/AdministrationWire.ts"

const overTheWire = ({ body, status }: Wire.JsonResponse): Wire.JsonResponse => ({
  status,
  body: JSON.parse(JSON.stringify(body))
})

const read = (reply: Wire.JsonResponse) => Effect.result(Wire.readResponse(overTheWire(reply)))

describe("a reply", () => {
  it.effect("returns the answer as it was sent", () =>
    Effect.gen(function* () {
      const answer: Administered = {
        merchants: [],
        keys: [],
        ensured: { _tag: "Ensured", generated: { secretTest: "sk_test_1" }, added: ["secretLive"], link: null },
        link: "/dashboard/link/a"
      }
      assert.deepStrictEqual(yield* Wire.readResponse(overTheWire(Wire.success(answer))), answer)
    })
  )

  it.effect("returns the failure of the process that ran or refused the command", () =>
    Effect.gen(function* () {
      const failures = [
        [new AdministrationFailed({ message: "There is no merchant." }), "AdministrationFailed"],
        [new Unavailable({ reason: "The database does not answer." }), "Unavailable"]
      ] as const
      for (const [failure, tag] of failures) {
        const result = yield* read(Wire.refusalOf(failure))
        assert.isTrue(Result.isFailure(result) && result.failure._tag === tag, String(result))
        if (Result.isFailure(result)) assert.strictEqual(result.failure.message, failure.message)
      }
    })
  )

  it.effect("reveals nothing of a defect", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(Wire.refusalOf(new Error("internal")), Wire.refusal(503, "The service failed."))
      assert.strictEqual(Wire.messageOf({ status: 503, body: null }), "The service failed.")
    })
  )

  it.effect("of a version with other answers is reported as such", () =>
    Effect.gen(function* () {
      const result = yield* read({ status: 200, body: { merchants: [{ id: "mer_1" }], keys: [] } })
      assert.isTrue(Result.isFailure(result) && result.failure._tag === "Unavailable", String(result))
      assert.include(String(result), "another version of Till")
    })
  )
})

describe("a command", () => {
  it.effect("that does not exist in this version is not decoded", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Wire.decodeCommand({ _tag: "ListMerchants" }), { _tag: "ListMerchants" })
      assert.isTrue(Result.isFailure(yield* Effect.result(Wire.decodeCommand({ _tag: "Unknown" }))))
    })
  )
})

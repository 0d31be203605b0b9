/** The stored fingerprint of the installation's secret (semantics operation.secret). */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Transaction } from "../../../src/engine/actor/Transaction.ts"
import * as SecretFile from "../../../src/domain/SecretFile.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import * as Keyring from "../../../src/payments/shared/Keyring.ts"
import {
  keepPrint,
  type Prints,
  printsOf,
  SECRET_PRINT,
  SECRET_PRINT_ID
} from "../../../src/payments/administration/SecretInForce.ts"
import { MemoryAccount } from "../../support/MemoryAccount.ts"

const printsOfNewSecret = (): Prints => printsOf(Keyring.ofFile(SecretFile.make()))

/** An account with the document of an installation that was made before secrets could be rolled. */
const accountOfBefore = Effect.fnUntraced(function* ({ all }: Prints) {
  const account = new MemoryAccount(INSTALLATION)
  const put = Effect.map(Transaction, (transaction) =>
    transaction.put(SECRET_PRINT, { id: SECRET_PRINT_ID, print: all[0]! })
  )
  yield* account.run(put, null)
  return account
})

describe("The fingerprint of the secret", () => {
  it.effect("of an installation that was made before secrets could be rolled is accepted and completed", () =>
    Effect.gen(function* () {
      const prints = printsOfNewSecret()
      const account = yield* accountOfBefore(prints)
      yield* account.run(keepPrint(prints), null)
      assert.deepStrictEqual(account.value(SECRET_PRINT, SECRET_PRINT_ID), {
        id: SECRET_PRINT_ID,
        print: prints.all[0]!,
        lastingPrint: prints.lastingPrint
      })
    })
  )

  it.effect("refuses another secret, and other lasting keys beside the same secret", () =>
    Effect.gen(function* () {
      const prints = printsOfNewSecret()
      const account = yield* accountOfBefore(prints)
      const refused = (given: Prints) =>
        Effect.map(Effect.flip(account.run(keepPrint(given), null)), ({ _tag }) => _tag)
      assert.strictEqual(yield* refused(printsOfNewSecret()), "ForeignSecret")
      yield* account.run(keepPrint(prints), null)
      assert.strictEqual(yield* refused(printsOfNewSecret()), "ForeignSecret")
      assert.strictEqual(yield* refused({ ...prints, lastingPrint: printsOfNewSecret().lastingPrint }), "ForeignSecret")
    })
  )
})

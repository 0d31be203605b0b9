/**
 * Operations as `till operations` lists, checks and decides about them (semantics operations.cli, operations.decide):
 * the commands that the service runs, by its control socket too, and each refusal.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Result } from "effect"
import * as ControlSocket from "../../../src/control/ControlSocket.ts"
import type { Operation } from "../../../src/domain/Operation.ts"
import { secondsOf } from "../../../src/domain/Time.ts"
import * as Totp from "../../../src/domain/Totp.ts"
import { Accounts } from "../../../src/engine/Accounts.ts"
import { administerAnywhere } from "../../../src/http/forward/Calls.ts"
import { INSTALLATION } from "../../../src/payments/shared/AccountIds.ts"
import {
  accountOfCommand,
  administer,
  type Administered,
  type Command,
  type DecideOperation,
  NOT_RUNNING,
  type OperatorCommand
} from "../../../src/payments/administration/Administration.ts"
import { AUDIT_ENTRY } from "../../../src/payments/team/Audit.ts"
import { ProcessorGate } from "../../../src/payments/processing/ConfiguredProcessors.ts"
import { OperationDispatcher } from "../../../src/payments/lifecycles/OperationDispatcher.ts"
import { Passwords } from "../../../src/payments/team/Passwords.ts"
import { PaymentsConfig } from "../../../src/payments/shared/PaymentsConfig.ts"
import * as People from "../../../src/payments/team/People.ts"
import { Processors } from "../../../src/payments/processing/Processor.ts"
import * as SecondFactors from "../../../src/payments/team/SecondFactors.ts"
import { PROCESSOR } from "../../models/Operations.ts"
import { type MemoryTill, start } from "../../support/MemoryTill.ts"
import {
  APPROVED,
  attend,
  begin,
  conclude,
  confirmAgain,
  doubtful,
  type Made,
  processorsOf,
  type Shop,
  WHY
} from "../../support/fixtures/Operations.ts"
import { paymentsConfig } from "../../support/PaymentsConfig.ts"
import { temporaryFolder } from "../../support/TemporaryFolder.ts"

const PASSWORD = "correct horse battery"
const REASON = "Seen in the gateway's records"
const config = paymentsConfig({})

let server: MemoryTill
let shop: Shop
beforeAll(async () => {
  server = await start()
  shop = { accounts: server.accounts, merchantId: server.keys.merchantId }
})
afterAll(() => server.close())

const run = <A, E>(effect: Effect.Effect<A, E, Accounts>): Promise<A> =>
  Effect.runPromise(Effect.orDie(Effect.provideService(effect, Accounts, server.accounts)))

/** Runs a command as a service does whose processor gives this word, if it is asked. */
const administered = (command: Command | DecideOperation, word?: (made: string) => Promise<void>) =>
  administerAnywhere(command).pipe(
    Effect.provideService(ProcessorGate, { config, check: () => Effect.die("not asked") }),
    Effect.provideService(Processors, processorsOf(PROCESSOR)),
    Effect.provideService(OperationDispatcher, {
      adopt: () => Effect.die("not adopted"),
      reconcile: () => Effect.die("not reconciled"),
      look: (_, operation) =>
        Effect.as(word === undefined ? Effect.void : Effect.promise(() => word(operation)), word !== undefined)
    })
  )

const carryOut = (...asked: Parameters<typeof administered>): Promise<Administered | string> =>
  run(
    Effect.match(administered(...asked), {
      onFailure: ({ message, ...failure }) => ("reason" in failure ? String(failure.reason) : message),
      onSuccess: (answer) => answer
    })
  )

const operationsOf = async (command: Command, word?: (made: string) => Promise<void>) => {
  const answer = await carryOut(command, word)
  if (typeof answer === "string") throw new Error(answer)
  return answer.operations!
}

const list = (status: Operation["status"] | null, limit = 100, merchant = shop.merchantId) =>
  operationsOf({ _tag: "ListOperations", merchant, livemode: false, status, limit })

/** An owner, or a person in another role, with a password. */
const person = async (email: string, role: "owner" | "developer" = "owner") => {
  const { merchantId } = server.keys
  const added = await run(server.accounts.run(INSTALLATION, People.add(merchantId, { email, role })))
  const hash = Passwords.use((passwords) => passwords.hash({ person: added.id, email }, PASSWORD)).pipe(
    Effect.provide(Passwords.layer(2 ** 10)),
    Effect.provideService(PaymentsConfig, config)
  )
  const credentials = { email, password: await run(hash) }
  return await run(server.accounts.run(INSTALLATION, People.setCredentials(merchantId, added.id, credentials)))
}

const identify = (email: string, password = PASSWORD, code: string | null = null) =>
  carryOut({ _tag: "IdentifyOwner", merchant: server.keys.merchantId, email, password, code })

describe("operations.cli", () => {
  it("lists those without an outcome, or those in a status, newest first", async () => {
    const open = await begin(shop)
    const final = await begin(shop)
    await conclude(shop, final, APPROVED)
    const undecided = await doubtful(shop)
    const idsOf = async (...asked: Parameters<typeof list>) => (await list(...asked)).map(({ id }) => id)
    assert.deepStrictEqual(await idsOf(null), [undecided.operation, open.operation])
    assert.deepStrictEqual(await idsOf(null, 1), [undecided.operation])
    assert.deepStrictEqual(await idsOf("final"), [final.operation])
    assert.deepStrictEqual(await idsOf("decide"), [undecided.operation])
    assert.deepStrictEqual(await idsOf(null, 100, (await server.merchant()).merchantId), [])
  })

  it("shows the merchant, the words and the next look", async () => {
    const made = await begin(shop)
    const show = async () => (await operationsOf({ _tag: "ShowOperation", operation: made.operation }))[0]!
    const open = await show()
    assert.deepInclude(open, { merchant_id: shop.merchantId, status: "open", evidence: [] })
    assert.strictEqual(open.next_look, open.created + 20)
    await attend(shop, made)
    assert.strictEqual((await show()).next_look, open.created + 30)
    await conclude(shop, made, { kind: "mismatch", why: WHY })
    const undecided = await show()
    assert.deepInclude(undecided.evidence[0], { by: "answer", outcome: "mismatch", detail: WHY })
    assert.strictEqual(undecided.next_look, undecided.updated + 86_400)
    await conclude(shop, made, APPROVED)
    assert.deepInclude(await show(), { status: "final", next_look: null, reference: "gw_6735" })
  })

  it("asks the processor, and says so if there is nothing to ask", async () => {
    const made = await begin(shop)
    await attend(shop, made)
    const check: Command = { _tag: "CheckOperation", operation: made.operation }
    assert.strictEqual((await operationsOf(check))[0]!.status, "unresolved")
    const answered = await operationsOf(check, (operation) => conclude(shop, { operation, payment: "" }, APPROVED))
    assert.strictEqual(answered[0]!.status, "final")
    assert.strictEqual(await carryOut(check), `${made.operation} is final: there is nothing to ask.`)
  })

  it("names what is no operation, and needs a running service", async () => {
    for (const [operation, message] of [
      ["op_x", "There is no operation op_x."],
      ["op_000000000000000000000000", "There is no operation op_000000000000000000000000."],
      ["pi_1", "An operation is named by its id, op_…, which the list of operations shows."]
    ] as const) {
      for (const _tag of ["ShowOperation", "CheckOperation"] as const) {
        assert.strictEqual(await carryOut({ _tag, operation }), message)
        const place = await run(Effect.result(accountOfCommand({ _tag, operation })))
        assert.isTrue(Result.isFailure(place) && "message" in place.failure && place.failure.message === message)
      }
    }
    const { operation } = await begin(shop)
    const place = await run(accountOfCommand({ _tag: "ShowOperation", operation }))
    assert.strictEqual(place, `${shop.merchantId}:test`)
    const stopped = await run(Effect.flip(administer({ _tag: "ShowOperation", operation })))
    assert.propertyVal(stopped, "message", NOT_RUNNING)
  })
})

/** The newest entries of the audit log, newest first. */
const auditEntries = async (limit: number) => {
  const { documents } = await run(
    server.accounts.list(`${shop.merchantId}:test`, { kind: AUDIT_ENTRY.name, prefix: AUDIT_ENTRY.prefix, limit })
  )
  return documents.map(({ value }) => {
    const { action, detail, email, request, subject } = value as unknown as Record<string, unknown>
    return { action, detail, email, request, subject }
  })
}

describe("operations.decide", () => {
  const decide = (made: Made, email: string, decision: { reference: string | null; reason?: string }) => {
    const credentials = { email, password: PASSWORD, code: null }
    return carryOut({ _tag: "DecideOperation", operation: made.operation, reason: REASON, ...credentials, ...decision })
  }

  it("takes an owner's email and password, and no others", async () => {
    await person("owner@example.com")
    await person("developer@example.com", "developer")
    const known = await identify("OWNER@example.com")
    assert.deepInclude((known as Administered).owner, { email: "owner@example.com", role: "owner" })
    const { merchantId } = server.keys
    const wrong = `This is not the email and password of anybody in ${merchantId}.`
    for (const [email, password] of [
      ["owner@example.com", "wrong"],
      ["nobody@example.com", PASSWORD],
      ["", ""]
    ] as const) {
      assert.strictEqual(await identify(email, password), wrong)
    }
    assert.strictEqual(
      await identify("developer@example.com"),
      `developer@example.com is not an owner of ${merchantId}: only owners decide.`
    )
    const { merchantId: other } = await server.merchant()
    const elsewhere = {
      _tag: "IdentifyOwner",
      merchant: other,
      email: "owner@example.com",
      password: PASSWORD
    } as const
    assert.strictEqual(await carryOut({ ...elsewhere, code: null }), wrong.replace(merchantId, other))
  })

  it("takes a code, once, of an owner with two-step verification", async () => {
    const { id } = await person("careful@example.com")
    const { sealed, secret } = SecondFactors.makeSecret(config, id)
    const now = secondsOf(Date.now())
    const turnOn = SecondFactors.turnOn(config, id, { sealed, code: Totp.codeOf(secret, Totp.stepAt(now) - 1) })
    await run(Effect.orDie(server.accounts.run(INSTALLATION, turnOn)))
    assert.strictEqual(await identify("careful@example.com"), 'careful@example.com also needs a code: add "code".')
    assert.strictEqual(await identify("careful@example.com", PASSWORD, "000"), "The code is wrong.")
    const code = Totp.codeOf(secret, Totp.stepAt(now))
    assert.isObject(await identify("careful@example.com", PASSWORD, code))
    assert.strictEqual(
      await identify("careful@example.com", PASSWORD, code),
      "This code was already used. Wait for the next one."
    )
  })

  it("settles the payment and leaves an entry in the audit log, in one record", async () => {
    const owner = "decides@example.com"
    await person(owner)
    const [happened, missed] = [await doubtful(shop), await doubtful(shop)]
    const decided = await decide(happened, owner, { reference: "gw_7" })
    assert.deepInclude((decided as Administered).operations![0], {
      status: "final",
      resolved_by: "operator",
      reference: "gw_7"
    })
    assert.isObject(await decide(missed, owner, { reference: null }))
    const statusOf = async ({ payment }: Made) =>
      (await server.request("GET", `/v1/payment_intents/${payment}`)).body.status
    assert.strictEqual(await statusOf(happened), "succeeded")
    assert.strictEqual(await statusOf(missed), "requires_payment_method")
    assert.deepStrictEqual(
      await auditEntries(2),
      [
        { subject: missed.operation, detail: `did not happen: ${REASON}` },
        { subject: happened.operation, detail: `happened, as gw_7: ${REASON}` }
      ].map((entry) => ({ action: "operation.decide", email: owner, request: null, ...entry }))
    )
    const text = await server.journal()
    assert.strictEqual(text.split("\n").filter((record) => record.includes(`as gw_7: ${REASON}`)).length, 1)
  })

  it("refuses what is no decision, and changes nothing", async () => {
    const owner = "refused@example.com"
    await person(owner)
    const made = await doubtful(shop)
    const reason = "The reason must be a line of 10 to 500 characters."
    const reference = "The processor's reference must have 1 to 255 characters."
    for (const [decision, message] of [
      [{ reference: null, reason: "too short" }, reason],
      [{ reference: null, reason: "two\nlines of text" }, reason],
      [{ reference: null, reason: "x".repeat(501) }, reason],
      [{ reference: "" }, reference],
      [{ reference: "x".repeat(256) }, reference],
      [{ reference: "gw\u0000" }, reference]
    ] as const) {
      assert.strictEqual(await decide(made, owner, decision), message)
    }
    const open = await begin(shop)
    assert.strictEqual(
      await decide(open, owner, { reference: null }),
      `${open.operation} is open: there is nothing to decide.`
    )
    const declined = await begin(shop)
    await conclude(shop, declined, {
      kind: "declined",
      declineCode: "generic_decline",
      message: "No.",
      processorCode: null
    })
    await confirmAgain(shop, declined)
    await conclude(shop, declined, APPROVED)
    assert.strictEqual(
      await decide(declined, owner, { reference: "gw_7" }),
      `${declined.operation} cannot be decided now: another operation of its payment has no outcome, or the processor is out of order.`
    )
    assert.strictEqual(
      (await list("decide")).some(({ id }) => id === made.operation),
      true
    )
  })
})

describe("operations.cli: the control socket", () => {
  it.effect("decides with an owner's credentials, and refuses a decision without them", () =>
    Effect.gen(function* () {
      const owner = "socket@example.com"
      const { id, role } = yield* Effect.promise(() => person(owner))
      const { operation } = yield* Effect.promise(() => doubtful(shop))
      const installation = { dataFolder: yield* temporaryFolder(), database: "till", publicUrl: "http://localhost" }
      const socket = ControlSocket.layer(installation, administered)
      yield* Layer.build(Layer.provide(socket, Layer.succeed(Accounts, server.accounts)))
      const send = (command: object) => ControlSocket.send(installation, command as OperatorCommand)
      const decision = { operation, reference: null, reason: REASON }
      const credentials = { email: owner, password: PASSWORD, code: null }
      const named = { ...decision, person: { id, email: owner, merchant_id: shop.merchantId, role } }
      const entry = { action: "operation.decide", subject: operation, detail: null }
      const unsupported = "The running service does not support this command."
      for (const [command, message] of [
        [{ _tag: "DecideOperation", ...named }, unsupported],
        [{ _tag: "DecideOperation", ...named, email: owner, code: null }, unsupported],
        [
          { _tag: "DecideOperation", ...named, ...credentials, password: "wrong" },
          `This is not the email and password of anybody in ${shop.merchantId}.`
        ],
        // Only processes send each other these, which name a person without a password.
        [{ _tag: "RecordDecision", ...named }, unsupported],
        [{ _tag: "ConfirmSession", session: "dse_1", proof: null }, unsupported],
        [
          {
            _tag: "Audit",
            person: named.person,
            entry,
            request: { id: "req_1", idempotencyKey: "1", fingerprint: "1", apiVersion: "2026-03-09" }
          },
          unsupported
        ]
      ] as const) {
        assert.strictEqual((yield* Effect.flip(send(command))).message, message, command._tag)
      }
      const shown = yield* send({ _tag: "ShowOperation", operation })
      assert.strictEqual(Option.getOrThrow(shown).operations![0]!.status, "decide")
      const decided = yield* send({ _tag: "DecideOperation", ...decision, ...credentials })
      assert.deepInclude(Option.getOrThrow(decided).operations![0], { status: "final", resolved_by: "operator" })
      const entries = yield* Effect.promise(() => auditEntries(100))
      assert.deepStrictEqual(
        entries.filter(({ subject }) => subject === operation).map(({ email }) => email),
        [owner]
      )
    })
  )
})

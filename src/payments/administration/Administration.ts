/**
 * Commands with which the operator changes merchants, keys and processors, and decides about operations (semantics
 * keys.cli, keys.roll, versions.default, keys.revoke, processors.cli, operations.cli). Any process can send them to the
 * process that owns the installation's account, or that of the operation.
 */
import { Clock, Effect, Option, Record, Redacted, Schema } from "effect"
import { ApiKeyGrace, ApiKeyType, NewApiKey } from "../../domain/ApiKey.ts"
import { ApiVersion } from "../../domain/ApiVersion.ts"
import { ErasureStatus } from "../../domain/Customer.ts"
import { BRAND_SETTINGS, type BrandSetting } from "../../domain/Brand.ts"
import { OperationStatus } from "../../domain/Operation.ts"
import type { Person } from "../../domain/Person.ts"
import { CREDENTIALS_GRACE_SECONDS_MAX, Processor, ProcessorKind, type ProcessorStep } from "../../domain/Processor.ts"
import { urlComplaint } from "../../domain/GatewayUrl.ts"
import { ruleOf } from "../../domain/Rule.ts"
import { hasLengthAtMost } from "../../domain/Length.ts"
import { Accounts, type AccountsShape, runOnce, Unavailable } from "../../engine/Accounts.ts"
import type { AccountId, Document, Identified, Kind, Labels, Millis } from "../../engine/log/Document.ts"
import type { Transaction } from "../../engine/actor/Transaction.ts"
import { accountOf, INSTALLATION } from "../shared/AccountIds.ts"
import * as ApiKeys from "../merchants/ApiKeys.ts"
import * as Audit from "../team/Audit.ts"
import * as Configured from "../processing/ConfiguredProcessors.ts"
import * as CustomerErasure from "../erasure/CustomerErasure.ts"
import * as DashboardSessions from "../team/DashboardSessions.ts"
import { Eraser } from "../erasure/Erasers.ts"
import * as Merchants from "../merchants/Merchants.ts"
import * as Operations from "./OperationAdministration.ts"
import { OperationDispatcher, ReconciledPage, ReconciledPart } from "../lifecycles/OperationDispatcher.ts"
import * as People from "../team/People.ts"
import * as PersonErasure from "../erasure/PersonErasure.ts"
import { Processors } from "../processing/Processor.ts"
import { readDocument } from "../shared/ReadDocument.ts"
import { PaymentsConfig } from "../shared/PaymentsConfig.ts"
import * as SecondFactors from "../team/SecondFactors.ts"
import { keepPrint, Prints, roll } from "./SecretInForce.ts"

const KeysBySlot = Schema.Struct({
  secretTest: Schema.optionalKey(Schema.String),
  publishableTest: Schema.optionalKey(Schema.String),
  secretLive: Schema.optionalKey(Schema.String),
  publishableLive: Schema.optionalKey(Schema.String)
})

/** The operations that a list has at most. */
export const LISTED_MAX = 1000

const OWNER_CREDENTIALS = {
  email: Schema.String,
  password: Schema.String,
  /** The code of two-step verification; null without one. */
  code: Schema.NullOr(Schema.String)
}

const DECISION = {
  operation: Schema.String,
  /** Null: it has not happened. */
  reference: Schema.NullOr(Schema.String),
  reason: Schema.String
}

const CredentialsGrace = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: CREDENTIALS_GRACE_SECONDS_MAX }))

/** Commands of an operator that run in one process: the one that serves the account that the command is about. */
const OPERATOR_COMMANDS = [
  Schema.TaggedStruct("CreateMerchant", { name: Schema.String }),
  Schema.TaggedStruct("ListMerchants", {}),
  Schema.TaggedStruct("BrandMerchant", {
    merchant: Schema.String,
    name: Schema.optionalKey(Schema.String),
    /** Null removes a setting; an absent setting keeps its value. */
    brand: Schema.Struct({
      icon: Schema.optionalKey(Schema.NullOr(Schema.String)),
      accent: Schema.optionalKey(Schema.NullOr(Schema.String)),
      support: Schema.optionalKey(Schema.NullOr(Schema.String)),
      terms: Schema.optionalKey(Schema.NullOr(Schema.String)),
      privacy: Schema.optionalKey(Schema.NullOr(Schema.String))
    })
  }),
  Schema.TaggedStruct("SetVersion", { merchant: Schema.String, version: ApiVersion }),
  Schema.TaggedStruct("LinkToDashboard", {
    /** Null stands for the default merchant. */
    merchant: Schema.NullOr(Schema.String),
    /** True turns the owner's two-step verification off. */
    turnOffTwoStep: Schema.optionalKey(Schema.Boolean)
  }),
  Schema.TaggedStruct("CreateKey", {
    merchant: Schema.String,
    type: ApiKeyType,
    livemode: Schema.Boolean,
    name: Schema.optionalKey(Schema.String)
  }),
  Schema.TaggedStruct("ListKeys", { merchant: Schema.NullOr(Schema.String) }),
  Schema.TaggedStruct("RollKey", { key: Schema.String, expiresIn: ApiKeyGrace }),
  Schema.TaggedStruct("RevokeKey", { key: Schema.String }),
  Schema.TaggedStruct("AddProcessor", {
    merchant: Schema.String,
    livemode: Schema.Boolean,
    kind: ProcessorKind,
    url: Schema.String,
    secret: Schema.String
  }),
  Schema.TaggedStruct("ListProcessors", { merchant: Schema.NullOr(Schema.String) }),
  Schema.TaggedStruct("ShowProcessor", { processor: Schema.String }),
  Schema.TaggedStruct("UpdateProcessor", {
    processor: Schema.String,
    url: Schema.optionalKey(Schema.String),
    secret: Schema.optionalKey(Schema.String),
    /** Seconds for which the secret before stays valid. */
    expiresIn: CredentialsGrace
  }),
  Schema.TaggedStruct("TakeProcessor", {
    processor: Schema.String,
    step: Schema.Literals(["pause", "resume", "retire"])
  }),
  Schema.TaggedStruct("CheckProcessor", { processor: Schema.String }),
  /** A page of a reconciliation, in the process that serves the merchant's account. */
  Schema.TaggedStruct("ReconcileProcessor", {
    processor: Schema.String,
    merchant: Schema.String,
    livemode: Schema.Boolean,
    /** Unix seconds. */
    since: Schema.Int,
    part: ReconciledPart,
    after: Schema.NullOr(Schema.String)
  }),
  /** The end of a reconciliation. */
  Schema.TaggedStruct("ReleaseProcessor", { processor: Schema.String }),
  Schema.TaggedStruct("ListOperations", {
    merchant: Schema.String,
    livemode: Schema.Boolean,
    /** Null lists all operations without an outcome. */
    status: Schema.NullOr(OperationStatus),
    limit: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: LISTED_MAX }))
  }),
  Schema.TaggedStruct("ShowOperation", { operation: Schema.String }),
  Schema.TaggedStruct("CheckOperation", { operation: Schema.String }),
  Schema.TaggedStruct("ErasePerson", {
    merchant: Schema.String,
    person: Schema.String,
    /** An erasure has one part for each of the merchant's accounts, and one for the installation's. */
    part: Schema.Literals(["test", "live", "team"]),
    /** False only asks whether the part has come to its end. */
    begins: Schema.Boolean
  }),
  Schema.TaggedStruct("EraseCustomer", {
    merchant: Schema.String,
    livemode: Schema.Boolean,
    customer: Schema.String,
    /** False only asks whether an erasure has come to its end. */
    begins: Schema.Boolean
  }),
  Schema.TaggedStruct("RollSecret", {
    /** The fingerprints of the secret in force and of the next one. */
    from: Schema.String,
    to: Schema.String,
    /** Milliseconds of running time. */
    runningAt: Schema.Int
  })
] as const

/** Commands that processes of the installation send each other. The control socket refuses them. */
const PROCESS_COMMANDS = [
  /** The first part of `DecideOperation`: the answer has the owner with these credentials. */
  Schema.TaggedStruct("IdentifyOwner", { merchant: Schema.String, ...OWNER_CREDENTIALS }),
  /** The second part of `DecideOperation`. */
  Schema.TaggedStruct("RecordDecision", { ...DECISION, person: Audit.AuditedPerson }),
  /** Sent once before an environment is wiped, because a wipe's record holds nothing else. */
  Schema.TaggedStruct("Audit", {
    person: Audit.AuditedPerson,
    entry: Schema.Struct({
      action: Schema.String,
      subject: Schema.NullOr(Schema.String),
      detail: Schema.NullOr(Schema.String)
    }),
    request: Schema.Struct({
      id: Schema.String,
      idempotencyKey: Schema.String,
      fingerprint: Schema.String,
      apiVersion: Schema.String
    })
  }),
  /** Sent by a page of a merchant's account, which another process may serve. */
  Schema.TaggedStruct("ConfirmSession", {
    session: Schema.String,
    /** The proof of the second step; null without two-step verification. */
    proof: Schema.NullOr(SecondFactors.Proof)
  }),
  /** Sent by a page for a session that was in use. */
  Schema.TaggedStruct("NoteSessionUse", { session: Schema.String, address: Schema.String }),
  /** Sent by a starting process. */
  Schema.TaggedStruct("EnsureDefault", {
    prints: Prints,
    given: KeysBySlot
  })
] as const

export const Command = Schema.Union([...OPERATOR_COMMANDS, ...PROCESS_COMMANDS])
export type Command = typeof Command.Type

/** An owner's decision about an operation. Two processes may be needed: the merchant's, and the installation's. */
const DecideOperation = Schema.TaggedStruct("DecideOperation", { ...DECISION, ...OWNER_CREDENTIALS })
export type DecideOperation = typeof DecideOperation.Type

/** All commands of an operator. The control socket accepts no others. */
export const OperatorCommand = Schema.Union([...OPERATOR_COMMANDS, DecideOperation])
export type OperatorCommand = typeof OperatorCommand.Type

const Ensured = Schema.Union([
  Schema.TaggedStruct("Ensured", {
    /** Keys that were generated now. Only this answer contains them. */
    generated: KeysBySlot,
    /** Slots of the given keys that were new to the installation. */
    added: Schema.Array(Merchants.ApiKeySlot),
    /** Path that signs the first owner in to the dashboard once; null unless the merchant was made now. */
    link: Schema.NullOr(Schema.String)
  }),
  Schema.TaggedStruct("ForeignSecret", {}),
  Schema.TaggedStruct("ApiKeyTaken", { slot: Merchants.ApiKeySlot })
])
export type Ensured = typeof Ensured.Type

/**
 * Merchants, keys and processors that a command made or found, oldest first. Only the first answer contains a key's
 * `secret`.
 */
export const Administered = Schema.Struct({
  merchants: Schema.Array(Merchants.Merchant),
  keys: Schema.Array(NewApiKey),
  processors: Schema.optionalKey(Schema.Array(Processor)),
  operations: Schema.optionalKey(Schema.Array(Operations.OperationReport)),
  reconciled: Schema.optionalKey(ReconciledPage),
  owner: Schema.optionalKey(Audit.AuditedPerson),
  erasure: Schema.optionalKey(ErasureStatus),
  ensured: Schema.optionalKey(Ensured),
  /** Signs the merchant's first owner in to the dashboard once. A path; the serving process adds the address. */
  link: Schema.optionalKey(Schema.String)
})
export type Administered = typeof Administered.Type

/** A command names something that does not exist. */
export class AdministrationFailed extends Schema.TaggedError<AdministrationFailed>()("AdministrationFailed", {
  message: Schema.String
}) {}

/** Runs a command. All requests that arrive after its response see the change. */
export const administer = (
  command: Command
): Effect.Effect<Administered, AdministrationFailed | Unavailable, Accounts> =>
  Effect.flatMap(Accounts, (accounts) => {
    switch (command._tag) {
      case "CreateMerchant":
        return accounts.run(INSTALLATION, createMerchant(command.name))
      case "ListMerchants":
        return Effect.map(readAll(Merchants.MERCHANT), (merchants) => ({ merchants, keys: [] }))
      case "BrandMerchant":
        return accounts.run(INSTALLATION, brandMerchant(command))
      case "SetVersion":
        return accounts.run(INSTALLATION, setVersion(command.merchant, command.version))
      case "LinkToDashboard":
        return accounts.run(INSTALLATION, linkToDashboard(command))
      case "CreateKey":
        return accounts.run(INSTALLATION, createKey(command))
      case "ListKeys":
        return listKeys(command.merchant)
      case "RollKey":
        return accounts.run(INSTALLATION, rollKey(command.key, command.expiresIn))
      case "RevokeKey":
        return accounts.run(INSTALLATION, revokeKey(command.key))
      case "AddProcessor":
        return addProcessor(command)
      case "ListProcessors":
        return listProcessors(command.merchant)
      case "ShowProcessor":
        return Effect.map(readProcessor(command.processor), ({ value }) => withProcessor(value))
      case "UpdateProcessor":
        return updateProcessor(command)
      case "TakeProcessor":
        return takeProcessor(command.processor, command.step)
      case "CheckProcessor":
        return updateProcessor({ ...command, expiresIn: 0 })
      case "ReconcileProcessor":
        return reconcileProcessor(command)
      case "ReleaseProcessor":
        return accounts.run(
          INSTALLATION,
          Effect.mapBoth(Configured.release(command.processor), { onFailure: unfit, onSuccess: withProcessor })
        )
      case "ListOperations":
      case "ShowOperation":
      case "CheckOperation":
      case "IdentifyOwner":
      case "RecordDecision":
        return Effect.catchTag(administerOperation(command), "OperationUnfit", (failure) => Effect.fail(unfit(failure)))
      case "EraseCustomer":
        return eraseCustomer(accounts, command)
      case "ErasePerson":
        return erasePerson(command)
      case "RollSecret":
        return rollSecret(command)
      case "Audit":
        return audit(accounts, command)
      case "ConfirmSession":
        return accounts.run(INSTALLATION, confirmSession(command))
      case "NoteSessionUse":
        return accounts.run(INSTALLATION, noteSessionUse(command))
      case "EnsureDefault":
        return Effect.map(ensure(accounts, command), (ensured) => ({ merchants: [], keys: [], ensured }))
    }
  })

/** Returns the account of a part of a person's erasure. */
const accountOfPart = ({ merchant, part }: Command & { readonly _tag: "ErasePerson" }): AccountId =>
  part === "team" ? INSTALLATION : accountOf(merchant, part === "live")

/** Erases a part of the data of a person who was removed from a team. */
const erasePerson = Effect.fnUntraced(function* (
  command: Command & { readonly _tag: "ErasePerson" }
): Effect.fn.Return<Administered, AdministrationFailed | Unavailable, Accounts> {
  const { begins, merchant, person } = command
  const account = accountOfPart(command)
  if (begins) {
    const failed = (message: string) => new AdministrationFailed({ message })
    const states = yield* PersonErasure.statesOf(person)
    if (states[0]?.merchant_id !== merchant) return yield* failed(`The merchant ${merchant} had no person ${person}.`)
    if ((yield* readDocument(INSTALLATION, People.PERSON, person)) !== undefined) {
      return yield* failed(`${person} is in the team: remove them there first.`)
    }
    yield* Effect.catchTag(PersonErasure.begin(account, person), "ResourceMissing", Effect.die)
  }
  return yield* erasureOf(account, person, begins)
})

/** Returns how far an erasure is. */
const erasureOf = Effect.fnUntraced(function* (
  account: AccountId,
  id: string,
  begins: boolean
): Effect.fn.Return<Administered, AdministrationFailed | Unavailable> {
  const eraser = yield* Eraser
  if (eraser === null) return yield* new AdministrationFailed({ message: NOT_RUNNING })
  const looked = begins ? Effect.as(eraser.noteBegun(account, id), false) : eraser.isDone(account, id)
  const isDone = yield* Effect.mapError(looked, ({ message }) => new Unavailable({ reason: message }))
  return { merchants: [], keys: [], erasure: isDone ? "completed" : "in_progress" }
})

const eraseCustomer = Effect.fnUntraced(function* (
  accounts: AccountsShape,
  { begins, customer, livemode, merchant }: Command & { readonly _tag: "EraseCustomer" }
): Effect.fn.Return<Administered, AdministrationFailed | Unavailable, Accounts> {
  if ((yield* readDocument(INSTALLATION, Merchants.MERCHANT, merchant)) === undefined)
    return yield* noMerchant(merchant)
  const account = accountOf(merchant, livemode)
  if (begins) {
    const standing = yield* CustomerErasure.standingOf(account, customer)
    const failed = (message: string) => Effect.fail(new AdministrationFailed({ message }))
    yield* accounts.run(account, CustomerErasure.begin(customer, standing)).pipe(
      Effect.catchTag("ResourceMissing", () =>
        failed(`The merchant ${merchant} has no customer ${customer} in ${livemode ? "live" : "test"} mode.`)
      ),
      Effect.catchTag("CustomerHasPayment", ({ id }) =>
        failed(`The payment ${id} of this customer is in progress: capture or cancel it, or wait for its end.`)
      )
    )
  }
  return yield* erasureOf(account, customer, begins)
})

const revealKey = ({ secret, value }: ApiKeys.IssuedApiKey): NewApiKey => ({ ...value, secret: Redacted.value(secret) })

type CommandReturn<R> = Effect.fn.Return<Administered, AdministrationFailed, R>

const createMerchant = Effect.fnUntraced(function* (name: string): CommandReturn<Transaction> {
  yield* requireName(name)
  const merchant = yield* Merchants.create(name)
  const keys = yield* Effect.forEach(Object.values(Merchants.API_KEY_SLOTS), (use) => ApiKeys.issue(merchant.id, use))
  return { merchants: [merchant], keys: keys.map(revealKey) }
})

const brandMerchant = Effect.fnUntraced(function* ({
  brand,
  merchant: id,
  name
}: Command & { readonly _tag: "BrandMerchant" }): CommandReturn<Transaction> {
  if (name !== undefined) yield* requireName(name)
  for (const [setting, value] of Object.entries(brand)) {
    if (value !== null) yield* requireSetting(setting as BrandSetting, value)
  }
  const accent = brand.accent?.toLowerCase()
  const merchant = yield* Merchants.changeAppearance(id, {
    ...brand,
    ...(accent !== undefined && { accent }),
    ...(name !== undefined && { name })
  })
  return merchant === undefined ? yield* noMerchant(id) : { merchants: [merchant], keys: [] }
})

/** Returns the rule that a brand setting violates; undefined if pages can show the value. */
export const settingComplaint = (setting: BrandSetting, value: string): string | undefined => {
  const schema = BRAND_SETTINGS[setting]
  return Schema.is(schema)(value) && !/\p{Cc}/u.test(value) ? undefined : ruleOf(schema)
}

const requireSetting = (setting: BrandSetting, value: string) => {
  const rule = settingComplaint(setting, value)
  return rule === undefined
    ? Effect.void
    : Effect.fail(new AdministrationFailed({ message: `The brand's ${setting} must be ${rule}.` }))
}

const setVersion = Effect.fnUntraced(function* (id: string, version: ApiVersion): CommandReturn<Transaction> {
  const merchant = yield* Merchants.setVersion(id, version)
  return merchant === undefined ? yield* noMerchant(id) : { merchants: [merchant], keys: [] }
})

const linkToDashboard = Effect.fnUntraced(function* ({
  merchant,
  turnOffTwoStep = false
}: Command & { readonly _tag: "LinkToDashboard" }): CommandReturn<Transaction> {
  const id = merchant ?? (yield* Merchants.findDefault)
  if (id === undefined)
    return yield* new AdministrationFailed({ message: "There is no merchant yet: start Till first." })
  const owner = yield* Effect.mapError(People.ensureOwner(id), () => noMerchant(id))
  if (turnOffTwoStep) yield* turnOffOf(owner)
  const link = yield* Effect.mapError(DashboardSessions.makeLink(owner), () => noMerchant(id))
  return { merchants: [], keys: [], link: DashboardSessions.pathOf(link) }
})

/** Turns an owner's two-step verification off. The operator is in no team, so the entry names the command. */
const turnOffOf = Effect.fnUntraced(function* (
  owner: Person
): Effect.fn.Return<void, AdministrationFailed, Transaction> {
  yield* Effect.mapError(
    SecondFactors.turnOff(owner.id),
    () => new AdministrationFailed({ message: "The owner does not use two-step verification." })
  )
  yield* Audit.record(owner, {
    action: "person.reset_two_step",
    subject: owner.id,
    detail: "with till dashboard"
  })
})

const confirmSession = ({ proof, session }: Command & { readonly _tag: "ConfirmSession" }) =>
  DashboardSessions.confirm(session, proof).pipe(
    Effect.as({ merchants: [], keys: [] } satisfies Administered),
    Effect.mapError(() => new AdministrationFailed({ message: "This code was already used. Wait for the next one." }))
  )

const noteSessionUse = ({ address, session }: Command & { readonly _tag: "NoteSessionUse" }) =>
  Effect.as(DashboardSessions.noteUse(session, address), { merchants: [], keys: [] } satisfies Administered)

const createKey = Effect.fnUntraced(function* ({
  livemode,
  merchant,
  name,
  type
}: Command & { readonly _tag: "CreateKey" }): CommandReturn<Transaction> {
  if (name !== undefined) yield* requireName(name, "key")
  if ((yield* Merchants.find(merchant)) === undefined) return yield* noMerchant(merchant)
  return { merchants: [], keys: [revealKey(yield* ApiKeys.issue(merchant, { type, livemode, name }))] }
})

const rollKey = (id: string, expiresIn: number) =>
  ApiKeys.roll(id, { expiresIn }).pipe(
    Effect.map((rolled): Administered => ({ merchants: [], keys: [revealKey(rolled)] })),
    Effect.mapError(() => noApiKey(id))
  )

const revokeKey = (id: string) =>
  ApiKeys.revoke(id).pipe(
    Effect.map((revoked): Administered => ({ merchants: [], keys: [revoked] })),
    Effect.mapError(() => noApiKey(id))
  )

const withProcessor = (processor: Processor): Administered => ({ merchants: [], keys: [], processors: [processor] })

const unfit = ({ message }: { readonly message: string }) => new AdministrationFailed({ message })

/** Refuses a command that needs a running service. */
export const NOT_RUNNING = "Till is not running here. Start it with `till serve`, then run this command again."

const requireGate = Effect.flatMap(Configured.ProcessorGate, (gate) =>
  gate === null ? Effect.fail(new AdministrationFailed({ message: NOT_RUNNING })) : Effect.succeed(gate)
)

const requireGateway = (url: string | undefined, secret: string | undefined) => {
  const aboutUrl = url === undefined ? undefined : urlComplaint(url)
  const aboutSecret = secret === undefined ? undefined : Configured.secretComplaint(secret)
  const message = aboutUrl === undefined ? aboutSecret : `The URL ${aboutUrl}.`
  return message === undefined ? Effect.void : Effect.fail(new AdministrationFailed({ message }))
}

const redactedSecret = (secret: string) => Redacted.make(secret, { label: "secret" })

/** Adds a processor whose gateway answers a check in the processor's mode. */
const addProcessor = Effect.fnUntraced(function* ({
  secret: text,
  ...command
}: Command & { readonly _tag: "AddProcessor" }) {
  yield* requireGateway(command.url, text)
  const { check, config } = yield* requireGate
  const secret = redactedSecret(text)
  const profile = yield* Effect.mapError(check({ url: command.url, secrets: [secret] }, command.livemode), unfit)
  const added = Configured.add({ ...command, secret, profile }).pipe(
    Effect.provideService(PaymentsConfig, config),
    Effect.mapError(unfit)
  )
  return withProcessor((yield* Accounts.use(({ run }) => run(INSTALLATION, added))).value)
})

const readProcessor = Effect.fnUntraced(function* (id: string) {
  const document = yield* readDocument(INSTALLATION, Configured.PROCESSOR, id)
  return document ?? (yield* unfit(Configured.noProcessor(id)))
})

/** Changes a processor, whose gateway has to answer a check with the new address and secret. */
const updateProcessor = Effect.fnUntraced(function* ({
  expiresIn,
  processor: id,
  secret: text,
  url
}: Omit<Command & { readonly _tag: "UpdateProcessor" }, "_tag">) {
  yield* requireGateway(url, text)
  const { check, config } = yield* requireGate
  const document = yield* readProcessor(id)
  const secret = text === undefined ? undefined : redactedSecret(text)
  const secrets =
    secret === undefined ? Configured.secretsOf(config, document, yield* Clock.currentTimeMillis) : [secret]
  const { livemode, url: known } = document.value
  const profile = yield* Effect.mapError(check({ url: url ?? known, secrets }, livemode), unfit)
  const change = { profile, expiresIn, ...(url !== undefined && { url }), ...(secret !== undefined && { secret }) }
  const updated = Configured.update(id, change).pipe(
    Effect.provideService(PaymentsConfig, config),
    Effect.mapError(unfit)
  )
  return withProcessor(yield* Accounts.use(({ run }) => run(INSTALLATION, updated)))
})

const takeProcessor = (id: string, step: ProcessorStep) =>
  Accounts.use(({ run }) =>
    run(INSTALLATION, Effect.mapBoth(Configured.take(id, step), { onFailure: unfit, onSuccess: withProcessor }))
  )

const listProcessors = Effect.fnUntraced(function* (merchant: string | null) {
  const labels = merchant === null ? {} : { merchant_id: merchant }
  if (merchant !== null && (yield* readDocument(INSTALLATION, Merchants.MERCHANT, merchant)) === undefined)
    return yield* noMerchant(merchant)
  return { merchants: [], keys: [], processors: yield* readAll(Configured.PROCESSOR, labels) }
})

/** Compares a page of a merchant's operations with the processor's. */
const reconcileProcessor = Effect.fnUntraced(function* ({
  livemode,
  merchant,
  ...step
}: Command & { readonly _tag: "ReconcileProcessor" }) {
  const dispatcher = yield* Effect.serviceOption(OperationDispatcher)
  if (Option.isNone(dispatcher)) return yield* new AdministrationFailed({ message: NOT_RUNNING })
  const reconciled = yield* dispatcher.value
    .reconcile(accountOf(merchant, livemode), step)
    .pipe(Effect.catchTag("NotReconciled", (failure) => Effect.fail(unfit(failure))))
  return { merchants: [], keys: [], reconciled } satisfies Administered
})

/** Holds every processor of an installation that was restored to a time (semantics processors.restored). */
export const holdProcessors = Effect.fnUntraced(function* (at: Millis) {
  const ids = (yield* readAll(Configured.PROCESSOR)).map(({ id }) => id)
  if (ids.length > 0) yield* Accounts.use(({ run }) => run(INSTALLATION, Configured.hold(ids, at)))
})

type OperationCommand = Command & {
  readonly _tag: "ListOperations" | "ShowOperation" | "CheckOperation" | "IdentifyOwner" | "RecordDecision"
}

/** Returns the processors of the running Till; fails in a process that serves nothing. */
const requireProcessors = Effect.flatMap(
  Effect.serviceOption(Processors),
  Option.match({
    onNone: () => Effect.fail(new AdministrationFailed({ message: NOT_RUNNING })),
    onSome: Effect.succeed
  })
)

const withOperations = (...operations: ReadonlyArray<Operations.OperationReport>): Administered => {
  return { merchants: [], keys: [], operations }
}

const administerOperation = Effect.fnUntraced(function* (command: OperationCommand) {
  const { config } = yield* requireGate
  switch (command._tag) {
    case "ListOperations": {
      const account = accountOf(command.merchant, command.livemode)
      return withOperations(...(yield* Operations.list({ ...command, account })))
    }
    case "ShowOperation":
      return withOperations(yield* Operations.show(command.operation))
    case "CheckOperation": {
      const account = yield* Operations.accountOfOperation(command.operation)
      yield* Operations.check(account, command.operation)
      return withOperations(yield* Operations.show(command.operation))
    }
    case "IdentifyOwner": {
      const { email, id, merchant_id, role } = yield* Operations.identify(config, command)
      return { merchants: [], keys: [], owner: { email, id, merchant_id, role } }
    }
    case "RecordDecision":
      yield* Effect.provideService(
        Effect.provideService(Operations.decideAudited(command), PaymentsConfig, config),
        Processors,
        yield* requireProcessors
      )
      return withOperations(yield* Operations.show(command.operation))
  }
})

/** The account whose process runs a command: the one that the command is about, or the installation's. */
export const accountOfCommand = (
  command: Command
): Effect.Effect<AccountId, AdministrationFailed | Unavailable, Accounts> => {
  switch (command._tag) {
    case "EraseCustomer":
    case "ListOperations":
    case "ReconcileProcessor":
      return Effect.succeed(accountOf(command.merchant, command.livemode))
    case "ErasePerson":
      return Effect.succeed(accountOfPart(command))
    case "ShowOperation":
    case "CheckOperation":
    case "RecordDecision":
      return Operations.accountOfOperation(command.operation).pipe(
        Effect.catchTags({
          Unavailable: (failure) => (failure.isElsewhere ? Effect.succeed(failure.account!) : Effect.fail(failure)),
          OperationUnfit: (failure) => Effect.fail(unfit(failure))
        })
      )
    default:
      return Effect.succeed(INSTALLATION)
  }
}

const ensureWithLink = Effect.fnUntraced(function* (given: Merchants.ApiKeys) {
  const ensured = yield* Merchants.ensureDefault(given)
  if (!ensured.isFirst) return { ...ensured, link: null }
  const link = yield* Effect.orDie(DashboardSessions.makeOwnersLink(ensured.merchant.id))
  return { ...ensured, link: DashboardSessions.pathOf(link) }
})

/** Puts the next secret in force, which this process must have read. */
const rollSecret = Effect.fnUntraced(function* (command: Command & { readonly _tag: "RollSecret" }) {
  const gate = yield* Configured.ProcessorGate
  if (gate !== null && !gate.config.keyring.all.some(({ print }) => print === command.to)) {
    return yield* new AdministrationFailed({
      message: "The service was started before the new secret was in its file: restart it, then run this command again."
    })
  }
  const rolled = Effect.mapError(
    roll(command),
    () => new AdministrationFailed({ message: "Another secret was put in force: look at till secret status." })
  )
  yield* Accounts.use(({ run }) => run(INSTALLATION, rolled))
  return { merchants: [], keys: [] } satisfies Administered
})

/** Writes an entry of the audit log in its own record. Another command's idempotency key is a bug. */
const audit = (
  accounts: AccountsShape,
  { entry, person, request }: Command & { readonly _tag: "Audit" }
): Effect.Effect<Administered, AdministrationFailed | Unavailable> => {
  const command = () => Effect.as(Audit.record(person, entry), { kept: { status: 200, body: "{}" }, replayOf: null })
  return runOnce(accounts, INSTALLATION, request, command).pipe(
    Effect.as({ merchants: [], keys: [] }),
    Effect.catchTags({
      IdempotencyKeyInUse: () => Effect.fail(new Unavailable({ reason: "The entry is being written." })),
      IdempotencyKeyReuse: () => Effect.fail(new AdministrationFailed({ message: "This key is another entry's." }))
    })
  )
}

/** Creates or finds the default merchant and registers the given keys, or changes nothing. */
const ensure = (
  accounts: AccountsShape,
  { given, prints }: Command & { readonly _tag: "EnsureDefault" }
): Effect.Effect<Ensured, Unavailable> => {
  const keys = Record.map(given as Readonly<Record<string, string>>, (key) => Redacted.make(key))
  return accounts.run(INSTALLATION, Effect.andThen(keepPrint(prints), ensureWithLink(keys))).pipe(
    Effect.map(({ added, generated, link }): Ensured => ({
      _tag: "Ensured",
      generated: Record.map(generated as Readonly<Record<string, Redacted.Redacted>>, Redacted.value),
      added,
      link
    })),
    Effect.catchTags({
      ForeignSecret: () => Effect.succeed<Ensured>({ _tag: "ForeignSecret" }),
      ApiKeyTaken: ({ slot }) => Effect.succeed<Ensured>({ _tag: "ApiKeyTaken", slot })
    })
  )
}

/** The message repeats nothing but ids: an operator who enters a key by mistake must not find it in a log. */
const noApiKey = (id: string) =>
  new AdministrationFailed({
    message: id.startsWith("key_")
      ? `There is no API key ${id}, or it has been revoked.`
      : "Name the key by its ID, key_…, which the list of keys shows."
  })

const listKeys = Effect.fnUntraced(function* (merchant: string | null) {
  if (merchant === null) return { merchants: [], keys: yield* readAll(ApiKeys.API_KEY) }
  if ((yield* readDocument(INSTALLATION, Merchants.MERCHANT, merchant)) === undefined)
    return yield* noMerchant(merchant)
  return { merchants: [], keys: yield* readAll(ApiKeys.API_KEY, { merchant_id: merchant }) }
})

/** Returns the message for a name that pages or terminals cannot show; undefined if they can. */
export const nameComplaint = (name: string, owner: "merchant" | "key" = "merchant"): string | undefined =>
  name.trim() !== "" && hasLengthAtMost(name, Merchants.NAME_LENGTH_MAX) && !/\p{Cc}/u.test(name)
    ? undefined
    : `Enter a ${owner} name of 1 to ${Merchants.NAME_LENGTH_MAX} characters, without control characters.`

const requireName = (name: string, owner: "merchant" | "key" = "merchant") => {
  const message = nameComplaint(name, owner)
  return message === undefined ? Effect.void : Effect.fail(new AdministrationFailed({ message }))
}

const noMerchant = (id: string) => new AdministrationFailed({ message: `There is no merchant ${id}.` })

const PAGE = 100

/** Reads every document of a kind, oldest first. */
const readAll = Effect.fnUntraced(function* <A extends Identified, H>(kind: Kind<A, H>, labels: Labels = {}) {
  const accounts = yield* Accounts
  const found: Array<A> = []
  for (;;) {
    const last = found.at(-1)
    const cursor = last === undefined ? {} : { olderThan: last.id }
    const page = yield* accounts.list(INSTALLATION, {
      kind: kind.name,
      prefix: kind.prefix,
      labels,
      limit: PAGE,
      ...cursor
    })
    found.push(...page.documents.map((document) => (document as Document<A>).value))
    if (!page.hasMore) return found.toReversed()
  }
})

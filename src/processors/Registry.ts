/**
 * The configured processors of the installation, in the memory of every process (semantics processors.resolution).
 *
 * - `of` and `byId` are synchronous, so a command can resolve its processor without a read.
 * - `start` reads the processors before the engine starts, because the first timers may need them. `following` brings
 *   every change within two seconds, as it is for API keys: the process that serves the installation's account is
 *   notified, and another process is notified or reads once a second.
 * - A processor that has not changed keeps its object.
 */
import { Clock, Context, Effect, Layer, type Scope } from "effect"
import type { KeyObject } from "node:crypto"
import { urlComplaint } from "../domain/GatewayUrl.ts"
import type { ProcessorStatus } from "../domain/Processor.ts"
import { signingKey } from "../domain/StandardWebhooks.ts"
import { isWebOrigin } from "../domain/Text.ts"
import { Accounts } from "../engine/Accounts.ts"
import { Projector } from "../engine/actor/Projector.ts"
import type { AccountId, Document } from "../engine/log/Document.ts"
import type { Journal, StorageFailure } from "../engine/log/Journal.ts"
import type { JournalCorrupt } from "../engine/log/Record.ts"
import { logOf } from "../engine/process/Log.ts"
import * as Metrics from "../engine/process/Metrics.ts"
import { Placement } from "../engine/process/Placement.ts"
import { CommitFeed } from "../engine/views/CommitFeed.ts"
import { DocumentFormats } from "../engine/views/DocumentFormats.ts"
import { Views } from "../engine/views/Views.ts"
import { accountOf, INSTALLATION } from "../payments/shared/AccountIds.ts"
import {
  PROCESSOR,
  type ProcessorDocument,
  ProcessorGate,
  ProcessorUnfit,
  secretsOf
} from "../payments/processing/ConfiguredProcessors.ts"
import { follow } from "../payments/shared/InstallationChanges.ts"
import { PaymentsConfig, type PaymentsConfigShape } from "../payments/shared/PaymentsConfig.ts"
import { Processors } from "../payments/processing/Processor.ts"
import { processorsOf } from "../payments/processing/Simulator.ts"
import * as Exchange from "./Exchange.ts"
import { guarded } from "./Guard.ts"
import * as HttpProcessor from "./protocol/HttpProcessor.ts"

const log = logOf("processors")

const RESTORED =
  "The installation was restored from a backup, and payments are refused until `till processors reconcile` has " +
  "compared it with each of these processors, and the processor is resumed"

const PAGE = 100
/** Less than the control socket's time for an answer. */
const CHECK_MILLIS = 15_000

export interface RegistryShape {
  /** Returns an account's active or paused processor; undefined if it has none. */
  readonly of: (account: AccountId) => HttpProcessor.HttpProcessor | undefined
  /** Returns the processor with this id, whatever its status; null if it is unknown. */
  readonly byId: (id: string) => HttpProcessor.HttpProcessor | null
  /** Returns false for a processor that is paused, unknown or to be reconciled: no operation may begin. */
  readonly mayBegin: (id: string) => boolean
  /** Replaces all processors. */
  readonly replace: (documents: ReadonlyArray<ProcessorDocument>) => void
}

export class Registry extends Context.Service<Registry, RegistryShape>()("till/processors/Registry") {}

interface Entry {
  /** Changes with each change of the document. */
  readonly state: string
  readonly status: ProcessorStatus
  readonly account: AccountId
  readonly processor: HttpProcessor.HttpProcessor
}

/** Makes an empty registry. */
export const make = (config: PaymentsConfigShape, exchange: Exchange.Exchange, clock: Clock.Clock): RegistryShape => {
  let entries: ReadonlyMap<string, Entry> = new Map()
  let current: ReadonlyMap<AccountId, Entry> = new Map()
  const entryOf = (document: ProcessorDocument): Entry => {
    const { hidden, value } = document
    const state = JSON.stringify([value, hidden])
    const known = entries.get(value.id)
    if (known?.state === state) return known
    let keys: ReadonlyArray<KeyObject> | undefined
    const processor = HttpProcessor.make({
      id: value.id,
      url: value.url,
      exchange,
      fieldsUrl: value.profile?.fields_url ?? null,
      onlyLooks: value.restored_at !== undefined,
      // Read for each call, since a secret's grace period ends. Decrypted once: the text of a secret stays nowhere.
      get secrets() {
        keys ??= secretsOf(config, document, -Infinity).map(signingKey)
        const isPreviousValid = (hidden.previous?.expiresAt ?? 0) > clock.currentTimeMillisUnsafe()
        return isPreviousValid ? keys : keys.slice(0, 1)
      }
    })
    return { state, status: value.status, account: accountOf(value.merchant_id, value.livemode), processor }
  }
  return {
    of: (account) => current.get(account)?.processor,
    byId: (id) => entries.get(id)?.processor ?? null,
    mayBegin: (id) => {
      const entry = entries.get(id)
      return entry !== undefined && entry.status !== "paused" && !entry.processor.onlyLooks
    },
    replace: (documents) => {
      entries = new Map(documents.map((document) => [document.value.id, entryOf(document)]))
      const present = [...entries.values()].filter(({ status }) => status !== "retiring")
      current = new Map(present.map((entry) => [entry.account, entry]))
    }
  }
}

/** Reads all processors from the views, brought up to date. */
const readAtStart: Effect.Effect<
  ReadonlyArray<ProcessorDocument>,
  StorageFailure | JournalCorrupt,
  Projector | DocumentFormats | Views
> = Effect.gen(function* () {
  const formats = yield* DocumentFormats
  const views = yield* Views
  yield* Projector.use(({ catchUp }) => catchUp(INSTALLATION))
  return yield* readAll((olderThan) =>
    Effect.gen(function* () {
      const query = { kind: PROCESSOR.name, prefix: PROCESSOR.prefix, limit: PAGE, ...olderThan }
      const rows = yield* views.list(INSTALLATION, query)
      const texts = yield* views.documents(rows.map(({ id }) => ({ account: INSTALLATION, id })))
      return texts.flatMap((row) => (row === undefined ? [] : [formats.document(row) as Document]))
    })
  )
})

const readAll = Effect.fnUntraced(function* <E, R>(
  readPage: (olderThan: { readonly olderThan?: string }) => Effect.Effect<ReadonlyArray<Document>, E, R>
) {
  const found: Array<ProcessorDocument> = []
  for (;;) {
    const last = found.at(-1)
    const page = yield* readPage(last === undefined ? {} : { olderThan: last.value.id })
    found.push(...(page as ReadonlyArray<Document>).map((document) => document as unknown as ProcessorDocument))
    if (page.length < PAGE) return found
  }
})

/** Makes the registry with the processors of the start, and the gate by which processors are administered. */
export const start: Effect.Effect<
  Context.Context<Registry>,
  StorageFailure | JournalCorrupt,
  PaymentsConfig | Journal | DocumentFormats | Views | Scope.Scope
> = Effect.gen(function* () {
  const config = yield* PaymentsConfig
  const exchange = yield* Exchange.make({ hosts: config.webhookHosts.live })
  const registry = make(config, exchange, yield* Clock.Clock)
  const found = yield* Effect.provide(readAtStart, Projector.layer)
  registry.replace(found)
  const restored = found.filter(({ value }) => value.restored_at !== undefined).map(({ value }) => value.id)
  if (restored.length > 0) yield* log.warning(`${RESTORED}: ${restored.join(", ")}`, undefined, { cause: "restored" })
  return Context.make(Registry, registry).pipe(Context.add(ProcessorGate, makeGate(config, exchange)))
})

const CALL_SECONDS = {
  name: "till_processor_call_duration_seconds",
  description: "Time that a call of a payment processor took, by its kind and the kind of its answer.",
  labels: ["call", "answer"],
  boundaries: [...Metrics.SECONDS, 20, 40]
}
const OUT_OF_ORDER = {
  name: "till_processors_out_of_order",
  description: "Payment processors that this process does not call, but for a look every few seconds."
}

/** Provides each account's configured processor, with its limits, else the simulator as far as it is allowed. */
export const layerProcessors: Layer.Layer<Processors, never, PaymentsConfig | Registry> = Layer.effect(
  Processors,
  Effect.gen(function* () {
    const { byId, mayBegin, of } = yield* Registry
    const { atOnce } = processorsOf(yield* PaymentsConfig)
    const measure = yield* Metrics.histograms(CALL_SECONDS, [["look", "approved"]])
    const scope = yield* Effect.scope
    const runFork = Effect.runForkWith(yield* Effect.context<never>())
    const { outOfOrder, ...processors } = guarded(
      { of: (account) => of(account) ?? atOnce(account), atOnce, byId, mayBegin },
      {
        fork: (question) => void runFork(Effect.forkIn(question, scope)),
        measure: (call, answer, seconds) => measure([call, answer], seconds)
      }
    )
    yield* Metrics.observeGauge(OUT_OF_ORDER, outOfOrder)
    return processors
  })
)

/** The rule that a page for a frame violates. A page of Till's own origin could reach out of its frame. */
const frameComplaint = (url: string, publicUrl: string): string | undefined => {
  const origin = URL.parse(url)?.origin ?? ""
  if (origin === new URL(publicUrl).origin) return "must have another origin than Till"
  return urlComplaint(url) ?? (isWebOrigin(origin) ? undefined : "must have a host that a browser's policy can name")
}

/** Makes the gate, whose check refuses a gateway of the other mode, so that no test payment moves money. */
export const makeGate = (config: PaymentsConfigShape, exchange: Exchange.Exchange): ProcessorGate => ({
  config,
  check: ({ secrets, url }, livemode) =>
    HttpProcessor.make({ id: "", url, secrets, exchange }).check.pipe(
      Effect.timeoutOrElse({
        duration: CHECK_MILLIS,
        orElse: () => Effect.fail(new HttpProcessor.CheckFailed({ message: "No answer came in time." }))
      }),
      Effect.mapError(({ message }) => new ProcessorUnfit({ message: `The gateway failed the check: ${message}` })),
      Effect.flatMap((checked) => {
        const { currencies = null, fields = null, livemode: isOfLive, name } = checked
        const refuse = (message: string) => Effect.fail(new ProcessorUnfit({ message }))
        if (isOfLive !== livemode) {
          const [its, wanted] = isOfLive ? ["live", "test"] : ["test", "live"]
          return refuse(`The gateway is in ${its} mode: it cannot be a processor of ${wanted} mode.`)
        }
        const fields_url = fields?.frame ?? null
        const complaint = fields_url === null ? undefined : frameComplaint(fields_url, config.publicUrl)
        return complaint === undefined
          ? Effect.succeed({ name, currencies, fields_url })
          : refuse(`The gateway's page with the inputs of a card ${complaint}.`)
      })
    )
})

const readNow = (accounts: Accounts["Service"]) =>
  readAll((olderThan) =>
    Effect.map(
      accounts.list(INSTALLATION, { kind: PROCESSOR.name, prefix: PROCESSOR.prefix, limit: PAGE, ...olderThan }),
      ({ documents }) => documents
    )
  )

/** Brings changes of the processors, as long as the layer lives. */
export const following: Layer.Layer<never, never, Accounts | CommitFeed | Placement | Registry> = Layer.effectDiscard(
  Effect.gen(function* (): Effect.fn.Return<void, never, Accounts | CommitFeed | Placement | Registry | Scope.Scope> {
    const accounts = yield* Accounts
    const registry = yield* Registry
    yield* follow(PROCESSOR, Effect.map(readNow(accounts), registry.replace))
  })
)

/**
 * Processors of an environment, for owners, with the password asked for again (semantics processors.*,
 * dashboard.processors). No form takes a secret: Till generates it, and shows it once in the response to the form that
 * has added the processor or rolled its secret. A processor starts paused, and is resumed once its gateway answers.
 */
import { Clock, Effect, Layer, Redacted } from "effect"
import { CREDENTIALS_GRACE_SECONDS_MAX, type Processor, processorStates } from "../../domain/Processor.ts"
import { ParameterInvalid, ResourceMissing } from "../../domain/Errors.ts"
import { urlComplaint } from "../../domain/GatewayUrl.ts"
import { Revealed } from "../../http/OneTimeSecrets.ts"
import { html } from "../../html/Html.ts"
import { accountOf, INSTALLATION } from "../../payments/shared/AccountIds.ts"
import * as Configured from "../../payments/processing/ConfiguredProcessors.ts"
import { DashboardConfig } from "../frame/DashboardConfig.ts"
import { dialog } from "../frame/Form.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"
import { listObjects } from "../frame/Queries.ts"
import type { PageContent } from "../frame/Shell.ts"
import { cursorIn, pageLinks, table } from "../frame/Table.ts"
import { badge, code, facts, section, time } from "../frame/Values.ts"
import { readInstallation } from "../frame/Visitors.ts"
import type { Visit } from "../frame/Visit.ts"

const LIST = "/developers/processors"
const BACK = [LIST, "Processors"] as const

const statusBadge = ({ status }: Processor) =>
  badge(status, status === "active" ? "good" : status === "paused" ? "wait" : "plain")

/** Shows a new secret. A form that is sent again cannot show it. */
const newSecret =
  (visit: Visit) =>
  (made: { readonly id?: string } & Readonly<Record<string, unknown>>): PageContent => {
    const to = html`<a href="${visit.to(`${LIST}/${made.id!}`)}"><code>${made.id!}</code></a>`
    const isShown = typeof made["secret"] === "string"
    return {
      title: "The processor's secret",
      section: "Developers",
      back: BACK,
      notice: isShown ? "This secret is shown only once. Give it to your gateway now." : null,
      content: isShown
        ? [
            facts([
              ["Secret", code(String(made["secret"]))],
              ["Processor", to]
            ]),
            html`<p>Start the gateway with this secret, then open the processor and resume it.</p>`
          ]
        : html`<div class="empty">This secret was already shown. If you have lost it, roll it at ${to}.</div>`
    }
  }

const reveal = ({ secret, value }: { readonly secret: Redacted.Redacted; readonly value: Processor }) =>
  new Revealed(value, { secret: Redacted.value(secret) }, "object")

const showAll: Show = Effect.fnUntraced(function* (visit, _, problem) {
  const { hasMore, rows } = yield* listObjects(INSTALLATION, Configured.PROCESSOR, {
    cursor: cursorIn(visit.query),
    labels: { account: visit.account }
  })
  const add = dialog("Add a processor", {
    visit,
    action: `${LIST}/add`,
    submit: "Add processor",
    tone: "primary",
    problem,
    content: (fields) =>
      fields.text({
        name: "url",
        label: "URL of the gateway",
        type: "url",
        required: true,
        hint: "A gateway speaks Till's gateway protocol. It starts paused, and you get its secret next."
      })
  })
  return {
    title: "Processors",
    section: "Developers",
    back: ["/developers", "Developers"],
    aside: [badge(visit.mode, visit.livemode ? "good" : "wait"), html`<div class="buttons">${add}</div>`],
    content: [
      table({
        caption: `Processors of the ${visit.mode} environment, newest first`,
        columns: [
          { name: "Processor", cell: ({ id, profile }) => profile?.name ?? html`<code>${id}</code>` },
          { name: "Status", cell: statusBadge },
          { name: "URL", cell: ({ url }) => html`<code>${url}</code>`, wide: true },
          { name: "Created", cell: ({ created }) => time(created), wide: true }
        ],
        rows,
        href: ({ id }) => visit.to(`${LIST}/${id}`),
        empty: visit.livemode
          ? "No processor yet. Payments of live mode need one."
          : "No processor yet. Payments of test mode go to Till's simulator."
      }),
      pageLinks(visit, rows, hasMore)
    ]
  }
})

/** Returns a processor of this environment. Fails with `ResourceMissing` for any other. */
const find = Effect.fnUntraced(function* (visit: Visit, id: string) {
  const document = yield* readInstallation(Configured.PROCESSOR, id)
  const { livemode = false, merchant_id = "" } = document?.value ?? {}
  return document !== undefined && accountOf(merchant_id, livemode) === visit.account
    ? document
    : yield* new ResourceMissing({ kind: "Processor", id, param: "id" })
})

const STEPS = {
  resume: ["Resume", "primary", "New payments go to this processor, after a check that its gateway answers."],
  pause: [
    "Pause",
    "danger",
    "Nothing is begun with this processor, and new payments are refused, until it is resumed."
  ],
  retire: ["Retire", "danger", "The processor finishes its own payments and takes no new ones."]
} as const

const show: Show = Effect.fnUntraced(function* (visit, { id = "" }, problem) {
  const { value } = yield* find(visit, id)
  const { created, kind, profile, status, url } = value
  const isHeld = value.restored_at !== undefined
  const steps = (["resume", "pause", "retire"] as const).filter(
    (step) => processorStates.isAllowed(step, status) && !(isHeld && step === "resume")
  )
  const dialogs = steps.map((step) => {
    const [name, tone, text] = STEPS[step]
    return dialog(name, {
      visit,
      action: `${LIST}/${id}/${step}`,
      submit: `${name} the processor`,
      tone,
      problem,
      content: () => html`<p>${text}</p>`
    })
  })
  const roll = dialog("Roll the secret", {
    visit,
    action: `${LIST}/${id}/roll`,
    submit: "Roll the secret",
    problem,
    content: () => html`<p>You get a new secret. The old one stays valid for a day, so that the gateway can change.</p>`
  })
  return {
    title: profile?.name ?? id,
    section: "Developers",
    back: BACK,
    aside: [statusBadge(value), html`<div class="buttons">${dialogs.map((one) => [one, " "])} ${roll}</div>`],
    content: section(
      "Processor",
      facts([
        ["ID", code(id)],
        ["Environment", visit.mode],
        ["Kind", kind === "http" ? "Gateway, by Till's gateway protocol" : kind],
        ["URL", code(url)],
        ["Currencies", profile === null ? null : (profile.currencies?.join(", ") ?? "any")],
        ["Card fields", profile?.fields_url == null ? null : code(profile.fields_url)],
        ["Created", time(created)],
        ["Restored", isHeld ? Configured.mustReconcile(id) : null]
      ])
    )
  }
})

const ONLY_ONE = "that of the environment's only processor: retire the other one first"

const common = { right: "processors", confirms: () => true } as const
const onPage = { ...common, page: `${LIST}/:id`, show } as const

/** The processor has changed since the form was shown. */
const gone = (id: string) => () => new ResourceMissing({ kind: "Processor", id, param: "id" })

const add = action({
  ...common,
  name: "processor.add",
  page: LIST,
  path: `${LIST}/add`,
  show: showAll,
  notice: "Processor added.",
  prepare: Effect.fnUntraced(function* (visit, _, values) {
    const url = values.get("url")?.trim() ?? ""
    const { isForThisMachine } = yield* DashboardConfig
    // On a shared machine, an address of the machine itself is the operator's to allow, by the command line.
    const isAllowed = isForThisMachine || !url.startsWith("http://")
    const complaint = isAllowed ? urlComplaint(url) : "must begin with https://"
    if (complaint !== undefined) return new Invalid({ url: `The URL ${complaint}.` })
    const made = { merchant: visit.merchant.id, livemode: visit.livemode, kind: "http", url } as const
    return {
      account: INSTALLATION,
      entered: { url },
      detail: `${visit.mode} ${url}`,
      command: Configured.add({ ...made, secret: null, profile: null }).pipe(
        Effect.mapBoth({ onFailure: () => new ParameterInvalid({ param: "url", rule: ONLY_ONE }), onSuccess: reveal })
      ),
      next: newSecret(visit)
    }
  })
})

const roll = action({
  ...onPage,
  name: "processor.roll_secret",
  path: `${LIST}/:id/roll`,
  notice: "Secret rolled.",
  prepare: (visit, { id = "" }) =>
    Effect.succeed({
      account: INSTALLATION,
      entered: {},
      detail: `${visit.mode}, old secret valid for ${CREDENTIALS_GRACE_SECONDS_MAX} seconds`,
      command: Configured.rollSecret(id, CREDENTIALS_GRACE_SECONDS_MAX, visit.account).pipe(
        Effect.mapBoth({ onFailure: gone(id), onSuccess: reveal })
      ),
      next: newSecret(visit)
    })
})

const stepping = (name: "processor.pause" | "processor.retire", step: "pause" | "retire", notice: string) =>
  action({
    ...onPage,
    name,
    path: `${LIST}/:id/${step}`,
    notice,
    prepare: (visit, { id = "" }) =>
      Effect.succeed({
        account: INSTALLATION,
        entered: {},
        detail: visit.mode,
        command: Effect.mapError(Configured.take(id, step, null, visit.account), gone(id))
      })
  })

const resume = action({
  ...onPage,
  name: "processor.resume",
  path: `${LIST}/:id/resume`,
  notice: "Processor resumed.",
  prepare: Effect.fnUntraced(function* (visit, { id = "" }) {
    const document = yield* find(visit, id)
    const gate = yield* Configured.ProcessorGate
    if (gate === null) return new Invalid({}, "This process cannot reach processors.")
    const secrets = Configured.secretsOf(gate.config, document, yield* Clock.currentTimeMillis)
    return yield* gate.check({ url: document.value.url, secrets }, visit.livemode).pipe(
      Effect.match({
        onFailure: ({ message }) => new Invalid({}, message),
        onSuccess: (profile) => ({
          account: INSTALLATION,
          entered: {},
          detail: visit.mode,
          command: Effect.mapError(Configured.take(id, "resume", profile, visit.account), gone(id))
        })
      })
    )
  })
})

export const layer = Layer.mergeAll(
  page("/developers/processors", "processors", showAll),
  page("/developers/processors/:id", "processors", show),
  add,
  roll,
  stepping("processor.pause", "pause", "Processor paused."),
  stepping("processor.retire", "retire", "Processor retired."),
  resume
)

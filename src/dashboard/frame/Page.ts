/**
 * Builds pages and actions of the dashboard: `page` shows something, `action` changes something. Both are routes below
 * an environment, `/dashboard/test/…` and `/dashboard/live/…`. docs/dashboard.md has an example.
 *
 * Every request passes the same checks in this order: a valid session, the right of the person's role, a form from this
 * site and this session, and, where the action requires it, a recent password. Only then does the action's own code
 * run. It returns a command, which runs once per form, as over the API, and writes an audit entry into the command's
 * own record.
 */
import { Clock, Effect, Layer, Result } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { withoutCardNumbers } from "../../domain/Cards.ts"
import { API_VERSION_NEWEST } from "../../domain/ApiVersion.ts"
import type { ResourceMissing } from "../../domain/Errors.ts"
import { secondsOf } from "../../domain/Time.ts"
import { Unavailable } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import type { Command } from "../../http/IdempotentCommand.ts"
import { html, type Html } from "../../html/Html.ts"
import { type FormValues, idempotencyKeyOf, readForm } from "../../html/Forms.ts"
import { readUpload, type Upload } from "../../html/Uploads.ts"
import { page as pageResponse, seeOther } from "../../html/PageResponse.ts"
import {
  namesThisMachine,
  type PageHandler,
  type PageServices,
  queryOf,
  requireHere,
  routeWith
} from "../../html/Routing.ts"
import type { Submissions, Submitted } from "../../html/FormSubmission.ts"
import * as FormSubmission from "../../html/FormSubmission.ts"
import { INSTALLATION } from "../../payments/shared/AccountIds.ts"
import * as Audit from "../../payments/team/Audit.ts"
import { isConfirmed, isUseNew } from "../../payments/team/DashboardSessions.ts"
import { PASSWORD_FIELD } from "../../payments/team/GivenUp.ts"
import type { Passwords } from "../../payments/team/Passwords.ts"
import { PaymentsConfig } from "../../payments/shared/PaymentsConfig.ts"
import type { Processors } from "../../payments/processing/Processor.ts"
import type { Problem } from "./Form.ts"
import * as Confirmation from "./Confirmation.ts"
import { DashboardConfig } from "./DashboardConfig.ts"
import { type PageContent, plainPage, shell } from "./Shell.ts"
import { type DashboardPath, link, locationOf, returnPathOf } from "./Links.ts"
import type { Right } from "./Rights.ts"
import type { SignInLimits } from "./SignInLimits.ts"
import { type Mode, subjectOf, type Visit, visitAt, visitOf } from "./Visit.ts"
import { isSameOrigin, originOf, type Visitor, visitorOf } from "./Visitors.ts"
import { administerAnywhere } from "../../http/forward/Calls.ts"
import { Revealed } from "../../http/OneTimeSecrets.ts"
import { noteAccount } from "../../http/RequestContext.ts"

export type Services = PageServices | DashboardConfig | Passwords | Processors | SignInLimits

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse
export type Params = Readonly<Record<string, string | undefined>>

/** A dashboard page as a response. Its requests carry a referrer to this site only. */
export const respond = (document: Html, status = 200, pictures: PageContent["pictures"] = []): Response =>
  pageResponse(document, { status, pictures, referrerPolicy: "same-origin" })

const failurePage = (request: Request, status: 413 | 500 | 503): Response =>
  respond(
    plainPage({
      title: status === 413 ? "That was too large" : "Please try again",
      depth: locationOf(request).depth,
      content:
        status === 413
          ? html`<p>The form had more text or a larger file than the dashboard accepts. Nothing was changed.</p>
              <p>
                <a class="button primary" href="${link(locationOf(request), locationOf(request).path)}">Go back</a>
              </p>`
          : html`<p>
              Till is not available right now. Try again in a minute. Sending the form twice has no further effect.
            </p>`
    }),
    status
  )

/** Sign-in links are secrets and must not appear in logs. */
const LINK = /^\/dashboard\/link\/.*/

const guardedRoute = routeWith({
  tooLarge: (request) => failurePage(request, 413),
  unavailable: failurePage,
  shownPath: (path) => withoutCardNumbers(path.replace(LINK, "/dashboard/link/…"))
})

const wrongHostPage = (request: Request): Response =>
  respond(
    plainPage({
      title: "Open the dashboard as localhost",
      depth: locationOf(request).depth,
      content: html`<p>
        This Till only serves its own machine, but was opened under another name. Open it as <code>localhost</code>, or
        set TILL_PUBLIC_URL to its public address.
      </p>`
    }),
    403
  )

/** A route of the dashboard whose failures look like its pages. */
export const route = <E, R>(method: "GET" | "POST", path: `/${string}`, handler: PageHandler<E, R>) =>
  guardedRoute<E, R | DashboardConfig>(method, path, (request, params) =>
    Effect.flatMap(DashboardConfig, ({ isForThisMachine }) =>
      isForThisMachine && !namesThisMachine(request) ? Effect.succeed(wrongHostPage(request)) : handler(request, params)
    )
  )

const modeIn = ({ mode }: Params): Mode | undefined => (mode === "test" || mode === "live" ? mode : undefined)

/** Redirects to the sign-in page, which leads back to this page. */
export const redirectToSignIn = (request: Request): Response => {
  const place = locationOf(request)
  const to = request.method === "POST" ? "" : returnPathOf(`${place.path}?${queryOf(request).toString()}`)
  return seeOther(link(place, "/sign-in", { to }))
}

const otherModeLink = (visit: Visit): Html => {
  const other = visit.livemode ? "test" : "live"
  const path = visit.location.path.replace(/^\/(?:test|live)(?=\/|$)/, `/${other}`) as DashboardPath
  return html`<a href="${visit.at(path)}">the ${other} environment</a>`
}

export const refusalPage = (visit: Visit, status: 403 | 404): Response =>
  respond(
    shell(visit, {
      section: null,
      ...(status === 403
        ? {
            title: "You don't have permission",
            content: html`<p class="empty">
              Your role, ${visit.person.role}, does not allow this. An owner of ${visit.merchant.name} can change your
              role.
            </p>`
          }
        : {
            title: "Page not found",
            content: html`<p class="empty">
              This page does not exist in the ${visit.mode} environment of ${visit.merchant.name}. It may be in
              ${otherModeLink(visit)}.
            </p>`
          })
    }),
    status
  )

/** Returns the content of a page, or a response that redirects. Undefined and `ResourceMissing` become a 404. */
export type Show<R = Services> = (
  visit: Visit,
  params: Params,
  problem: Problem | null
) => Effect.Effect<PageContent | Response | undefined, ResourceMissing | Unavailable, R>

const textOf = ({ errors, message }: Problem): string | null => message ?? Object.values(errors)[0] ?? null

/** Renders a page. `more` adds a notice or a status, `problem` is the outcome of the page's form. */
const render = <R>(
  visit: Visit,
  show: Effect.Effect<PageContent | Response | undefined, ResourceMissing | Unavailable, R>,
  more: Pick<PageContent, "notice" | "status">,
  problem: Problem | null = null
) =>
  show.pipe(
    Effect.catchTag("ResourceMissing", () => Effect.succeed(undefined)),
    Effect.map((made) => {
      if (made === undefined) return refusalPage(visit, 404)
      if (HttpServerResponse.isHttpServerResponse(made)) return made
      const page = { ...made, ...more }
      const document = shell(visit, page)
      // If a concurrent change has removed the form from the page, the error is shown at the top.
      const isLost = problem !== null && !document.text.includes(` action="${visit.at(problem.action)}"`)
      const shown = isLost ? shell(visit, { ...page, refusal: textOf(problem) }) : document
      return respond(shown, page.status, page.pictures)
    })
  )

const NOTICES = new Map<string, string>()

/** Names of all actions, as in the audit log. */
export const actionNames = (): ReadonlyArray<string> => [...NOTICES.keys()].toSorted()

/** A right, or a function of the environment: live keys need another right than test keys. */
export type NeededRight = Right | ((visit: Visit) => Right)

interface Guarded {
  readonly request: Request
  readonly params: Params
  readonly right: NeededRight
}

/**
 * Notes that a session is in use, beside the request and not for each (semantics dashboard.sessions). A page that loads
 * itself again is not in use.
 */
const noteUse = Effect.fnUntraced(function* (request: Request, { session }: Visitor) {
  const now = secondsOf(yield* Clock.currentTimeMillis)
  if (request.headers["sec-fetch-dest"] === "empty" || !isUseNew(session, now)) return
  const { address } = yield* originOf(request)
  const note = administerAnywhere({ _tag: "NoteSessionUse", session: session.id, address })
  yield* Effect.forkDetach(Effect.ignore(note))
})

/** Continues with the visit of a signed-in person who has the right. */
const withVisit = <E, R>(
  { params, request, right }: Guarded,
  go: (visit: Visit, visitor: Visitor) => Effect.Effect<Response, E, R>
) =>
  Effect.gen(function* () {
    const visitor = yield* visitorOf(request)
    if (visitor === undefined) return request.method === "POST" ? signedOutPage(request) : redirectToSignIn(request)
    yield* noteUse(request, visitor)
    const mode = modeIn(params)
    const visit = yield* visitOf(request, visitor, mode ?? "test")
    if (mode === undefined) return refusalPage(visit, 404)
    yield* noteAccount(visit.account)
    return visit.may(typeof right === "string" ? right : right(visit))
      ? yield* go(visit, visitor)
      : refusalPage(visit, 403)
  })

/** The answer to a form whose session has ended. Nothing of the form is kept. */
export const signedOutPage = (request: Request): Response => {
  const place = locationOf(request)
  // A form's address redirects to its page.
  const to = returnPathOf(place.path)
  return respond(
    plainPage({
      title: "You are signed out",
      depth: place.depth,
      content: html`<p>Nothing was changed.</p>
        <p><a class="button primary" href="${link(place, "/sign-in", { to })}">Sign in</a></p>`
    }),
    401
  )
}

/** The answer to a form from another site or another session. */
const foreignFormPage = (request: Request): Response => {
  const place = locationOf(request)
  return respond(
    plainPage({
      title: "This form was not sent from the dashboard",
      depth: place.depth,
      content: html`<p>Nothing was changed. Open the page again and use its form.</p>
        <p><a class="button primary" href="${link(place, "")}">Go to the dashboard</a></p>`
    }),
    403
  )
}

/** A page at `/dashboard/{test,live}` + path. */
export const page = <R = never>(path: `/${string}` | "", right: NeededRight, show: Show<Services | R>) =>
  route<ResourceMissing | Unavailable, Services | R>("GET", `/dashboard/:mode${path}`, (request, params) =>
    withVisit({ request, params, right }, (visit) => {
      const notice = NOTICES.get(visit.query.get("done") ?? "") ?? null
      return render(visit, show(visit, params, null), { notice })
    })
  )

/** A file, or a document for a frame, at `/dashboard/{test,live}` + path. */
export const download = <R = never>(
  path: `/${string}`,
  right: Right,
  make: (visit: Visit) => Effect.Effect<Response, Unavailable, Services | R>
) =>
  route<Unavailable, Services | R>("GET", `/dashboard/:mode${path}`, (request, params) =>
    withVisit({ request, params, right }, make)
  )

/** A validated form: the command to run, and its audit entry. */
export interface Prepared {
  readonly command: Command
  /** The submitted values. The same form with other values is refused. */
  readonly entered: unknown
  /** The environment's account by default. */
  readonly account?: AccountId
  /** Subject and detail of the audit entry. The subject is the path's first `id` by default. */
  readonly subject?: string | null
  readonly detail?: string | null
  /** True for a command whose record cannot hold an audit entry, which is then written before it. */
  readonly auditedBefore?: boolean
  /** True for a preview: it changes nothing, and the page is shown again with the command's result. */
  readonly isPreview?: boolean
  /** The next page, or a page that is shown once, such as a new secret. The form's page by default. */
  readonly next?: (result: { readonly id?: string } & Readonly<Record<string, unknown>>) => `/${string}` | PageContent
}

export class Invalid {
  readonly errors: Readonly<Record<string, string>>
  readonly message: string | null
  readonly besideFields: Readonly<Record<string, string>>
  constructor(
    errors: Readonly<Record<string, string>>,
    message: string | null = null,
    besideFields: Readonly<Record<string, string>> = {}
  ) {
    this.errors = errors
    this.message = message
    this.besideFields = besideFields
  }
}

/** The form again with its values, as a button other than the one that sends it asks: nothing is wrong. */
export class Unfinished extends Invalid {
  constructor() {
    super({})
  }
}

export interface Action<R = Services> {
  /** Name in the audit log: `refund.create`. */
  readonly name: string
  readonly right: NeededRight
  /** The page with the action's form, shown again after a mistake. */
  readonly page: `/${string}` | ""
  readonly path: `/${string}`
  readonly show: Show<R>
  /** Shown on the next page after success. */
  readonly notice: string
  /** True for a form with long texts, up to the size of an API request. */
  readonly isLong?: boolean
  /** True for a form with a file, which `prepare` gets as its last argument. */
  readonly isUpload?: boolean
  /** True if the action requires a recent password; `again` if it requires the password each time. */
  readonly confirms?: (visit: Visit, values: FormValues) => boolean | "again"
  /** False refuses with 403, for rights that depend on the object. */
  readonly allows?: (visit: Visit, params: Params) => Effect.Effect<boolean, Unavailable, R>
  readonly prepare: (
    visit: Visit,
    params: Params,
    values: FormValues,
    file: Upload["file"]
  ) => Effect.Effect<Prepared | Invalid, ResourceMissing | Unavailable, R>
}

const fillIn = (pattern: string, params: Params): string =>
  pattern.replaceAll(/:(\w+)/g, (_, name: string) => params[name] ?? "")

const idOf = (answered: object): string | undefined =>
  ((answered instanceof Revealed ? answered.value : answered) as { readonly id?: string }).id

const entryOf = ({ name }: Action<never>, params: Params, { detail, subject }: Prepared, made?: string) => ({
  action: name,
  subject: subject ?? params["id"] ?? made ?? null,
  detail: detail ?? null
})

/** Adds an audit entry to the command's record. A stored decline counts as carried out. */
const withAuditEntry = (visit: Visit, action: Action<never>, params: Params, prepared: Prepared): Command =>
  Effect.flatMap(prepared.command, (answered) => {
    const made = Result.isResult(answered) ? undefined : idOf(answered)
    return Effect.as(Audit.record(visit.person, entryOf(action, params, prepared, made)), answered)
  })

/** Writes the audit entry before the command, in the installation's account, on the process that owns it. */
const auditBefore = (visit: Visit, entry: ReturnType<typeof entryOf>, id: string, idempotencyKey: string) => {
  const { email, id: person, merchant_id, role } = visit.person
  const key = `${visit.account}/${idempotencyKey}`
  return administerAnywhere({
    _tag: "Audit",
    person: { id: person, email, role, merchant_id },
    entry,
    request: { id, idempotencyKey: key, fingerprint: key, apiVersion: API_VERSION_NEWEST }
  }).pipe(Effect.catchTag("AdministrationFailed", ({ message }) => Effect.fail(new Unavailable({ reason: message }))))
}

const submit = Effect.fnUntraced(function* (
  submissions: Submissions,
  visit: Visit,
  prepared: Prepared,
  {
    command,
    id,
    idempotencyKey
  }: { readonly command: Command; readonly id: string; readonly idempotencyKey: string | null }
) {
  const { account = visit.account, entered } = prepared
  const path = `/dashboard${visit.location.path}`
  const refusal = (message: string) =>
    Effect.succeed<Submitted>({ ok: false, status: 409, code: "", message, param: null })
  return yield* submissions.submit({ account, path, id, idempotencyKey, entered }, command).pipe(
    Effect.catchTags({
      IdempotencyKeyReuse: () =>
        refusal("You already sent this form with other values. Check whether that change was made."),
      IdempotencyKeyInUse: () => refusal("This is still in progress. Wait a moment, then try again.")
    })
  )
})

/** Reads the form; undefined if it has another content type than its page gives it. */
const readSent = (request: Request, { isLong = false, isUpload = false }: Pick<Action, "isLong" | "isUpload">) =>
  isUpload
    ? readUpload(request)
    : Effect.map(readForm(request, { isLong }), (values): Upload | undefined => values && { values, file: null })

/** An action at `/dashboard/{test,live}` + path. */
export const action = <R = never>(made: Action<Services | R>) => {
  NOTICES.set(made.name, made.notice)
  const path = `/dashboard/:mode${made.path}` as const
  const handle = (submissions: Submissions) => (request: Request, params: Params) =>
    withVisit({ request, params, right: made.right }, (visit, visitor) =>
      Effect.gen(function* () {
        const config = yield* PaymentsConfig
        if (!isSameOrigin(config.publicUrl, request)) return foreignFormPage(request)
        const { file, values } = (yield* readSent(request, made)) ?? { file: null, values: undefined }
        const subject = subjectOf(visit.session, visit.location.path)
        const idempotencyKey = idempotencyKeyOf(config, subject, values?.get("token") ?? "")
        if (values === undefined || idempotencyKey === undefined) return foreignFormPage(request)
        if (!(yield* made.allows?.(visit, params) ?? Effect.succeed(true))) return refusalPage(visit, 403)
        const atPage = `/${visit.mode}${fillIn(made.page, params)}` as DashboardPath
        const again = (invalid: Invalid, status: number, preview?: unknown) => {
          const problem: Problem = { ...invalid, action: visit.location.path, values, preview }
          const onPage = visitAt(visit, atPage)
          return render(onPage, made.show(onPage, params, problem), { status }, problem)
        }
        const confirms = made.confirms?.(visit, values) ?? false
        const asks = confirms !== false || Confirmation.hasPassword(values)
        const isRecentEnough = confirms !== "again" && isConfirmed(visit.session, yield* Clock.currentTimeMillis)
        // A forwarded form is checked anew, and a code counts once: the process that runs the command checks both.
        if (asks && !isRecentEnough) yield* requireHere(made.confirms === undefined ? visit.account : INSTALLATION)
        const confirmed = asks && !isRecentEnough ? yield* confirmPassword(request, visit, visitor, values) : visit
        if (HttpServerResponse.isHttpServerResponse(confirmed)) return confirmed
        const prepared = yield* made.prepare(confirmed, params, values, file)
        if (prepared instanceof Invalid) return yield* again(prepared, prepared instanceof Unfinished ? 200 : 400)
        const id = submissions.newId()
        if (prepared.isPreview === true) {
          const { command } = prepared
          const previewed = yield* submit(submissions, visit, prepared, { command, id, idempotencyKey: null })
          if (previewed.ok) return yield* again(new Invalid({}), 200, previewed.body)
          return yield* again(invalidOf(previewed), previewed.status)
        }
        const ofAction = made as Action<never>
        if (prepared.auditedBefore === true)
          yield* auditBefore(visit, entryOf(ofAction, params, prepared), id, idempotencyKey)
        const command =
          prepared.auditedBefore === true ? prepared.command : withAuditEntry(visit, ofAction, params, prepared)
        const submitted = yield* submit(submissions, visit, prepared, { command, id, idempotencyKey })
        if (lacksPassword(submitted)) return respond(yield* Confirmation.passwordPage(visit, values))
        if (!submitted.ok) return yield* again(invalidOf(submitted), submitted.status)
        const next = prepared.next?.(submitted.body as { readonly id?: string })
        if (typeof next === "object") return respond(shell(visit, next), next.status)
        return seeOther(visit.at(next === undefined ? atPage : `/${visit.mode}${next}`, { done: made.name }))
      }).pipe(Effect.catchTag("ResourceMissing", () => Effect.succeed(refusalPage(visit, 404))))
    )
  return Layer.unwrap(
    Effect.map(FormSubmission.make, (submissions) =>
      Layer.merge(
        route<Unavailable, Services | R>("POST", path, handle(submissions) as never),
        // A reload or a bookmark of a form's address leads to the form's page.
        route<Unavailable, Services | R>("GET", path, (request, params) =>
          Effect.succeed(
            modeIn(params) === undefined
              ? redirectToSignIn(request)
              : seeOther(link(locationOf(request), `/${params["mode"]!}${fillIn(made.page, params)}` as DashboardPath))
          )
        )
      )
    )
  )
}

/** Returns the visit if the password was entered recently or is correct now, otherwise the page that asks for it. */
const confirmPassword = Effect.fnUntraced(function* (
  request: Request,
  visit: Visit,
  visitor: Visitor,
  values: FormValues
) {
  const asked = yield* Confirmation.checkPassword(request, visit, visitor, values)
  if (asked !== null) return respond(asked.document, asked.status)
  return { ...visit, session: { ...visit.session, confirmed_at: secondsOf(yield* Clock.currentTimeMillis) } }
})

const lacksPassword = (submitted: Submitted): boolean => !submitted.ok && submitted.param === PASSWORD_FIELD

/** Places a refusal beside its field, in the API's words. */
const invalidOf = ({ besideField, message, param }: Submitted & { readonly ok: false }): Invalid =>
  param === null || param === "id"
    ? new Invalid({}, message)
    : new Invalid({ [param]: message }, null, besideField === undefined ? {} : { [param]: besideField })

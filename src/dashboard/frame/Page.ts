/**
 * How pages and actions of the dashboard are made: `screen` shows something, `action` does something. Both are routes
 * below an environment, `/dashboard/test/…` and `/dashboard/live/…`. docs/dashboard.md shows how one builds with them.
 *
 * Here is what all have in common, in this order: somebody is signed in, has the right by their role, has sent the form
 * from here and for this session, and has proved lately who they are where that is asked for. Only then an action's own
 * code runs. It comes to a command, which is carried out once per form, as over the API, and leaves an audit entry in
 * its own record.
 */
import { isIP } from "node:net"
import { Clock, Effect, Layer, Result } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpServerResponse } from "effect/http"
import { withoutCardNumbers } from "../../domain/Cards.ts"
import { API_VERSION_NEWEST } from "../../domain/ApiVersion.ts"
import type { ResourceMissing } from "../../domain/Errors.ts"
import { secondsOf } from "../../domain/Time.ts"
import { Unavailable } from "../../engine/Accounts.ts"
import type { AccountId } from "../../engine/log/Document.ts"
import type { Command } from "../../http/IdempotentCommand.ts"
import type { Html } from "../../html/Html.ts"
import { html } from "../../html/Html.ts"
import type { FormValues } from "../../html/Forms.ts"
import { idempotencyKeyOf, readForm } from "../../html/Forms.ts"
import { page, seeOther } from "../../html/PageResponse.ts"
import type { PageHandler, PageServices } from "../../html/Routing.ts"
import { routeWith } from "../../html/Routing.ts"
import type { Submissions, Submitted } from "../../html/FormSubmission.ts"
import * as FormSubmission from "../../html/FormSubmission.ts"
import * as Audit from "../../payments/Audit.ts"
import { isConfirmed } from "../../payments/DashboardSessions.ts"
import { PASSWORD_FIELD } from "../../payments/GivenUp.ts"
import type { Passwords } from "../../payments/Passwords.ts"
import { PaymentsConfig } from "../../payments/PaymentsConfig.ts"
import type { Problem } from "./Form.ts"
import * as Confirmation from "./Confirmation.ts"
import { DashboardConfig } from "./DashboardConfig.ts"
import { door, shell } from "./Shell.ts"
import type { Screen } from "./Shell.ts"
import type { DashboardPath } from "./Links.ts"
import { isReturn, link, placeOf } from "./Links.ts"
import type { Right } from "./Rights.ts"
import type { SignInLimits } from "./SignInLimits.ts"
import type { Mode, Visit } from "./Visit.ts"
import { shownAt, subjectOf, visitOf } from "./Visit.ts"
import type { Visitor } from "./Visitors.ts"
import { isFromHere, visitorOf } from "./Visitors.ts"
import { administerAnywhere } from "../../http/forward/Calls.ts"
import { Revealed } from "../../http/OneTimeSecrets.ts"

/** Pages and actions may use these. */
export type Services = PageServices | DashboardConfig | Passwords | SignInLimits

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse
export type Params = Readonly<Record<string, string | undefined>>

/** A page of the dashboard: its forms say where they come from, and nobody else is told. */
export const answer = (document: Html, status = 200, pictures: Screen["pictures"] = []): Response =>
  page(document, { status, pictures, referrerPolicy: "same-origin" })

const notShown = (request: Request, status: 413 | 500 | 503): Response =>
  answer(
    door({
      title: status === 413 ? "This form is too long" : "Please try again",
      depth: placeOf(request).depth,
      content: html`<p>
        ${
          status === 413
            ? "Nothing was done."
            : "Till cannot answer at the moment. What you sent happens once, however often you send it."
        }
      </p>`
    }),
    status
  )

/** A link that signs somebody in is nothing for logs. */
const LINK = /^\/dashboard\/link\/.*/

const guardedRoute = routeWith({
  tooLarge: (request) => notShown(request, 413),
  unavailable: notShown,
  shownPath: (path) => withoutCardNumbers(path.replace(LINK, "/dashboard/link/…"))
})

/**
 * Tells whether a request names this machine, or an address. Another name was perhaps made to lead here by whoever owns
 * it, so that a page of theirs could read the dashboard as its own (DNS rebinding).
 */
const namesThisMachine = ({ headers }: Request): boolean => {
  const name = URL.parse(`http://${headers["host"] ?? ""}`)?.hostname ?? ""
  return /^(?:.+\.)?localhost$/.test(name) || isIP(name.replaceAll(/[[\]]/g, "")) !== 0
}

const misnamed = (request: Request): Response =>
  answer(
    door({
      title: "Open the dashboard as localhost",
      depth: placeOf(request).depth,
      content: html`<p>
        This Till is for its own machine, and was asked for by another name. Open it as <code>localhost</code>, or set
        TILL_PUBLIC_URL to the address that it is to have.
      </p>`
    }),
    403
  )

/** Routes of the dashboard, whose failures look like its pages. */
export const route = <E, R>(method: "GET" | "POST", path: `/${string}`, handler: PageHandler<E, R>) =>
  guardedRoute<E, R | DashboardConfig>(method, path, (request, params) =>
    Effect.flatMap(DashboardConfig, ({ isForThisMachine }) =>
      isForThisMachine && !namesThisMachine(request) ? Effect.succeed(misnamed(request)) : handler(request, params)
    )
  )

const modeOf = ({ mode }: Params): Mode | undefined => (mode === "test" || mode === "live" ? mode : undefined)

/** Leads somebody who is not signed in to where they can, and back to this page. */
export const toSignIn = (request: Request): Response => {
  const place = placeOf(request)
  const to = request.method !== "POST" && isReturn(place.path) ? place.path : null
  return seeOther(link(place, "/sign-in", { to }))
}

/** Leads to the same address in the other environment. */
const theOther = (visit: Visit): Html => {
  const other = visit.livemode ? "test" : "live"
  const path = visit.place.path.replace(/^\/(?:test|live)(?=\/|$)/, `/${other}`) as DashboardPath
  return html`<a href="${visit.at(path)}">the ${other} environment</a>`
}

export const refusal = (visit: Visit, status: 403 | 404): Response =>
  answer(
    shell(visit, {
      section: null,
      ...(status === 403
        ? {
            title: "Not with your role",
            content: html`<p class="empty">
              This takes another role than yours, ${visit.person.role}. An owner of ${visit.merchant.name} can change
              that.
            </p>`
          }
        : {
            title: "Nothing here",
            content: html`<p class="empty">
              There is nothing at this address in the ${visit.mode} environment of ${visit.merchant.name}. Perhaps it is
              in ${theOther(visit)}.
            </p>`
          })
    }),
    status
  )

/**
 * Makes what is shown, or leads elsewhere by a response; undefined where there is nothing, and so does
 * `ResourceMissing`.
 */
export type Show<R = Services> = (
  visit: Visit,
  params: Params,
  problem: Problem | null
) => Effect.Effect<Screen | Response | undefined, ResourceMissing | Unavailable, R>

const textOf = ({ errors, message }: Problem): string | null => message ?? Object.values(errors)[0] ?? null

/** `more` is what else is to be said of it, and `problem` what was wrong with a form of it. */
const shown = <R>(
  visit: Visit,
  show: Effect.Effect<Screen | Response | undefined, ResourceMissing | Unavailable, R>,
  more: Pick<Screen, "notice" | "status">,
  problem: Problem | null = null
) =>
  show.pipe(
    Effect.catchTag("ResourceMissing", () => Effect.succeed(undefined)),
    Effect.map((made) => {
      if (made === undefined) return refusal(visit, 404)
      if (HttpServerResponse.isHttpServerResponse(made)) return made
      const screen = { ...made, ...more }
      const document = shell(visit, screen)
      // The form is gone if what somebody else has done is why it was refused.
      const isLost = problem !== null && !document.text.includes(` action="${visit.at(problem.action)}"`)
      const said = isLost ? shell(visit, { ...screen, refusal: textOf(problem) }) : document
      return answer(said, screen.status, screen.pictures)
    })
  )

/** What actions say on the page that they lead to, by their names. */
const SAYINGS = new Map<string, string>()

/** The names of all actions, as the audit log has them. */
export const actionNames = (): ReadonlyArray<string> => [...SAYINGS.keys()].toSorted()

/** A right, or the one that is needed in the environment: keys of live mode take another than those of test mode. */
export type Needed = Right | ((visit: Visit) => Right)

interface Asked {
  readonly request: Request
  readonly params: Params
  readonly right: Needed
}

/** Goes on with the visit of somebody who is signed in and has the right. */
const asVisit = <E, R>(
  { params, request, right }: Asked,
  go: (visit: Visit, visitor: Visitor) => Effect.Effect<Response, E, R>
) =>
  Effect.gen(function* () {
    const visitor = yield* visitorOf(request)
    if (visitor === undefined) return request.method === "POST" ? signedOut(request) : toSignIn(request)
    const mode = modeOf(params)
    const visit = visitOf(request, visitor, mode ?? "test", yield* PaymentsConfig)
    if (mode === undefined) return refusal(visit, 404)
    return visit.may(typeof right === "string" ? right : right(visit)) ? yield* go(visit, visitor) : refusal(visit, 403)
  })

/** A form of a session that has ended. Nothing is kept of it. */
export const signedOut = (request: Request): Response => {
  const place = placeOf(request)
  // Where a form is sent to leads to its page.
  const to = isReturn(place.path) ? place.path : null
  return answer(
    door({
      title: "You are signed out",
      depth: place.depth,
      content: html`<p>Nothing was done.</p>
        <p><a class="button primary" href="${link(place, "/sign-in", { to })}">Sign in</a></p>`
    }),
    401
  )
}

/** A form that is none of the dashboard's, or of another session. */
const notFromHere = (request: Request): Response => {
  const place = placeOf(request)
  return answer(
    door({
      title: "This form is not from here",
      depth: place.depth,
      content: html`<p>Nothing was done. Open the page again, and send its own form.</p>
        <p><a class="button primary" href="${link(place, "")}">To the dashboard</a></p>`
    }),
    403
  )
}

/** A page at `/dashboard/{test,live}` + path, for people who have the right. */
export const screen = <R = never>(path: `/${string}` | "", right: Needed, show: Show<Services | R>) =>
  route<ResourceMissing | Unavailable, Services | R>("GET", `/dashboard/:mode${path}`, (request, params) =>
    asVisit({ request, params, right }, (visit) => {
      const notice = SAYINGS.get(visit.query.get("done") ?? "") ?? null
      return shown(visit, show(visit, params, null), { notice })
    })
  )

/** A file at `/dashboard/{test,live}` + path, for people who have the right. */
export const download = (
  path: `/${string}`,
  right: Right,
  make: (visit: Visit) => Effect.Effect<Response, Unavailable, Services>
) =>
  route<Unavailable, Services>("GET", `/dashboard/:mode${path}`, (request, params) =>
    asVisit({ request, params, right }, make)
  )

/** An action has looked at its form, and this is what it wants done. */
export interface Doing {
  readonly command: Command
  /** What was entered: sent again with other values, the form is refused. */
  readonly entered: unknown
  /** The environment's account if left out. */
  readonly account?: AccountId
  /** For the audit log: of what, and what of it. The first `id` of the path if left out. */
  readonly subject?: string | null
  readonly detail?: string | null
  /**
   * True for a command whose record can hold no entry of the audit log. It is written before, in the installation's
   * account, once per form.
   */
  readonly auditedBefore?: boolean
  /**
   * True if somebody only wants to see what it comes to: the command changes nothing, so there is no entry, and the
   * form can still be sent. Its page is shown again, with what the command answered.
   */
  readonly isPreview?: boolean
  /** Leads on to another page, or shows something this once, such as a secret. The page of the form if left out. */
  readonly next?: (result: { readonly id?: string } & Readonly<Record<string, unknown>>) => `/${string}` | Screen
}

/** Something is wrong with what was entered: by field, or as a whole. */
export class Invalid {
  readonly errors: Readonly<Record<string, string>>
  readonly message: string | null
  constructor(errors: Readonly<Record<string, string>>, message: string | null = null) {
    this.errors = errors
    this.message = message
  }
}

export interface Action<R = Services> {
  /** In the audit log: `refund.create`. */
  readonly name: string
  readonly right: Needed
  /** The page that its form is on, which is shown again if something is wrong. */
  readonly of: `/${string}` | ""
  /** Where its form is sent to. */
  readonly path: `/${string}`
  readonly show: Show<R>
  /** Said once it is done. */
  readonly says: string
  /** True for a form of many texts, which may be as long as a request. */
  readonly isLong?: boolean
  /** Whether somebody has to have proved lately who they are. */
  readonly confirms?: (visit: Visit, values: FormValues) => boolean
  readonly does: (
    visit: Visit,
    params: Params,
    values: FormValues
  ) => Effect.Effect<Doing | Invalid, ResourceMissing | Unavailable, R>
}

const filled = (pattern: string, params: Params): string =>
  pattern.replaceAll(/:(\w+)/g, (_, name: string) => params[name] ?? "")

const idOf = (answered: object): string | undefined =>
  ((answered instanceof Revealed ? answered.value : answered) as { readonly id?: string }).id

/** The entry of the audit log. */
const entryOf = ({ name }: Action<never>, params: Params, { detail, subject }: Doing, made?: string) => ({
  action: name,
  subject: subject ?? params["id"] ?? made ?? null,
  detail: detail ?? null
})

/** Carries the command out with its audit entry. A decline that is kept has happened as well. */
const audited = (visit: Visit, action: Action<never>, params: Params, doing: Doing): Command =>
  Effect.flatMap(doing.command, (answered) => {
    const made = Result.isResult(answered) ? undefined : idOf(answered)
    return Effect.as(Audit.record(visit.person, entryOf(action, params, doing, made)), answered)
  })

/** Writes the entry of what is about to be done, wherever the installation's account is. */
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
  doing: Doing,
  {
    command,
    id,
    idempotencyKey
  }: { readonly command: Command; readonly id: string; readonly idempotencyKey: string | null }
) {
  const { account = visit.account, entered } = doing
  const path = `/dashboard${visit.place.path}`
  const refused = (status: number, message: string): Submitted => ({
    ok: false,
    status,
    code: "",
    message,
    param: null
  })
  return yield* submissions.submit({ account, path, id, idempotencyKey, entered }, command).pipe(
    Effect.catchTags({
      IdempotencyKeyReuse: () =>
        Effect.succeed(refused(409, "This form was sent before, with other values. Look whether that has been done.")),
      IdempotencyKeyInUse: () => Effect.succeed(refused(409, "This is still being done. Wait a moment."))
    })
  )
})

/** Does something at `/dashboard/{test,live}` + path, for people who have the right. */
export const action = <R = never>(made: Action<Services | R>) => {
  SAYINGS.set(made.name, made.says)
  const path = `/dashboard/:mode${made.path}` as const
  const handle = (submissions: Submissions) => (request: Request, params: Params) =>
    asVisit({ request, params, right: made.right }, (visit, visitor) =>
      Effect.gen(function* () {
        const config = yield* PaymentsConfig
        if (!isFromHere(config.publicUrl, request)) return notFromHere(request)
        const values = yield* readForm(request, made)
        const subject = subjectOf(visit.session, visit.place.path)
        const idempotencyKey = idempotencyKeyOf(config, subject, values?.get("token") ?? "")
        if (values === undefined || idempotencyKey === undefined) return notFromHere(request)
        const atPage = `/${visit.mode}${filled(made.of, params)}` as DashboardPath
        const again = ({ errors, message }: Invalid, status: number, preview?: unknown) => {
          const problem: Problem = { action: visit.place.path, message, errors, values, preview }
          const onPage = shownAt(visit, atPage)
          return shown(onPage, made.show(onPage, params, problem), { status }, problem)
        }
        const asks = made.confirms?.(visit, values) === true || Confirmation.isAnswered(values)
        const confirmed = asks ? yield* confirm(request, visit, visitor, values) : visit
        if (HttpServerResponse.isHttpServerResponse(confirmed)) return confirmed
        const doing = yield* made.does(confirmed, params, values)
        if (doing instanceof Invalid) return yield* again(doing, 400)
        const id = submissions.newId()
        if (doing.isPreview === true) {
          const { command } = doing
          const previewed = yield* submit(submissions, visit, doing, { command, id, idempotencyKey: null })
          if (previewed.ok) return yield* again(new Invalid({}), 200, previewed.body)
          return yield* again(invalidOf(previewed), previewed.status)
        }
        const ofAction = made as Action<never>
        if (doing.auditedBefore === true)
          yield* auditBefore(visit, entryOf(ofAction, params, doing), id, idempotencyKey)
        const command = doing.auditedBefore === true ? doing.command : audited(visit, ofAction, params, doing)
        const submitted = yield* submit(submissions, visit, doing, { command, id, idempotencyKey })
        if (lacksPassword(submitted)) return answer(Confirmation.asking(visit, values, null))
        if (!submitted.ok) return yield* again(invalidOf(submitted), submitted.status)
        const next = doing.next?.(submitted.body as { readonly id?: string })
        if (typeof next === "object") return answer(shell(visit, next), next.status)
        return seeOther(visit.at(next === undefined ? atPage : `/${visit.mode}${next}`, { done: made.name }))
      }).pipe(Effect.catchTag("ResourceMissing", () => Effect.succeed(refusal(visit, 404))))
    )
  return Layer.unwrap(
    Effect.map(FormSubmission.make, (submissions) =>
      Layer.merge(
        route<Unavailable, Services | R>("POST", path, handle(submissions) as never),
        // Whoever loads the answer to a form again, or has kept its address, sees the page that it is of.
        route<Unavailable, Services | R>("GET", path, (request, params) =>
          Effect.succeed(
            modeOf(params) === undefined
              ? toSignIn(request)
              : seeOther(link(placeOf(request), `/${params["mode"]!}${filled(made.of, params)}` as DashboardPath))
          )
        )
      )
    )
  )
}

/** The visit of somebody who has proved lately, or proves now, who they are; else the page that asks for it. */
const confirm = Effect.fnUntraced(function* (request: Request, visit: Visit, visitor: Visitor, values: FormValues) {
  const now = yield* Clock.currentTimeMillis
  if (isConfirmed(visit.session, now)) return visit
  const asked = yield* Confirmation.ask(request, visit, visitor, values)
  if (asked !== null) return answer(asked.document, asked.status)
  return { ...visit, session: { ...visit.session, confirmed_at: secondsOf(now) } }
})

/** True where a command takes somebody who has proved lately who they are. */
const lacksPassword = (submitted: Submitted): boolean => !submitted.ok && submitted.param === PASSWORD_FIELD

/** A refusal beside the field that it is about. The words are those of the API. */
const invalidOf = ({ message, param }: Submitted & { readonly ok: false }): Invalid =>
  param === null || param === "id" ? new Invalid({}, message) : new Invalid({ [param]: message }, null)

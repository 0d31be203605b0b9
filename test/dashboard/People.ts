/** Visitors of the dashboard: signing in, opening pages and sending forms. */
import { Effect } from "effect"
import type { Page as BrowserPage } from "playwright-core"
import type { Person, Role } from "../../src/domain/Person.ts"
import type { Transaction } from "../../src/engine/actor/Transaction.ts"
import { INSTALLATION } from "../../src/payments/shared/AccountIds.ts"
import * as DashboardSessions from "../../src/payments/team/DashboardSessions.ts"
import * as People from "../../src/payments/team/People.ts"
import type { MemoryTillWithPages } from "../support/MemoryTillWithPages.ts"
import { visit } from "../support/fixtures/CheckoutPages.ts"

/** A link that signs a new person of the merchant in, or its first owner. */
export const linkFor = (server: MemoryTillWithPages, role?: Role): Promise<string> =>
  linkTo(
    server,
    role === undefined ? People.ensureOwner(server.merchantId) : People.add(server.merchantId, { email: null, role })
  )

/** A sign-in link of a person. */
export const linkTo = async <E>(
  { accounts, url }: MemoryTillWithPages,
  person: Effect.Effect<Pick<Person, "id">, E, Transaction>
): Promise<string> => {
  const link = Effect.flatMap(person, (person) => DashboardSessions.makeLink(person))
  return url + DashboardSessions.pathOf(await Effect.runPromise(Effect.orDie(accounts.run(INSTALLATION, link))))
}

/** The `Cookie` header of a browser after this response. */
export const cookieOf = (headers: Headers): string =>
  headers
    .getSetCookie()
    .map((cookie) => cookie.split(";", 1)[0]!)
    .join("; ")

/** A browser without scripts that keeps its cookie and follows redirects. */
export interface Tab {
  cookie: string
  readonly get: (path: string, headers?: Readonly<Record<string, string>>) => Promise<Page>
  readonly post: (
    path: string,
    /** A form with a file is sent as `multipart/form-data`. */
    values: Readonly<Record<string, string | Blob>>,
    headers?: Readonly<Record<string, string>>
  ) => Promise<Page>
  /** Opens a sign-in link and sends its form. */
  readonly signIn: (link: string) => Promise<Page>
}

export interface Page {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The page's own address. */
  readonly url: string
}

type Values = Readonly<Record<string, string | Blob>>

const isUpload = (values: Values): boolean => Object.values(values).some((value) => typeof value !== "string")

/** The body of a form, as a browser encodes it. */
const bodyOf = (values: Values): FormData | string => {
  const entries = Object.entries(values)
  if (!isUpload(values)) return new URLSearchParams(entries as Array<[string, string]>).toString()
  const body = new FormData()
  for (const [name, value] of entries) body.append(name, value)
  return body
}

export const openTab = (server: Pick<MemoryTillWithPages, "url">): Tab => {
  const tab: Tab = {
    cookie: "",
    get: async (path, headers = {}) => {
      const url = new URL(path, `${server.url}/dashboard/test`).href
      const page = await visit(url, { cookie: tab.cookie, ...headers })
      return await followed({ ...page, url })
    },
    post: async (path, values, headers = {}) => {
      const url = new URL(path, `${server.url}/dashboard/test`).href
      const response = await fetch(url, {
        method: "POST",
        redirect: "manual",
        headers: {
          ...(isUpload(values) ? {} : { "content-type": "application/x-www-form-urlencoded" }),
          "sec-fetch-site": "same-origin",
          origin: server.url,
          cookie: tab.cookie,
          ...headers
        },
        body: bodyOf(values)
      })
      return await followed({ status: response.status, headers: response.headers, text: await response.text(), url })
    },
    signIn: async (link) => {
      const { action, values } = formTo(await tab.get(link), new URL(link).pathname)
      return await tab.post(action, values)
    }
  }
  const followed = async (page: Page): Promise<Page> => {
    const cookie = cookieOf(page.headers)
    if (cookie !== "") tab.cookie = cookie
    if (page.status !== 303) return page
    return await tab.get(new URL(page.headers.get("location")!, page.url).href)
  }
  return tab
}

/** Signs in by a link in a real browser. */
export const signInBy = async (page: BrowserPage, link: string): Promise<void> => {
  await page.goto(link)
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.waitForURL(/\/dashboard\/test$/)
}

/** A tab in which a new person of that role is signed in, or the first owner. */
export const signedIn = async (server: MemoryTillWithPages, role?: Role): Promise<Tab> => {
  const tab = openTab(server)
  await tab.signIn(await linkFor(server, role))
  return tab
}

/** Decodes the entities of HTML text. */
const unescape = (text: string): string =>
  text
    .replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)))
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&amp;", "&")

/** Forms of a page with address and values. Choices are left empty. */
export const formsIn = ({ text, url }: Page) =>
  [...text.matchAll(/<form method="post" action="([^"]+)">([\s\S]*?)<\/form>/g)].map(([, action, content]) => ({
    action: new URL(action!, url).pathname,
    values: Object.fromEntries(
      [...content!.matchAll(/<(?:input|select|textarea)\s[^>]*>(?:\n([^<]*)<\/textarea>)?/g)]
        // A browser does not send a field without a name.
        .filter(([field]) => /\sname="/.test(field))
        .filter(([field]) => !field.includes('type="checkbox"') || /\schecked=/.test(field))
        .map(([field, text]) => [
          unescape(/\sname="([^"]+)"/.exec(field)![1]!),
          unescape(text ?? /\svalue="([^"]*)"/.exec(field)?.[1] ?? "")
        ])
    ) as Record<string, string>
  }))

/** The form of a page whose address ends like this. */
export const formTo = (page: Page, end: string) => {
  const form = formsIn(page).find(({ action }) => action.endsWith(end))
  if (form === undefined) throw new Error(`No form to ${end} in ${page.url}: ${page.text}`)
  return form
}

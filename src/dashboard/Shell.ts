/** What every page of the dashboard has around its content: the way to the others, the environment, and the way out. */
import type { Child, Html } from "../pages/Html.ts"
import { html } from "../pages/Html.ts"
import { layout } from "../pages/Layout.ts"
import type { DashboardPath } from "./Place.ts"
import type { Right } from "./Rights.ts"
import type { Visit } from "./Visit.ts"

interface Section {
  readonly name: string
  /** Below the environment. */
  readonly path: "" | `/${string}`
  readonly right: Right
}

/** The parts of the dashboard, in their order. A page names the one that it belongs to. */
export const SECTIONS = [
  { name: "Home", path: "", right: "see" },
  { name: "Payments", path: "/payments", right: "see" },
  { name: "Customers", path: "/customers", right: "see" },
  { name: "Products", path: "/products", right: "see" },
  { name: "Webhooks", path: "/webhooks", right: "see" },
  { name: "Requests", path: "/requests", right: "see" },
  { name: "Developers", path: "/developers", right: "see" },
  { name: "Team", path: "/team", right: "team" }
] as const satisfies ReadonlyArray<Section>

export type SectionName = (typeof SECTIONS)[number]["name"]

/** The content of a page of the dashboard. */
export interface Screen {
  readonly title: string
  readonly section: SectionName | null
  readonly content: Child
  /** Beside the title: badges, or what can be done. */
  readonly aside?: Child
  /** The way back, to a list: its path below the environment, and its name. */
  readonly back?: readonly [path: `/${string}`, name: string]
  /** 200 by default. */
  readonly status?: number
  /** The page is shown again when documents of these kinds change, or `event` or `delivery`. */
  readonly live?: ReadonlyArray<string>
  /** Addresses of pictures from elsewhere that the page shows. */
  readonly pictures?: ReadonlyArray<string | null>
  /** Said at the top: what came of a form. */
  readonly notice?: string | null
}

export const shell = (visit: Visit, screen: Screen): Html =>
  layout({
    title: `${screen.title} · ${visit.merchant.name}`,
    kind: "dashboard",
    depth: visit.place.depth,
    script: true,
    content: html`<a class="skip" href="#content">To the content</a>
      ${sidebar(visit, screen.section)}
      <main id="content" tabindex="-1" ${liveData(visit, screen.live)}>
        ${screen.notice != null && html`<p class="said" role="status">${screen.notice}</p>`}
        <header class="head">
          ${screen.back !== undefined && html`<p class="back"><a href="${visit.to(screen.back[0])}">${screen.back[1]}</a></p>`}
          <h1>${screen.title}</h1>
          ${screen.aside}
        </header>
        ${screen.content}
      </main>
      ${keys()}`
  })

const liveData = (visit: Visit, kinds: ReadonlyArray<string> = []): Child =>
  kinds.length > 0 && html`data-live="${kinds.join(" ")}" data-stream="${visit.to("/live")}"`

const sidebar = (visit: Visit, current: SectionName | null): Html =>
  html`<header class="side">
    <p class="merchant"><bdi>${visit.merchant.name}</bdi></p>
    ${switchOf(visit)}
    <nav aria-label="Dashboard">
      <ul>
        ${SECTIONS.filter(({ right }) => visit.may(right)).map(
          ({ name, path }) =>
            html`<li><a href="${visit.to(path)}" ${name === current && html`aria-current="page"`}>${name}</a></li>`
        )}
      </ul>
    </nav>
    <div class="me">
      <a href="${visit.to("/account")}"><bdi>${visit.person.email ?? "Your account"}</bdi></a>
      ${signOutForm(visit)}
    </div>
  </header>`

/** Leads to the same part of the other environment. An object is in one of them only. */
const switchOf = (visit: Visit): Html => {
  const [, , part = ""] = visit.place.path.split("/")
  const path = SECTIONS.find((section) => section.path === `/${part}`)?.path ?? ""
  const option = (mode: "test" | "live", name: string) =>
    html`<a href="${visit.at(`/${mode}${path}`)}" ${visit.mode === mode && html`aria-current="true"`}>${name}</a>`
  return html`<div class="modes ${visit.mode}" role="group" aria-label="Environment">
    ${option("test", "Test")} ${option("live", "Live")}
  </div>`
}

export const SIGN_OUT: DashboardPath = "/sign-out"

const signOutForm = (visit: Visit): Html =>
  html`<form method="post" action="${visit.at(SIGN_OUT)}">
    <input type="hidden" name="token" value="${visit.token(SIGN_OUT)}" />
    <button type="submit" class="link">Sign out</button>
  </form>`

/** What keys do; the script shows it. */
const keys = (): Html =>
  html`<dialog class="keys" aria-label="Keys">
    <h2>Keys</h2>
    <dl>
      ${[
        ["/", "Search or filter"],
        ["j, k", "Next or previous row"],
        ["Enter", "Open the row"],
        ["g, then p", "Payments; h, c, d in the same way: Home, Customers, Developers"],
        ["?", "This list"]
      ].map(
        ([key, text]) =>
          html`<div>
            <dt><kbd>${key}</kbd></dt>
            <dd>${text}</dd>
          </div>`
      )}
    </dl>
    <form method="dialog"><button>Close</button></form>
  </dialog>`

/** A page for somebody who is not signed in, or who has to do something first. */
export const door = ({ content, depth, title }: { title: string; depth: number; content: Child }): Html =>
  layout({
    title: `${title} · Till`,
    kind: "dashboard door",
    depth,
    content: html`<main>
      <p class="till">Till</p>
      <h1>${title}</h1>
      ${content}
    </main>`
  })

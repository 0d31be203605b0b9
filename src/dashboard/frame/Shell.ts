/** The frame around every page of the dashboard: navigation, environment switch and sign-out. */
import { type Child, html, type Html } from "../../html/Html.ts"
import { layout } from "../../html/Layout.ts"
import type { DashboardPath } from "./Links.ts"
import type { Right } from "./Rights.ts"
import { inZone } from "./TimeZones.ts"
import type { Visit } from "./Visit.ts"

interface Section {
  readonly name: string
  readonly path: "" | `/${string}`
  readonly right: Right
  /** The key that opens the section after `g`. */
  readonly key: string
  /** SVG path of the icon, on a 16 by 16 grid. */
  readonly icon: string
}

/** Sections of the navigation, in order. A page names the section that it belongs to. */
export const SECTIONS = [
  { name: "Home", path: "", right: "see", key: "h", icon: "M 2.5 7.5 8 3l5.5 4.5v6h-4v-4h-3v4h-4z" },
  { name: "Payments", path: "/payments", right: "see", key: "p", icon: "m1.5 3.5h13v9h-13zM1.5 6.5h13M4 10h2" },
  {
    name: "Customers",
    path: "/customers",
    right: "see",
    key: "c",
    icon: "m8 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M3 13.5c0-2.75 2-4 5-4s5 1.25 5 4"
  },
  {
    name: "Products",
    path: "/products",
    right: "see",
    key: "o",
    icon: "M 2.5 5 8 2l5.5 3v6L8 14l-5.5-3zM2.5 5 8 8l5.5-3M8 8v6"
  },
  { name: "Webhooks", path: "/webhooks", right: "see", key: "w", icon: "M 9 1.5 3.5 9H8l-1 5.5L12.5 7H8z" },
  { name: "Requests", path: "/requests", right: "see", key: "r", icon: "m2.5 4h11M2.5 8h11M2.5 12h7" },
  {
    name: "Settings",
    path: "/settings",
    right: "build",
    key: "s",
    icon: "M 2 4.5h7M13 4.5h1M2 11.5h1M7 11.5h7M11 2.75a1.75 1.75 0 1 0 0 3.5 1.75 1.75 0 0 0 0-3.5M5 9.75a1.75 1.75 0 1 0 0 3.5 1.75 1.75 0 0 0 0-3.5"
  },
  { name: "Developers", path: "/developers", right: "see", key: "d", icon: "M 5.5 4 1.5 8l4 4M10.5 4l4 4-4 4" },
  {
    name: "Team",
    path: "/team",
    right: "team",
    key: "t",
    icon: "m6 7a2 2 0 1 0 0-4.5A2 2 0 0 0 6 7M1.5 13c0-2 2-3.5 4.5-3.5s4.5 1.5 4.5 3.5M10.5 3a2 2 0 0 1 0 4M12.5 9.5c1 .5 2 1.5 2 3"
  }
] as const satisfies ReadonlyArray<Section>

export type SectionName = (typeof SECTIONS)[number]["name"]

export interface PageContent {
  readonly title: string
  readonly section: SectionName | null
  readonly content: Child
  /** Badges or buttons beside the title. */
  readonly aside?: Child
  /** A link back to the list: path below the environment, and label. */
  readonly back?: readonly [path: `/${string}`, name: string]
  /** 200 by default. */
  readonly status?: number
  /** Kinds of documents, or `event` or `delivery`, whose changes reload the page. */
  readonly live?: ReadonlyArray<string>
  /** URLs of external images on the page. */
  readonly pictures?: ReadonlyArray<string | null>
  /** Shown at the top after a form has succeeded. */
  readonly notice?: string | null
  /** Shown at the top: the error of a form that the page does not have. */
  readonly refusal?: string | null
}

export const shell = (visit: Visit, page: PageContent): Html =>
  inZone(
    layout({
      title: `${page.title} · ${visit.merchant.name}`,
      kind: "dashboard",
      depth: visit.location.depth,
      script: true,
      content: html`<a class="skip" href="#content">Skip to content</a>
        ${sidebar(visit, page.section)}
        <main id="content" tabindex="-1" data-page="${visit.here({})}" ${zoneData(visit)} ${liveData(visit, page.live)}>
          ${!visit.takesCards && noCards(visit)}
          ${page.notice != null && html`<p class="said" role="status">${page.notice}</p>`}
          ${page.refusal != null && html`<p class="message" role="alert">${page.refusal}</p>`}
          <header class="head">
            ${page.back !== undefined && html`<p class="back"><a href="${visit.to(page.back[0])}">${page.back[1]}</a></p>`}
            <h1>${page.title}</h1>
            ${page.live !== undefined && html`<span class="updates">Updates live</span>`} ${page.aside}
          </header>
          ${page.content}
          <p class="zone">
            Times are in <span>${visit.zone}</span>. <a href="${visit.to("/account")}#time-zone">Change</a>
          </p>
        </main>
        <p class="unseen" id="heard" role="status"></p>
        ${keys(visit)}`
    }),
    visit.zone
  )

/** The first paragraph of each page in live mode while no card can be charged (semantics dashboard.live_mode). */
const noCards = ({ merchant, publicUrl }: Visit): Html =>
  html`<p class="message no-cards">
    <strong><bdi>${merchant.name}</bdi> cannot take cards yet.</strong> No card processor is connected to this Till, so
    payers read this too, before they enter a card. Use test mode to try everything, and read
    <a href="${publicUrl}/docs/guide/live">how to go live</a>.
  </p>`

/** The zone in which the script shows times; without one it takes the browser's. */
const zoneData = ({ person, zone }: Visit): Child => person.time_zone !== undefined && html`data-zone="${zone}"`

const liveData = (visit: Visit, kinds: ReadonlyArray<string> = []): Child =>
  kinds.length > 0 && html`data-live="${kinds.join(" ")}" data-stream="${visit.to("/live")}"`

const sidebar = (visit: Visit, current: SectionName | null): Html =>
  html`<header class="side">
    <p class="merchant"><bdi>${visit.merchant.name}</bdi></p>
    ${switchOf(visit)}
    <details class="menu">
      <summary class="button">Menu</summary>
      <form class="find" method="get" action="${visit.to("/find")}" role="search" aria-label="Everything">
        <input
          type="search"
          name="query"
          aria-label="Search by name, email, order, amount or ID"
          placeholder="Search"
          autocomplete="off"
        />
      </form>
      <nav aria-label="Dashboard">
        <ul>
          ${sectionsOf(visit).map(
            ({ icon, key, name, path }) =>
              html`<li data-key="${key}">
                <svg viewBox="0 0 16 16" aria-hidden="true"><path d="${icon}" /></svg
                ><a href="${visit.to(path)}" ${name === current && html`aria-current="page"`}>${name}</a>
              </li>`
          )}
        </ul>
      </nav>
      <div class="me">
        <a href="${visit.to("/account")}"><bdi>${visit.person.email ?? "Your account"}</bdi></a>
        ${signOutForm(visit)}
      </div>
    </details>
  </header>`

const sectionsOf = (visit: Visit) => SECTIONS.filter(({ right }) => visit.may(right))

/** Switches to the same section in the other environment. An object exists in one environment only. */
const switchOf = (visit: Visit): Html => {
  const [, , part = ""] = visit.location.path.split("/")
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

/** The setting for single-key shortcuts in this browser. The script stores it and shows the checkbox. */
export const keysSetting = (): Html =>
  html`<label class="check" hidden><input type="checkbox" data-keys="" /> Single-key shortcuts</label>`

/** The list of keyboard shortcuts. The script opens it. */
const keys = (visit: Visit): Html =>
  html`<dialog class="keys" aria-label="Keyboard shortcuts">
    <h2>Keyboard shortcuts</h2>
    <dl>
      ${[
        ["/", "Filter or search"],
        ["j, k", "Next or previous row"],
        ["Enter", "Open the row"],
        ...sectionsOf(visit).map(({ key, name }) => [`g, then ${key}`, name] as const),
        ["Escape", "Close a form"],
        ["?", "Show this list"]
      ].map(
        ([key, text]) =>
          html`<div>
            <dt><kbd>${key}</kbd></dt>
            <dd>${text}</dd>
          </div>`
      )}
    </dl>
    ${keysSetting()}
    <form method="dialog"><button>Close</button></form>
  </dialog>`

/** A page without navigation, for visitors who are not signed in or have to do something first. */
export const plainPage = ({ content, depth, title }: { title: string; depth: number; content: Child }): Html =>
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

/** The search without the script: the same entries, found on the server. */
import { html } from "../../html/Html.ts"
import type { Entry, Page } from "./Frame.ts"

const RESULTS_MAX = 30

/** Returns the entries that have all words of a query, those with the words in the title first. */
export const found = (entries: ReadonlyArray<Entry>, query: string): ReadonlyArray<Entry> => {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")
  if (words.length === 0) return []
  const all = (text: string) => words.every((word) => text.includes(word))
  const titled = entries.filter(({ title }) => all(title.toLowerCase()))
  const others = entries.filter((entry) => !titled.includes(entry) && all(`${entry.title} ${entry.text}`.toLowerCase()))
  return [...titled, ...others].slice(0, RESULTS_MAX)
}

export const searchPage = (
  query: string,
  entries: ReadonlyArray<Entry>
): Pick<Page, "path" | "title" | "section" | "content"> => ({
  path: "/docs/search",
  title: "Search",
  section: null,
  content: (link) =>
    html`<h1>Search</h1>
      <p>${entries.length === 0 ? "Nothing found for" : "Results for"} “${query}”</p>
      <ul>
        ${entries.map(({ path, title }) => html`<li><a href="${link(path)}">${title}</a></li>`)}
      </ul>`
})

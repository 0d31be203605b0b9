/** The start of most tests of the dashboard, and how they read pages. */
import { afterAll } from "@effect/vitest"
import type { Role } from "../../src/domain/Person.ts"
import { start } from "../support/MemoryTillWithPages.ts"
import { type Page, signedIn } from "./People.ts"

/** Starts a server for a test file, which stops after its last test, and signs in the first owner or a new person. */
export const openDashboard = async (role?: Role) => {
  const server = await start()
  afterAll(() => server.close())
  return { server, tab: await signedIn(server, role) }
}

export const textIn = (html: string): string =>
  html
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim()

/** The text of a page's main part in one line. */
export const textOf = ({ text }: Pick<Page, "text">): string => textIn(text.replace(/^[\s\S]*<main/, "<main"))

/** The start of most tests of the dashboard, in one place. */
import { afterAll } from "@effect/vitest"
import type { Role } from "../../src/domain/Person.ts"
import { start } from "../support/MemoryTillWithPages.ts"
import { signedIn } from "./People.ts"

/** Starts a server for a test file, which stops after its last test, and signs in the first owner or a new person. */
export const openDashboard = async (role?: Role) => {
  const server = await start()
  afterAll(() => server.close())
  return { server, tab: await signedIn(server, role) }
}

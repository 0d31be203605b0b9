// Vitest's globalSetup: one Till for the whole run.
import { startTill } from "./till.mjs"

export default async (project) => {
  const { stop, ...till } = await startTill()
  project.provide("till", till)
  return stop
}

/** Chooses the seed of the run and prints it (vitest's `globalSetup`); `TILL_SEED` replays one. */
import type { TestProject } from "vitest/node"

export default function setup(project: TestProject): void {
  const given = process.env["TILL_SEED"]
  const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given)
  if (!Number.isSafeInteger(seed) || seed < 0) throw new Error("TILL_SEED must be a whole number from 0")
  project.provide("seed", seed)
  console.log(`TILL_SEED=${seed}`)
}

/** One Postgres for the whole run, started before the first test file and removed after the last. */
import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/SeedRun.ts", "test/support/Postgres.ts"],
    setupFiles: ["test/support/SeedProperties.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    reporters: ["default"]
  }
})

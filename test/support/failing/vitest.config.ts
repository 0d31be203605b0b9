/** Runs the failing tests as the repository's vitest.config.ts runs those of a kind. */
import * as Path from "node:path"
import { defineConfig } from "vitest/config"

const support = Path.resolve(import.meta.dirname, "..")

export default defineConfig({
  test: {
    name: "unit",
    root: Path.resolve(support, "../.."),
    include: ["test/support/failing/Failing.ts"],
    globalSetup: [Path.join(support, "SeedRun.ts")],
    setupFiles: [Path.join(support, "FileReport.ts")],
    alias: [{ find: /^@effect\/vitest$/u, replacement: Path.join(support, "Properties.ts") }],
    reporters: [Path.join(support, "Report.ts")]
  }
})

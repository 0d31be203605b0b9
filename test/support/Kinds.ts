/**
 * The kinds of tests. A file's ending names its kind, which determines the resources of its tests; each kind is a
 * project of vitest. `npm test` runs the kinds that need neither another process nor a browser, `npm run test:all` runs
 * all.
 */

export interface Kind {
  /** Vitest's project: `npm test -- --project NAME`. */
  readonly name: "e2e" | "browser" | "pg" | "sim" | "prop" | "bench" | "unit"
  readonly include: ReadonlyArray<string>
  readonly exclude: ReadonlyArray<string>
  /** Whether its tests may start processes, and use Postgres. */
  readonly needsProcesses: boolean
}

const BENCH = "test/bench/**"

const ending = (name: Kind["name"], needsProcesses: boolean): Kind => ({
  name,
  include: [`test/**/*.${name}.test.ts`],
  exclude: [BENCH],
  needsProcesses
})

const named: ReadonlyArray<Kind> = [
  ending("e2e", true),
  ending("browser", true),
  ending("pg", true),
  ending("sim", false),
  ending("prop", false)
]

/** All kinds, the slowest one first. */
export const KINDS: ReadonlyArray<Kind> = [
  { name: "bench", include: [`${BENCH}/*.test.ts`], exclude: [], needsProcesses: true },
  ...named,
  {
    name: "unit",
    include: ["test/**/*.test.ts"],
    exclude: [BENCH, ...named.flatMap(({ include }) => include)],
    needsProcesses: false
  }
]

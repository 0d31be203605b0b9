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
  /** Usual time of a file in seconds, for the remaining time of a run without a run before it. */
  readonly fileSeconds: number
}

const BENCH = "test/bench/**"

const ending = (name: Kind["name"], needsProcesses: boolean, fileSeconds: number): Kind => ({
  name,
  include: [`test/**/*.${name}.test.ts`],
  exclude: [BENCH],
  needsProcesses,
  fileSeconds
})

const named: ReadonlyArray<Kind> = [
  ending("e2e", true, 25),
  ending("browser", true, 60),
  ending("pg", true, 15),
  ending("sim", false, 20),
  ending("prop", false, 4)
]

/** All kinds, the slowest one first. */
export const KINDS: ReadonlyArray<Kind> = [
  { name: "bench", include: [`${BENCH}/*.test.ts`], exclude: [], needsProcesses: true, fileSeconds: 15 },
  ...named,
  {
    name: "unit",
    include: ["test/**/*.test.ts"],
    exclude: [BENCH, ...named.flatMap(({ include }) => include)],
    needsProcesses: false,
    fileSeconds: 2
  }
]

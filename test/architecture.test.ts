/**
 * Layers import downwards only: the tables below list all allowed imports. No files import one another in a circle, not
 * even for types. No line is wider than a screen.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as Path from "node:path"

const SOURCE = Path.join(import.meta.dirname, "..", "src")

/** The layers that a layer may import, beside itself. `*` means all. */
const ALLOWED: Readonly<Record<string, ReadonlyArray<string>>> = {
  json: [],
  engine: ["json"],
  domain: ["json"],
  payments: ["domain", "engine", "json"],
  processors: ["domain", "engine", "payments", "json"],
  webhooks: ["domain", "engine"],
  backup: ["engine", "json"],
  postgres: ["domain", "engine", "webhooks"],
  cluster: ["engine"],
  api: ["domain"],
  server: ["engine", "domain"],
  http: ["server", "api", "payments", "engine", "domain", "json"],
  html: ["server", "payments", "domain", "json"],
  mail: ["html", "payments", "engine", "domain"],
  pages: ["html", "api", "payments", "domain", "json"],
  dashboard: ["html", "payments", "domain", "json"],
  client: ["api", "domain", "json"],
  control: ["payments", "engine", "json"],
  config: ["domain"],
  doctor: ["config", "version", "cluster", "postgres", "engine", "domain", "json"],
  version: [],
  app: ["*"],
  service: ["*"],
  // A command uses the API for everything that a merchant can do.
  cli: ["app", "service", "client", "config", "version", "json"],
  main: ["*"]
}

/** Files of a layer that another one may import, if it may not import the whole layer. */
const FILES: Readonly<Record<string, ReadonlyArray<string>>> = {
  // Names and bounds that flags offer, and the steps of `till trigger`, without the modules that use them.
  cli: [
    "domain/ApiKey.ts",
    "domain/ApiVersionNames.ts",
    "domain/EventTypes.ts",
    "domain/Processor.ts",
    "domain/TriggerRecipes.ts",
    // `till listen` signs webhooks as Till does.
    "domain/WebhookSignature.ts",
    // `till processor check` calls a gateway itself, without an installation.
    "domain/GatewayUrl.ts",
    "domain/StandardWebhooks.ts",
    "processors/protocol/Conformance.ts",
    "processors/protocol/Rules.ts",
    // The first start prepares the database before the service is loaded.
    "postgres/embedded/Announcement.ts",
    "postgres/embedded/Cluster.ts"
  ],
  // The dashboard reads accounts through one interface, and the engine notifies it of changes.
  dashboard: [
    "engine/Accounts.ts",
    "engine/Deliveries.ts",
    "engine/log/Document.ts",
    "engine/log/Events.ts",
    "engine/views/CommitFeed.ts",
    "engine/RequestLog.ts",
    "http/IdempotentCommand.ts",
    "http/OneTimeSecrets.ts",
    "http/RequestContext.ts"
  ],
  // A form runs its command once, as an API request does.
  html: ["http/IdempotentCommand.ts", "http/RequestContext.ts"]
}

/** Further files that a layer imports, and the reasons. An entry without an import fails the test. */
const EXCEPTIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  dashboard: {
    "engine/process/EventLoop.ts": "open pages reload less often while requests keep the event loop busy",
    "engine/process/Log.ts": "a password reset that could not be recorded is logged",
    "engine/process/Loop.ts": "open pages wait for fibers that must not end",
    "http/Payload.ts": "form fields are decoded by the API's contract and refused in its words",
    "http/RateLimits.ts": "sign-in attempts are counted as requests are",
    "http/forward/Calls.ts": "the process that owns the installation's account records a wipe before it happens"
  },
  payments: {
    "webhooks/Dispatcher.ts": "the endpoints' documents answer the port of the webhooks' dispatcher",
    "webhooks/Sender.ts": "the port's type of a destination"
  },
  processors: {
    "webhooks/GuardedDial.ts": "connections to processors are guarded as those of webhooks are"
  },
  backup: {
    "postgres/embedded/DataFolder.ts": "a backup's files appear as the data folder's do: whole and durable",
    "postgres/embedded/EmbeddedPostgresError.ts": "the system's errors about a file get the same words",
    "postgres/embedded/OwnFiles.ts": "no link is followed in a backup's folder, either"
  },
  html: {
    "engine/Accounts.ts": "a page refuses in plain words while an account is unavailable",
    "engine/process/Log.ts": "a page that fails is logged",
    "engine/log/Document.ts": "a route names its account",
    "http/forward/Forwarder.ts": "a route names its account before anything of the account is read",
    "http/forward/ForwardPage.ts": "a page goes to the process that serves its account, with its sender's address",
    "http/RequestTimeouts.ts": "a page waits as long as the API does"
  },
  pages: {
    "engine/Accounts.ts": "a page reads the objects that it shows",
    "engine/log/Document.ts": "a page names the kind of object that it reads",
    "http/RateLimits.ts": "the forms of payment links are counted as requests are",
    "http/RequestContext.ts": "the access log names the merchant of a page",
    "http/ErrorTable.ts": "the documentation of errors shows the statuses and codes of the one table",
    "server/HttpConfig.ts": "pages link to the address of the documentation",
    "server/HttpErrors.ts": "the documentation of errors has examples of all"
  }
}

/**
 * The rooms of a layer, and the rooms that each may import beside itself. Files outside of rooms are the layer's
 * interface: they may import every room, and no room imports them.
 */
const ROOMS: Readonly<Record<string, Readonly<Record<string, ReadonlyArray<string>>>>> = {
  engine: {
    process: [],
    log: ["process"],
    views: ["log", "process"],
    actor: ["views", "log", "process"],
    read: ["actor", "views", "log", "process"],
    verify: ["actor", "views", "log", "process"]
  },
  payments: {
    shared: [],
    mail: ["shared"],
    merchants: ["shared"],
    team: ["merchants", "mail", "shared"],
    webhooks: ["mail", "shared"],
    processing: ["merchants", "shared"],
    lifecycles: ["processing", "mail", "shared"],
    erasure: ["lifecycles", "processing", "team", "shared"],
    administration: ["erasure", "lifecycles", "processing", "webhooks", "team", "merchants", "mail", "shared"]
  },
  pages: {
    docs: [],
    checkout: [],
    authentication: ["checkout"]
  },
  dashboard: {
    frame: [],
    history: ["frame"],
    team: ["frame"],
    catalog: ["frame", "history"],
    developers: ["frame", "history"],
    payments: ["frame", "history"],
    customers: ["frame", "history", "payments"],
    home: ["frame", "payments", "customers", "catalog", "developers"]
  }
}

/** Layers that may use `effect` and Node's own modules, and no other package. */
const ONLY_EFFECT = ["engine", "domain", "json"]

/** Returns the layer of a file: `engine` for `src/engine/actor/Actor.ts`, `app` for `src/app.ts`. */
const layerOf = (file: string): string => file.split("/")[0]!.replace(/\.ts$/u, "")

/** Lists a source's imports: static and dynamic ones, and re-exports. */
export const importsOf = (source: string): ReadonlyArray<string> => {
  const code = source.replaceAll(/\/\*[\s\S]*?\*\//gu, "").replaceAll(/^\s*\/\/.*$/gmu, "")
  const statements = code.matchAll(/(?:^|[;\n])\s*(?:import|export)\b[^"';]*?\bfrom\s*["']([^"']+)["']/gu)
  const bare = code.matchAll(/(?:^|[;\n])\s*import\s*["']([^"']+)["']/gu)
  const dynamic = code.matchAll(/\bimport\s*\(\s*["']([^"']+)["']/gu)
  return [...statements, ...bare, ...dynamic].map((match) => match[1]!)
}

/** Returns a line for each forbidden import. `file` is relative to the sources. */
export const violationsOf = (file: string, source: string): ReadonlyArray<string> => {
  const layer = layerOf(file)
  const allowed = ALLOWED[layer]
  if (allowed === undefined) return [`${file} lies in the layer ${layer}, which is not in the table`]
  return importsOf(source).flatMap((specifier) => {
    const violation = `${file} must not import ${specifier}`
    if (!specifier.startsWith(".")) {
      const packageName = specifier.split("/")[0]!
      const free = !ONLY_EFFECT.includes(layer) || packageName === "effect" || specifier.startsWith("node:")
      return free ? [] : [violation]
    }
    const target = Path.posix.join(Path.posix.dirname(file), specifier)
    if (target.startsWith("..")) return [violation]
    const of = layerOf(target)
    if (of === layer) return isOpenTo(file, target) ? [] : [violation]
    if (allowed.includes("*") || allowed.includes(of)) return []
    const isNamed = FILES[layer]?.includes(target) === true || EXCEPTIONS[layer]?.[target] !== undefined
    return isNamed ? [] : [violation]
  })
}

/** Returns the room of a file: `actor` for `engine/actor/Actor.ts`; undefined for `engine/Accounts.ts`. */
const roomOf = (file: string): string | undefined => {
  const [layer, room, ...rest] = file.split("/")
  return rest.length > 0 && ROOMS[layer!]?.[room!] !== undefined ? room : undefined
}

const isOpenTo = (file: string, target: string): boolean => {
  const [from, to] = [roomOf(file), roomOf(target)]
  if (from === undefined || from === to) return true
  return to !== undefined && ROOMS[layerOf(file)]![from]!.includes(to)
}

/** The imports of each file among the others. */
type Graph = ReadonlyMap<string, ReadonlyArray<string>>

/** Returns the circles of files that import one another, each in order (Tarjan's strongly connected components). */
export const circlesOf = (graph: Graph): ReadonlyArray<ReadonlyArray<string>> => {
  const circles: Array<ReadonlyArray<string>> = []
  const indexes = new Map<string, number>()
  const stack: Array<string> = []
  /** Returns the smallest index on the stack that the file reaches. */
  const visit = (file: string): number => {
    const index = indexes.size
    indexes.set(file, index)
    stack.push(file)
    let lowest = index
    for (const imported of graph.get(file) ?? []) {
      const known = indexes.get(imported)
      if (known === undefined) lowest = Math.min(lowest, visit(imported))
      else if (stack.includes(imported)) lowest = Math.min(lowest, known)
    }
    if (lowest === index) {
      const members = stack.splice(stack.indexOf(file))
      if (members.length > 1 || graph.get(file)?.includes(file) === true) circles.push(members.toSorted())
    }
    return lowest
  }
  for (const file of graph.keys()) if (!indexes.has(file)) visit(file)
  return circles
}

/** Returns the paths of a source's imports of other sources. */
const filesImported = (file: string, source: string): ReadonlyArray<string> =>
  importsOf(source)
    .filter((specifier) => specifier.startsWith("."))
    .map((specifier) => Path.posix.join(Path.posix.dirname(file), specifier))

const filesIn = (folder: string): ReadonlyArray<string> =>
  fs
    .readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.(?:ts|mjs|js|css)$/u.test(file))
    .map((file) => file.split(Path.sep).join("/"))

const read = (file: string, root = SOURCE) => fs.readFileSync(Path.join(root, file), "utf8")
const sourcesIn = (root: string) => filesIn(root).filter((file) => file.endsWith(".ts"))
const graphOf = (root: string): Graph =>
  new Map(sourcesIn(root).map((file) => [file, filesImported(file, read(file, root))]))

const sources = sourcesIn(SOURCE)
const graph = graphOf(SOURCE)

describe("the layers", () => {
  it("import downwards only", () => {
    assert.isAbove(sources.length, 50)
    const violations = sources.flatMap((file) => violationsOf(file, read(file)))
    assert.deepStrictEqual(violations, [])
  })

  it("are those of the table", () => {
    assert.deepStrictEqual(
      [...new Set(sources.map(layerOf))].filter((layer) => ALLOWED[layer] === undefined),
      []
    )
  })
})

describe("the exceptions", () => {
  const exceptions = Object.entries(EXCEPTIONS).flatMap(([layer, files]) =>
    Object.keys(files).map((file) => [layer, file] as const)
  )

  it.each(exceptions)("of %s are needed: %s", (layer, file) => {
    assert.isTrue([...graph].some(([source, imported]) => layerOf(source) === layer && imported.includes(file)))
  })
})

describe("imports", () => {
  it.each(["src", "bench", "test"])("of %s have no circles, types included", (folder) => {
    assert.deepStrictEqual(circlesOf(graphOf(Path.join(SOURCE, "..", folder))), [])
  })

  it.each([
    { name: "a file that imports itself", of: { a: ["a"] }, circles: [["a"]] },
    { name: "two files", of: { a: ["b"], b: ["a"], c: ["a"] }, circles: [["a", "b"]] },
    { name: "a detour", of: { a: ["b", "d"], b: ["c"], c: ["a"], d: ["c"] }, circles: [["a", "b", "c", "d"]] },
    {
      name: "two circles, one behind the other",
      of: { a: ["b"], b: ["a", "c"], c: ["d"], d: ["c"] },
      circles: [
        ["c", "d"],
        ["a", "b"]
      ]
    },
    { name: "no circle, but two ways to a file", of: { a: ["b", "c"], b: ["d"], c: ["d"], d: [] }, circles: [] }
  ])("are searched for circles: $name", ({ circles, of }) => {
    assert.deepStrictEqual(circlesOf(new Map(Object.entries<ReadonlyArray<string>>(of))), circles)
  })

  it("are searched for circles of types", () => {
    assert.deepStrictEqual(filesImported("engine/A.ts", 'import type { B } from "./B.ts"'), ["engine/B.ts"])
    assert.deepStrictEqual(filesImported("engine/A.ts", 'export type { B } from "../domain/B.ts"'), ["domain/B.ts"])
  })
})

describe("lines", () => {
  /** The formatter's line width. It breaks code, but neither comments nor texts. */
  const WIDTH = 120
  const isText = (line: string) =>
    /["'`]|^\s*(?:[a-z-]+ \{|What errors mean)/u.test(line) && !/^\s*(?:\/?\*|\/\/)/u.test(line)

  it.each(["src", "bench", "test", "pack"])("of %s fit into the formatter's width, except texts", (folder) => {
    const root = Path.join(SOURCE, "..", folder)
    const tooWide = filesIn(root).flatMap((file) => {
      const lines = fs.readFileSync(Path.join(root, file), "utf8").split("\n")
      return lines.flatMap((line, index) =>
        [...line].length > WIDTH && !isText(line) ? [`${folder}/${file}:${index + 1}`] : []
      )
    })
    assert.deepStrictEqual(tooWide, [])
  })
})

describe("the check of the layers", () => {
  const forbidden = Object.keys(ALLOWED).flatMap((layer) =>
    Object.keys(ALLOWED)
      .filter((other) => other !== layer && !ALLOWED[layer]!.includes(other) && !ALLOWED[layer]!.includes("*"))
      .map((other) => [layer, other] as const)
  )
  const fileIn = (layer: string) => (fs.existsSync(Path.join(SOURCE, `${layer}.ts`)) ? `${layer}.ts` : `${layer}/A.ts`)
  const pathTo = (from: string, to: string) => {
    const relative = Path.posix.relative(Path.posix.dirname(from), to)
    return relative.startsWith(".") ? relative : `./${relative}`
  }

  it.each(forbidden)("finds %s importing %s", (layer, other) => {
    const [file, path] = [fileIn(layer), pathTo(fileIn(layer), fileIn(other))]
    for (const statement of [
      `import { a } from "${path}"`,
      `import type { A } from "${path}"`,
      `import * as A from '${path}'`,
      `import {\n  a,\n  type B\n} from "${path}"`,
      `export * from "${path}"`,
      `export { a } from "${path}"`,
      `import "${path}"`,
      `const a = await import("${path}")`
    ]) {
      assert.deepStrictEqual(violationsOf(file, `/** A. */\n${statement}\n`), [`${file} must not import ${path}`])
    }
  })

  it.each(ONLY_EFFECT)("finds %s importing a package", (layer) => {
    for (const name of ["@effect/sql-pg", "@effect/platform-node", "pg", "effect-other"]) {
      assert.strictEqual(violationsOf(`${layer}/A.ts`, `import { a } from "${name}"`).length, 1)
    }
    for (const name of ["effect", "effect/Schema", "node:crypto"]) {
      assert.deepStrictEqual(violationsOf(`${layer}/A.ts`, `import { a } from "${name}"`), [])
    }
  })

  it("accepts allowed imports, and texts that only resemble imports", () => {
    assert.deepStrictEqual(violationsOf("payments/A.ts", 'import { a } from "../engine/Accounts.ts"'), [])
    assert.deepStrictEqual(violationsOf("engine/A.ts", 'import { a } from "./B.ts"'), [])
    assert.deepStrictEqual(violationsOf("pages/A.ts", 'import { a } from "../html/Html.ts"'), [])
    assert.deepStrictEqual(violationsOf("engine/A.ts", '// import { a } from "../domain/B.ts"'), [])
    assert.deepStrictEqual(violationsOf("engine/A.ts", '/*\nimport { a } from "../domain/B.ts"\n*/'), [])
  })

  it("finds a layer that is not in the table, and an import from outside of the sources", () => {
    assert.strictEqual(violationsOf("utils/A.ts", "").length, 1)
    assert.strictEqual(violationsOf("engine/A.ts", 'import { a } from "../../test/engine/Toy.ts"').length, 1)
  })
})

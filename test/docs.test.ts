/**
 * Every citation has a target: rows and sections of docs/semantics.md in comments, titles of tests and documents;
 * headings and rules of docs/interface.md and names of files in comments. So does every link in a document.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as Path from "node:path"

const ROOT = Path.join(import.meta.dirname, "..")

/** The id of a row, such as `idempotency.retention`, or of a whole section: `idempotency.*`. */
type Id = string

/** Lines of a document outside of its blocks of code. */
const linesOf = (markdown: string): ReadonlyArray<string> =>
  markdown.replaceAll(/^ *(```|~~~)[\s\S]*?^ *\1/gmu, "").split("\n")

const WORD = "[a-z][a-z0-9_]*"
const ROW = String.raw`${WORD}(?:\.${WORD})+`
const ID = String.raw`${WORD}(?:\.${WORD})*\.(?:${WORD}|\*)`

/** Lists a document's rows in their order: bold ids at the beginning of list items. */
const rowsOf = (markdown: string): ReadonlyArray<Id> => {
  const row = new RegExp(String.raw`^- \*\*(${ROW})\*\*`, "u")
  return linesOf(markdown).flatMap((line) => row.exec(line)?.[1] ?? [])
}

/** Lists a document's ids: its rows, and its sections with a star, by the first word of their rows. */
export const idsOf = (markdown: string): ReadonlySet<Id> => {
  const rows = rowsOf(markdown)
  return new Set([...rows, ...rows.map((row) => `${row.split(".")[0]}.*`)])
}

/** The number of numbered rules under each heading, in lower case. */
export const rulesOf = (markdown: string): ReadonlyMap<string, number> => {
  const rules = new Map<string, number>()
  let heading = ""
  for (const line of linesOf(markdown)) {
    heading = /^#{1,6} (.*)$/u.exec(line)?.[1]?.toLowerCase() ?? heading
    const rule = Number(/^(\d+)\. /u.exec(line)?.[1] ?? 0)
    rules.set(heading, Math.max(rules.get(heading) ?? 0, rule))
  }
  return rules
}

/** Lists the comments of a source, one line each. A `//` inside of a string counts as one, which only checks more. */
const commentsOf = (source: string): ReadonlyArray<string> =>
  [...source.matchAll(/\/\*[\s\S]*?\*\/|(?:^[ \t]*\/\/.*\n?)+|\/\/.*$/gmu)].map(([comment]) =>
    comment
      .replaceAll(/^[ \t]*(?:\/\*\*?|\*\/|\*|\/\/)|\*\/$/gmu, " ")
      .replaceAll(/\s+/gu, " ")
      .trim()
  )

/** Test titles: texts in quotes. */
const titlesOf = (source: string): ReadonlyArray<string> =>
  [...source.matchAll(/"([^"\n]*)"|`([^`]*)`/gu)].map(([, plain, template]) => plain ?? template!)

const LIST = String.raw`${ID}(?:, ${ID})*`
/** A comment that names the document in brackets without a row of it. */
const ROWLESS = new RegExp(String.raw`\(semantics(?! ${ID})[^)]*`, "giu")

/** True if a name with dots is a citation: types of events and files have dots, too. */
const looksLikeRow = (id: string): boolean =>
  documents.ids.has(`${id.split(".")[0]}.*`) && !/^checkout\.session\.|^operation\.(?:un)?resolved$|\.csv$/u.test(id)

/** Returns the rows and sections that a text cites: after the word `semantics`, or at the beginning of a title. */
const idsIn = (text: string): ReadonlyArray<Id> => {
  const named = [...text.matchAll(new RegExp(String.raw`\bsemantics (${LIST})`, "giu"))].map(([, list]) => list!)
  const leading = new RegExp(String.raw`^(${LIST})[:.,] `, "u").exec(text)?.[1]?.split(", ") ?? []
  return [...named.flatMap((list) => list.split(", ")), ...leading.filter(looksLikeRow)]
}

/** Returns the rows and sections of semantics.md that a source cites, once each. */
export const citationsOf = (source: string): ReadonlyArray<Id> => [
  ...new Set([...commentsOf(source), ...titlesOf(source)].flatMap(idsIn))
]

/** Returns the headings of interface.md that a source cites, in lower case, with the number of a rule or 0. */
export const specCitationsOf = (source: string): ReadonlyArray<readonly [heading: string, rule: number]> =>
  commentsOf(source)
    .flatMap((comment) => [...comment.matchAll(/\bspec: ([^;).]+)/gu)].map(([, list]) => list!))
    .flatMap((list) => {
      let heading = ""
      return list.split(",").map((part) => {
        const [, name = "", rule] = /^(.*?) ?(\d+)?$/u.exec(part.trim())!
        heading = name === "" ? heading : name.toLowerCase()
        return [heading, Number(rule ?? 0)] as const
      })
    })

/** Returns a line for each citation of a source without a target. `file` is relative to the repository. */
export const problemsOf = (
  file: string,
  source: string,
  documents: { readonly ids: ReadonlySet<Id>; readonly rules: ReadonlyMap<string, number> }
): ReadonlyArray<string> => {
  const comments = commentsOf(source)
  const named = comments.flatMap((comment) => comment.match(/[\w./-]*\w\.md\b/gu) ?? [])
  const places = [Path.dirname(file), "", "docs"]
  return [
    ...citationsOf(source)
      .filter((id) => !documents.ids.has(id))
      .map((id) => `${file} cites semantics ${id}`),
    ...comments.flatMap((comment) => comment.match(ROWLESS) ?? []).map((text) => `${file} cites no row: ${text}`),
    ...specCitationsOf(source)
      .filter(([heading, rule]) => !(rule <= (documents.rules.get(heading) ?? -1)))
      .map(([heading, rule]) => `${file} cites spec: ${heading}${rule === 0 ? "" : ` ${rule}`}`),
    ...named
      .filter((name) => !places.some((place) => fs.existsSync(Path.join(ROOT, place, name))))
      .map((name) => `${file} names ${name}`)
  ]
}

/** Returns GitHub's anchors of a document's headings. */
export const anchorsOf = (markdown: string): ReadonlySet<string> => {
  const counts = new Map<string, number>()
  const headings = linesOf(markdown).flatMap((line) => /^#{1,6} +(.*?) *#*$/u.exec(line)?.[1] ?? [])
  return new Set(
    headings.map((heading) => {
      const text = heading.replaceAll(/!?\[([^\]]*)\]\([^)]*\)/gu, "$1").replaceAll(/[`*]/gu, "")
      const slug = text
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
        .replaceAll(/\s/gu, "-")
      const count = counts.get(slug) ?? 0
      counts.set(slug, count + 1)
      return count === 0 ? slug : `${slug}-${count}`
    })
  )
}

/** Returns the targets of a document's links, except other sites. */
export const linksOf = (markdown: string): ReadonlyArray<string> => {
  const text = linesOf(markdown)
    .join("\n")
    .replaceAll(/`[^`\n]*`/gu, "code")
  const inline = text.matchAll(/\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)/gu)
  const referenced = text.matchAll(/^ *\[[^\]]+\]: +(\S+)/gmu)
  const html = text.matchAll(/\b(?:src|href)="([^"]+)"/gu)
  const targets = [...inline, ...referenced, ...html].map(([, target]) => target!)
  return targets.filter((target) => !/^[a-z]+:/u.test(target))
}

/** Returns a line for each link of a document without a target. `file` is relative to the repository. */
const deadLinksOf = (file: string, markdown: string): ReadonlyArray<string> =>
  linksOf(markdown).flatMap((link) => {
    const [path = "", anchor] = decodeURIComponent(link).split("#", 2)
    const target = path === "" ? Path.join(ROOT, file) : Path.join(ROOT, Path.dirname(file), path)
    if (!fs.existsSync(target)) return [`${file} links to ${link}`]
    if (anchor === undefined || !target.endsWith(".md")) return []
    return anchorsOf(fs.readFileSync(target, "utf8")).has(anchor) ? [] : [`${file} links to ${link}`]
  })

const read = (file: string): string => fs.readFileSync(Path.join(ROOT, file), "utf8")

const LEFT_OUT = /^(?:node_modules|dist|\.git|\.till)$/u

/** Lists the files below a folder, relative to the repository. */
const filesIn = (folder: string, extension: RegExp): ReadonlyArray<string> =>
  fs.readdirSync(Path.join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    if (LEFT_OUT.test(entry.name)) return []
    const path = Path.posix.join(folder, entry.name)
    if (entry.isDirectory()) return filesIn(path, extension)
    return extension.test(entry.name) ? [path] : []
  })

const documents = { ids: idsOf(read("docs/semantics.md")), rules: rulesOf(read("docs/interface.md")) }

describe("comments and titles of tests", () => {
  // This file cites missing rows on purpose.
  const sources = ["src", "test", "bench", "pack"]
    .flatMap((folder) => filesIn(folder, /\.(?:ts|js|css|sh)$/u))
    .filter((file) => file !== "test/docs.test.ts")

  it("cite existing rows and sections, and name existing files", () => {
    assert.isAbove(sources.length, 300)
    assert.deepStrictEqual(
      sources.flatMap((file) => problemsOf(file, read(file), documents)),
      []
    )
  })

  it("cite each row of semantics.md in at least one test", () => {
    const tests = sources.filter((file) => file.startsWith("test/"))
    const cited = new Set(tests.flatMap((file) => citationsOf(read(file))))
    assert.deepStrictEqual(
      rowsOf(read("docs/semantics.md")).filter((row) => !cited.has(row)),
      []
    )
  })

  it("are found: most rows are cited somewhere", () => {
    const cited = new Set(sources.flatMap((file) => citationsOf(read(file))))
    assert.isAbove(cited.size, 200)
    assert.isAbove(sources.flatMap((file) => specCitationsOf(read(file))).length, 20)
  })
})

describe("documents", () => {
  const files = filesIn("", /\.md$/u)

  it("link to existing targets", () => {
    assert.isAbove(files.length, 10)
    assert.deepStrictEqual(
      files.flatMap((file) => deadLinksOf(file, read(file))),
      []
    )
  })

  it("have each id once, so that a citation is unambiguous", () => {
    const rows = rowsOf(read("docs/semantics.md"))
    assert.isAbove(rows.length, 300)
    assert.deepStrictEqual(
      rows.filter((row, i) => rows.indexOf(row) !== i),
      []
    )
  })

  it("cite existing rows", () => {
    const rows = [...read("docs/semantics.md").matchAll(new RegExp(`\`(${ID})\``, "gu"))].map(([, id]) => id!)
    const cited = [...files.flatMap((file) => idsIn(read(file).replaceAll(/\s+/gu, " "))), ...rows.filter(looksLikeRow)]
    assert.isAbove(cited.length, 50)
    assert.deepStrictEqual(
      cited.filter((id) => !documents.ids.has(id)),
      []
    )
  })
})

describe("the check of citations", () => {
  it.each([
    ["/** A (semantics requests.order). */", ["requests.order"]],
    ["/** A (semantics checkout.states, `✗`). */", ["checkout.states"]],
    ["/** A (spec: Price; semantics prices.*, products.null). */", ["prices.*", "products.null"]],
    ["/** A, as semantics checkout.custom_amount.confirm has it. */", ["checkout.custom_amount.confirm"]],
    ["/**\n * A breaks off (semantics\n * lists.order,\n * lists.url).\n */", ["lists.order", "lists.url"]],
    ["/** Semantics money.*, and the rows about prices. */", ["money.*"]],
    ["// Step 3 is before it.\n// Again (semantics limits.rate).\n", ["limits.rate"]],
    ["  // Semantics requests.order: 3 is before it, 5 behind it.\n", ["requests.order"]],
    ['it("checkout.states, checkout.url: what stays", () => {})', ["checkout.states", "checkout.url"]],
    ['it("is not found (semantics requests.paths), whatever there is", () => {})', ["requests.paths"]],
    ['it("checkout.session.completed, charge.succeeded: in this order", () => {})', []],
    ["/** V8's young generation, SHA-256, `Lists.ts`, RFC 9112, and S3. */", []]
  ])("reads %j", (source, ids) => {
    assert.deepStrictEqual(new Set(citationsOf(source)), new Set(ids))
  })

  it.each([
    [
      "/** A (spec: Events, Signature; semantics webhooks.signature). */",
      [
        ["events", 0],
        ["signature", 0]
      ]
    ],
    [
      "/** A (spec: Signature, 3). */",
      [
        ["signature", 0],
        ["signature", 3]
      ]
    ],
    ["/**\n * A (spec:\n * Versioning 7).\n */", [["versioning", 7]]]
  ] as const)("reads %j", (source, expected) => {
    const cited = specCitationsOf(source)
    for (const one of expected) assert.deepInclude(cited, one)
  })

  it.each([
    "/** A (semantics requests.nothing). */",
    "/** A (semantics nothing.*). */",
    "/** A (semantics requests.order, webhooks.nothing). */",
    "/** A (semantics, somewhere). */",
    "/** A (semantics requests). */",
    'it("requests.nothing: is refused", () => {})',
    "/** A (spec: Nothing). */",
    "/** A (spec: Pagination 5). */",
    "/** A (spec.md, Pagination). */",
    "/** See nowhere.md. */"
  ])("finds no target of %j", (source) => {
    assert.strictEqual(problemsOf("src/A.ts", source, documents).length > 0, true)
  })

  it("takes ids from the beginning of list items, and not from text", () => {
    const markdown =
      "## a.b\n- **c.d** e **f.g**\n| h.i | j |\n- **k.l.m** n\n  - **o.p** q\n- `r.s`\n```\n- **t.u**\n```\n"
    assert.deepStrictEqual(idsOf(markdown), new Set(["c.d", "k.l.m", "c.*", "k.*"]))
  })
})

describe("the check of links", () => {
  it("computes GitHub's anchors", () => {
    const markdown = "# A B\n## `c_d`, E!\n## A B\n### 2.3 [F](g) & *h*\n```\n# no\n```\n"
    assert.deepStrictEqual(anchorsOf(markdown), new Set(["a-b", "c_d-e", "a-b-1", "23-f--h"]))
  })

  it("finds links without a target", () => {
    const dead = ["[a](nowhere.md)", "![a](no.png)", "[a](README.md#nowhere)", '<img src="no.png">', "[a](#nowhere)"]
    for (const link of dead) assert.strictEqual(deadLinksOf("README.md", `# A\n${link}\n`).length, 1, link)
    const alive = "# A\n[a](README.md#till) [b](https://example.com/x) [c](docs) `[d](no.md)`\n```\n[e](no.md)\n```\n"
    assert.deepStrictEqual(deadLinksOf("README.md", alive), [])
  })
})

/** Paths in a document's code spans that do not exist, a line each. A path ends at a space: `src/A.ts --help`. */
const deadPathsOf = (file: string, markdown: string): ReadonlyArray<string> =>
  linesOf(markdown)
    .flatMap((line) => [...line.matchAll(/`((?:src|test|docs|bench|deploy|examples)\/[\w./@-]*)(?=[` ])/gu)])
    .map(([, path]) => path!)
    .filter((path) => !fs.existsSync(Path.join(ROOT, path)))
    .map((path) => `${file} names ${path}`)

describe("paths and settings in documents", () => {
  it("exist", () => {
    assert.deepStrictEqual(
      filesIn("", /\.md$/u).flatMap((file) => deadPathsOf(file, read(file))),
      []
    )
  })

  it("are found in code spans, and not in blocks of code", () => {
    const markdown = "`src/Nowhere.ts` and `src/main.ts`, `test/nowhere -t x`\n```\n`src/Nothing.ts`\n```\n"
    assert.deepStrictEqual(deadPathsOf("A.md", markdown), ["A.md names src/Nowhere.ts", "A.md names test/nowhere"])
  })

  it("include every environment variable", () => {
    const [, parsers] = /^const parsers = \{\n(.*?)^\}/msu.exec(read("src/config.ts"))!
    const variables = [...parsers!.matchAll(/^ {2}(\w+):/gmu)].map(([, name]) => name!)
    assert.isAbove(variables.length, 25)
    const page = read("docs/configuration.md")
    assert.deepStrictEqual(
      variables.filter((name) => !page.includes(`\`${name}\``)),
      []
    )
  })
})

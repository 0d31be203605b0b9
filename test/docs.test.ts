/**
 * Checks that the targets of citations in comments exist: rows and sections of docs/semantics.md, headings and rules of
 * docs/interface.md, and files by their name. Every link in a document of the repository has a target.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as Path from "node:path"

const ROOT = Path.join(import.meta.dirname, "..")

/** The id of a row or a section, without the sign `§`. */
type Id = string

/** Lines of a document outside of its blocks of code. */
const linesOf = (markdown: string): ReadonlyArray<string> =>
  markdown.replaceAll(/^ *(```|~~~)[\s\S]*?^ *\1/gmu, "").split("\n")

/** Lists a document's ids: sections in headings, rows in first cells of tables and in bold list items. */
export const idsOf = (markdown: string): ReadonlySet<Id> => {
  const row = String.raw`[A-Z]{1,2}-?\d{1,2}|\d\.\d{1,2}`
  const patterns = [
    /^#{2,6} (?<id>\d+(?:\.\d+)?)\.?(?: |$)/u,
    new RegExp(String.raw`^\| *\**(?<id>${row})\** *\|`, "u"),
    new RegExp(String.raw`^ *[-*] \*\*(?<id>${row})\*\*`, "u")
  ]
  const found = linesOf(markdown).flatMap((line) => patterns.map((pattern) => pattern.exec(line)?.groups?.["id"]))
  return new Set(found.filter((id) => id !== undefined))
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

const SECTION = String.raw`§\d+(?:\.\d+)?|[789]\.\d{1,2}(?!\d)`
/** After the word `semantics`, any text in the form of an id. */
const NAMED = String.raw`(?:${SECTION}|[A-Z]{1,2}-?\d{1,2}(?![\w-]))`
/** Without the word, only ids with the known beginnings: comments mention V8, too, but not in its own brackets. */
const BARE = String.raw`(?:${SECTION}|(?:PR|I-|[TAIRVGEMNCHFSW])\d{1,2}(?![\w-]))`
const SEPARATOR = String.raw`(?:; |,? and |,? or |, | to |–| )`
const listOf = (id: string) => `${id}(?:${SEPARATOR}${id})*`

/** A comment that names the document in brackets without a row of it. */
const ROWLESS = new RegExp(String.raw`\(semantics(?! ${NAMED}| \*)[^)]*`, "giu")

const PATTERNS = [
  new RegExp(String.raw`\bsemantics(?:\.md)?,? (${listOf(NAMED)})`, "giu"),
  new RegExp(String.raw`\((${listOf(BARE)})\)`, "gu"),
  new RegExp(String.raw`^(${listOf(BARE)})(?:[:.,]|$)`, "gu"),
  /(§\d+(?:\.\d+)?)/gu
]

/** Returns the ids in a list, including those within a range. */
const expand = (list: string): ReadonlyArray<Id> => {
  const parts = list.match(new RegExp(`${NAMED}|to|–`, "gu")) ?? []
  return parts.flatMap((part, i) => {
    if (part === "to" || part === "–") return between(parts[i - 1]!, parts[i + 1]!)
    return [part.replace("§", "")]
  })
}

const between = (from: string, to: string): ReadonlyArray<Id> => {
  const [, prefix, first] = /^(.*?)(\d+)$/u.exec(from.replace("§", ""))!
  const last = Number(/\d+$/u.exec(to)![0])
  return Array.from({ length: Math.max(last - Number(first) - 1, 0) }, (_, i) => `${prefix}${Number(first) + 1 + i}`)
}

/** Returns the rows and sections of semantics.md that a source cites, once each. */
export const citationsOf = (source: string): ReadonlyArray<Id> => {
  const texts = [...commentsOf(source), ...titlesOf(source)]
  const lists = texts.flatMap((text) =>
    PATTERNS.flatMap((pattern) => [...text.matchAll(pattern)].map(([, list]) => list!))
  )
  return [...new Set(lists.flatMap(expand))]
}

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
  const sources = ["src", "test", "bench"]
    .flatMap((folder) => filesIn(folder, /\.(?:ts|js|css|sh)$/u))
    .filter((file) => file !== "test/docs.test.ts")

  it("cite existing rows and sections, and name existing files", () => {
    assert.isAbove(sources.length, 300)
    assert.deepStrictEqual(
      sources.flatMap((file) => problemsOf(file, read(file), documents)),
      []
    )
  })

  it("are found: most rows are cited somewhere", () => {
    const cited = new Set(sources.flatMap((file) => citationsOf(read(file))))
    assert.isAbove(cited.size, 150)
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
    const rows = linesOf(read("docs/semantics.md")).flatMap((line) => /^ *- \*\*([^*]+)\*\*/u.exec(line)?.[1] ?? [])
    const ids = rows.filter((row) => documents.ids.has(row))
    assert.isAbove(ids.length, 200)
    assert.deepStrictEqual(
      ids.filter((id, i) => ids.indexOf(id) !== i),
      []
    )
  })
})

describe("the check of citations", () => {
  it.each([
    ["/** A (semantics T14). */", ["T14"]],
    ["/** A (semantics §2.1, `✗`). */", ["2.1"]],
    ["/** A (spec: Price; semantics §1.11, §6). */", ["1.11", "6"]],
    ["/** A (semantics PR2, PR3 and 9.24). */", ["PR2", "PR3", "9.24"]],
    ["/** A (semantics I-6 to I-9). */", ["I-6", "I-7", "I-8", "I-9"]],
    ["/** A (semantics T2–T4, §8.13). */", ["T2", "T3", "T4", "8.13"]],
    ["/** A (semantics §1.1–§1.3). */", ["1.1", "1.2", "1.3"]],
    ["/**\n * A breaks off (semantics\n * I-12), and goes on (§8.29,\n * A6).\n */", ["I-12", "8.29", "A6"]],
    ["/** Semantics §1.9 N1, N2 and §1.11, the rows about prices. */", ["1.9", "N1", "N2", "1.11"]],
    ["// The state of that, then the limits (T14).\n// Again (I9, I10).\n", ["T14", "I9", "I10"]],
    ["  // T14: 3 is before it, 5 behind it.\n", ["T14"]],
    ['it("I-18: what stays, I-19 aside", () => {})', ["I-18"]],
    ['it("is not found (§8.29), whatever there is", () => {})', ["8.29"]],
    ["/** V8's young generation, SHA-256, UTF-8, RFC 9112, and S3. */", []]
  ])("reads %j", (source, ids) => {
    assert.deepStrictEqual(new Set(citationsOf(source)), new Set(ids))
  })

  it.each([
    [
      "/** A (spec: Events, Signature; semantics W5). */",
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
    "/** A (semantics T99). */",
    "/** A (semantics X1). */",
    "/** A (semantics §3.9). */",
    "/** A (semantics T1, W99). */",
    "/** A (semantics S18 to S22). */",
    "/** A (semantics, somewhere). */",
    "// Refused (T99).\n",
    "/** A (§8.99). */",
    'it("T99: is refused", () => {})',
    "/** A (spec: Nothing). */",
    "/** A (spec: Pagination 5). */",
    "/** A (spec.md, Pagination). */",
    "/** See nowhere.md. */"
  ])("finds no target of %j", (source) => {
    assert.strictEqual(problemsOf("src/A.ts", source, documents).length > 0, true)
  })

  it("takes ids from headings, tables and lists, and not from text", () => {
    const markdown = "## 3. A\n### 1.12 B\n- **I-1** c\n| T9 | d |\n| **9.1** | e |\nT8 and **T7**\n```\n## 4. F\n```\n"
    assert.deepStrictEqual(idsOf(markdown), new Set(["3", "1.12", "I-1", "T9", "9.1"]))
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

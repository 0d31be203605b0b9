/** A text in a template stays within its element or attribute. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { escape, html } from "../../src/html/Html.ts"

/** Another name keeps the formatter from reformatting the templates below. */
const template = html

/** Decodes a text or attribute like a browser, for the entities that the template writes. */
const read = (escaped: string): string =>
  escaped.replaceAll(/&(amp|lt|gt|quot|#39|#96);/g, (_, name: string) => READ[name]!)
const READ: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", "#96": "`" }

const pieces = Schema.Array(
  Schema.Union([
    Schema.String,
    Schema.Literals(["<", ">", '"', "'", "`", "&", "&lt;", "</p>", "<script>", "=", " ", "\0", "-->", "]]>"])
  ])
)

describe("the template", () => {
  it.prop("keeps every text within its element and its attribute", { pieces, others: pieces }, (input) => {
    const [title, text] = [input.pieces.join(""), input.others.join("")]
    const made = template`<p title="${title}" lang='${title}'>${text}</p>`.text
    const found = /^<p title="([^"]*)" lang='([^']*)'>([^<>]*)<\/p>$/su.exec(made)
    assert.isNotNull(found)
    const withoutNul = (raw: string) => raw.replaceAll("\0", "")
    assert.deepStrictEqual(found!.slice(1).map(read), [title, title, text].map(withoutNul))
  })

  it("inserts only its own HTML unescaped", () => {
    assert.strictEqual(template`<ul>${[1, "<2>", template`<li>3</li>`]}</ul>`.text, "<ul>1&lt;2&gt;<li>3</li></ul>")
    assert.strictEqual(template`a${null}b${undefined}c${false}d`.text, "abcd")
    assert.throws(() => template`<p>${{ text: "<b>" } as never}</p>`)
  })

  it("removes its own indentation, but nothing of the values", () => {
    assert.strictEqual(
      template`<p>
    ${"a\n    b"}
  </p>`.text,
      "<p>\na\n    b\n</p>"
    )
  })

  it("refuses an unquoted value in a tag", () => {
    assert.throws(() => template`<p title=${"a b"}></p>`, /without quotes/)
  })

  it("escapes every special character of HTML", () => {
    assert.strictEqual(escape(`<a href="x" id='y'>&\`\0`), "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;&#96;")
  })
})

/** No text that is put into a template gets out of where it was put. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { escape, html } from "../../src/html/Html.ts"

/** Under another name, the formatter leaves the templates below as they are written. */
const template = html

/** Reads a text or an attribute's value as a browser does, for the entities that the template writes. */
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

  it("takes over only the HTML that it made", () => {
    assert.strictEqual(template`<ul>${[1, "<2>", template`<li>3</li>`]}</ul>`.text, "<ul>1&lt;2&gt;<li>3</li></ul>")
    assert.strictEqual(template`a${null}b${undefined}c${false}d`.text, "abcd")
    assert.throws(() => template`<p>${{ text: "<b>" } as never}</p>`)
  })

  it("leaves its own indentation out, and nothing of what is put in", () => {
    assert.strictEqual(
      template`<p>
    ${"a\n    b"}
  </p>`.text,
      "<p>\na\n    b\n</p>"
    )
  })

  it("refuses a value that would stand without quotes in a tag", () => {
    assert.throws(() => template`<p title=${"a b"}></p>`, /without quotes/)
  })

  it("escapes by the characters that HTML knows", () => {
    assert.strictEqual(escape(`<a href="x" id='y'>&\`\0`), "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;&#96;")
  })
})

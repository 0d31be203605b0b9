/** Forms with a file: what browsers send is read, and nothing else (semantics dashboard.brand). */
import { assert, describe, it } from "@effect/vitest"
import { uploadIn } from "../../src/html/Uploads.ts"

const BOUNDARY = "----WebKitFormBoundaryx1y2z3"
const TYPE = `multipart/form-data; boundary=${BOUNDARY}`

const bodyOf = (...parts: ReadonlyArray<readonly [disposition: string, content: string, type?: string]>): Buffer =>
  Buffer.from(
    parts
      .map(
        ([disposition, content, type]) =>
          `--${BOUNDARY}\r\ncontent-disposition: form-data; ${disposition}\r\n` +
          `${type === undefined ? "" : `content-type: ${type}\r\n`}\r\n${content}\r\n`
      )
      .join("") + `--${BOUNDARY}--\r\n`,
    "latin1"
  )

describe("a form with a file", () => {
  it("has fields and a file, as a browser sends them", async () => {
    const form = new FormData()
    form.append("token", "a.b")
    form.append("text", " Müßig\r\nand\0 more ")
    form.append("text", "twice")
    form.append("logo", new File([new Uint8Array([0, 255, 13, 10, 45, 45])], "../x.svg", { type: "image/svg+xml" }))
    const sent = new Request("http://localhost/", { method: "POST", body: form })
    const upload = uploadIn(sent.headers.get("content-type")!, Buffer.from(await sent.arrayBuffer()))
    assert.deepStrictEqual(
      [...upload!.values],
      [
        ["token", "a.b"],
        ["text", "Müßig\nand more"],
        ["logo", ""]
      ]
    )
    assert.deepStrictEqual([...upload!.file!], [0, 255, 13, 10, 45, 45])
  })

  it("may have no file", () => {
    const none = bodyOf(['name="token"', "a"], ['name="logo"; filename=""', "", "application/octet-stream"])
    assert.isNull(uploadIn(TYPE, none)!.file)
    assert.isNull(uploadIn(TYPE, bodyOf(['name="token"', "a"]))!.file)
  })

  const file = ['name="logo"; filename="a.png"', "x", "image/png"] as const

  it.each<readonly [name: string, type: string, body: Buffer]>([
    ["another content type", "application/x-www-form-urlencoded", Buffer.from("a=b")],
    ["a similar content type", "multipart/form-database; boundary=x", bodyOf(file)],
    ["no content type", "", bodyOf(file)],
    ["no boundary", "multipart/form-data", bodyOf(file)],
    ["an empty body", TYPE, Buffer.alloc(0)],
    ["another boundary", "multipart/form-data; boundary=other", bodyOf(file)],
    ["no end", TYPE, bodyOf(file).subarray(0, -6)],
    ["two files", TYPE, bodyOf(file, file)],
    ["a part without a name", TYPE, bodyOf(['filename="a.png"', "x"])],
    ["too many parts", TYPE, bodyOf(...Array.from({ length: 17 }, (_, i) => [`name="${i}"`, "x"] as const))],
    ["parts without headers", TYPE, Buffer.from(`--${BOUNDARY}\r\n--${BOUNDARY}\r\n--${BOUNDARY}--\r\n`)],
    ["headers that do not parse", TYPE, Buffer.from(`--${BOUNDARY}\r\n\0: \r\n\r\nx\r\n--${BOUNDARY}--\r\n`)]
  ])("is refused with %s", (_, type, body) => {
    assert.isUndefined(uploadIn(type, body))
  })
})

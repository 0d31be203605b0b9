/** The rules of this project for oxlint. */
import * as LinearRegExp from "./LinearRegExp.ts"
import * as PlainComments from "./PlainComments.ts"

export default {
  meta: { name: "till" },
  rules: { "linear-regexp": { create: LinearRegExp.create }, "plain-comments": { create: PlainComments.create } }
}

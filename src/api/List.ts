/** Lists: the envelope and the parameters that every list takes (spec: Pagination). */
import { Schema, SchemaGetter } from "effect"
import { text } from "../domain/Text.ts"

export const LIMIT_DEFAULT = 10
export const LIMIT_MAX = 100

/** `limit` is the text of an integer without sign, point or exponent (semantics lists.limit). */
const Limit = Schema.String.check(Schema.isPattern(/^(?:[1-9][0-9]?|100)$/u))
  .annotate({ rule: `an integer from 1 to ${LIMIT_MAX}` })
  .pipe(
    Schema.decodeTo(Schema.Int, {
      decode: SchemaGetter.transform(Number),
      encode: SchemaGetter.transform(String)
    })
  )

const Cursor = text().check(Schema.isMinLength(1)).annotate({ rule: "the ID of an object" })
const StartingAfter = Cursor.annotate({
  description:
    "The ID of an object: the page begins after it, with older objects. The `next_cursor` of a page leads to the next one."
})
const EndingBefore = Cursor.annotate({
  description: "The ID of an object: the page ends before it, with newer objects. Not together with `starting_after`."
})

/** A flag that filters lists (semantics lists.filters). */
export const Flag = Schema.Literals(["true", "false"])
  .annotate({ rule: "`true` or `false`" })
  .pipe(
    Schema.decodeTo(Schema.Boolean, {
      decode: SchemaGetter.transform((flag) => flag === "true"),
      encode: SchemaGetter.transform((flag) => (flag ? "true" : "false"))
    })
  )

/** A bound on `created`: whole seconds since the Unix epoch, before the year 5138 (semantics lists.created). */
const Bound = Schema.String.check(Schema.isPattern(/^(?:0|[1-9][0-9]{0,10})$/u))
  .annotate({ rule: "a Unix timestamp in seconds" })
  .pipe(
    Schema.decodeTo(Schema.Int, {
      decode: SchemaGetter.transform(Number),
      encode: SchemaGetter.transform(String)
    })
  )
const bound = (than: string) =>
  Schema.optionalKey(Bound.annotate({ description: `Only objects created ${than}, in Unix seconds.` }))

export const pageQuery = {
  limit: Schema.optionalKey(Limit),
  starting_after: Schema.optionalKey(StartingAfter),
  ending_before: Schema.optionalKey(EndingBefore)
}

/** The query parameters of every list of objects with a `created` of their own (semantics lists.created). */
export const listQuery = {
  ...pageQuery,
  created: bound("at this time"),
  "created[gt]": bound("later than this"),
  "created[gte]": bound("at this time or later"),
  "created[lt]": bound("earlier than this"),
  "created[lte]": bound("at this time or earlier")
}

/** The longest wait for news: shorter than the time limit of a request, and than those of common proxies. */
export const WAIT_SECONDS_MAX = 25

/** The parameter of reads that wait for news (semantics requests.wait). */
export const waitQuery = (description: string) => ({
  wait: Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^(?:[0-9]|1[0-9]|2[0-5])$/u))
      .annotate({
        rule: `an integer from 0 to ${WAIT_SECONDS_MAX}`,
        description: `${description} At most ${WAIT_SECONDS_MAX} seconds.`
      })
      .pipe(
        Schema.decodeTo(Schema.Int, {
          decode: SchemaGetter.transform(Number),
          encode: SchemaGetter.transform(String)
        })
      )
  )
})

export const List = <S extends Schema.Top>(item: S) =>
  Schema.Struct({
    object: Schema.Literal("list"),
    data: Schema.Array(item),
    has_more: Schema.Boolean,
    url: Schema.String,
    next_cursor: Schema.NullOr(Schema.String)
  })

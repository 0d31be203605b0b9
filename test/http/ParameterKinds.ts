/**
 * The kinds of values that parameters accept and refuse, and the meanings of null and the empty string. Everything is
 * written independently after interface.md and semantics.md (semantics parameters.types, parameters.null,
 * parameters.lengths, parameters.references, parameters.email, parameters.urls, money.limits, money.currencies,
 * metadata.limits, metadata.update, metadata.create, products.null, parameters.empty_text, parameters.people,
 * payment_methods.create), not derived from the code.
 */

/** A kind of values. */
export interface Kind {
  readonly type: "string" | "integer" | "number" | "boolean" | "array" | "object"
  /** Valid values, including those at the limits. */
  readonly takes: ReadonlyArray<unknown>
  /** Values of the right type that break a rule: `parameter_invalid`. */
  readonly refuses: ReadonlyArray<unknown>
  /** Values that get another error. */
  readonly says?: ReadonlyArray<Says>
  /** Text without pattern, format, fixed length or enum: empty, it means no value. */
  readonly free?: boolean
  /** An object whose keys are the client's. An empty list is accepted as an empty one (semantics parameters.map). */
  readonly isMap?: boolean
}

/** `param` is the parameter's own name, unless given. */
export interface Says {
  readonly value: unknown
  readonly status: number
  readonly code: string
  readonly param?: string
}

/** The meaning of null or the empty string: the same as no parameter, "unset it", or one of two errors. */
export type Meaning = "nothing" | "unsets" | "missing" | "invalid"

/** The values that an operation accepts for one of its parameters. */
export interface Rule {
  readonly kind: Kind
  readonly whenNull: Meaning
  readonly whenEmpty: Meaning
  /** The request to test it in, if the operation has several. */
  readonly variant: string
}

const rule = (kind: Kind, whenNull: Meaning, whenEmpty: Meaning, variant: string): Rule => ({
  kind,
  whenNull,
  whenEmpty,
  variant
})

/** The parameter is required, at least in this request. */
export const required = (kind: Kind, variant = "plain") => rule(kind, "missing", "invalid", variant)
/** The parameter is optional. Null counts as its absence, and so does the empty string if the text is free. */
export const optional = (kind: Kind, variant = "plain") =>
  rule(kind, "nothing", kind.free === true ? "nothing" : "invalid", variant)
/** The parameter may be omitted from an update, but not unset. Also used for items of an array. */
export const never = (kind: Kind, variant = "plain") => rule(kind, "invalid", "invalid", variant)
/** In an update, null unsets the parameter, and nothing else does. */
export const nullable = (kind: Kind, variant = "plain") => rule(kind, "unsets", "invalid", variant)
/** In an update, null and the empty string unset the parameter. */
export const unsettable = (kind: Kind, variant = "plain") => rule(kind, "unsets", "unsets", variant)
/** The parameter is a value of metadata. Null and the empty string drop its key. */
export const dropped = (kind: Kind, variant = "plain") => rule(kind, "nothing", "nothing", variant)

const SMILEY = "\u{1f600}"
const padded = (before: string, length: number, after = "") =>
  before + "x".repeat(length - before.length - after.length) + after

/** Free text; lengths count code points. */
export const text = (max: number): Kind => ({
  type: "string",
  takes: ["a", SMILEY.repeat(max)],
  refuses: ["a".repeat(max + 1), SMILEY.repeat(max + 1), "\u0000", "\ud800"],
  free: true
})
/** Text that must not be empty. */
export const fullText = (max: number): Kind => ({ ...text(max), free: false })

let unique = 0
/** Text that is unique per environment. */
export const lookupKey = (): Kind => ({
  ...text(200),
  takes: [`key-${++unique}`, `${++unique}-`.padEnd(200, "x")]
})

/** An id; `known` are ids of existing objects. */
export const id = (prefix: string, ...known: ReadonlyArray<string>): Kind => ({
  type: "string",
  takes: known,
  refuses: ["x", prefix, `${prefix}-1`, `x${prefix}_1`, padded(`${prefix}_`, 5001)],
  says: [{ value: `${prefix}_${"0".repeat(24)}`, status: 404, code: "resource_missing" }]
})
/** An id to filter by: a missing object gives an empty result. */
export const filterId = (prefix: string): Kind => {
  const { refuses } = id(prefix)
  return { type: "string", takes: [`${prefix}_${"0".repeat(24)}`], refuses }
}

export const email: Kind = {
  type: "string",
  takes: ["a@b.co", padded("a", 320, "@b.co")],
  refuses: ["a", "a@b", "@b.co", "a b@c.de", padded("a", 321, "@b.co")]
}
export const country: Kind = {
  type: "string",
  takes: ["US", "us", "Gb", "AX"],
  refuses: ["U", "USA", "U1", "UK", "EU", "UN", "XK", "XX", "ZZ", "AN", " US", "ü"]
}
export const currency: Kind = {
  type: "string",
  takes: ["usd", "USD", "Usd"],
  refuses: ["us", "usdd", "u$d", "us1", "üsd", " usd"]
}
/** A decimal string; `takes` must fit the rest of the request. */
export const decimal = (...takes: ReadonlyArray<string>): Kind => ({
  type: "string",
  takes,
  refuses: ["-1", "+1", ".5", "5.", "1e3", "1,5", " 1", "1".repeat(13), `0.${"1".repeat(13)}`]
})

const NO_URLS = ["x", "/a", "//a.b/c", "https://", "https:a.b", "https:/a.b", padded("https://a.b/", 5001)]
export const webUrl: Kind = {
  type: "string",
  takes: ["https://a.b/c", "http://a.b", padded("https://a.b/", 5000)],
  refuses: [...NO_URLS, "ftp://a.b/c", "app://c", "javascript:alert(1)", "mailto:a@b.co"]
}
export const webhookUrl: Kind = { ...webUrl, refuses: [...webUrl.refuses, "https://me:pass@a.b/", "https://me@a.b/"] }
export const redirectUrl: Kind = {
  type: "string",
  takes: ["https://a.b/{CHECKOUT_SESSION_ID}", "app://back", padded("https://a.b/", 5000)],
  refuses: [...NO_URLS, "javascript:alert(1)", "JAVASCRIPT:alert(1)", "java\nscript:x", "data:,x", "vbscript:x"].concat(
    ["file:///x", "about:blank", "blob:https://a.b/c", "view-source:https://a.b", "intent://a", "https://me:pw@a.b/"]
  )
}

/** A closed enum. `takes` are the values that fit the rest of the request, if not all do. */
export const oneOf = (values: string, takes: string = values): Kind => {
  const [first = ""] = values.split(" ")
  return {
    type: "string",
    takes: takes.split(" ").filter((value) => value !== ""),
    refuses: ["x", first.toUpperCase(), `${first} `, first.slice(1), values, "\u0000"].filter(
      (value) => !values.split(" ").includes(value)
    )
  }
}

export const boolean = (...takes: ReadonlyArray<boolean>): Kind => ({
  type: "boolean",
  takes,
  refuses: [true, false].filter((value) => takes.length === 1 && !takes.includes(value))
})
export const anyBoolean = boolean(true, false)

const UNSAFE = 2 ** 53
/** An integer within these bounds. */
export const integer = (min: number, max?: number): Kind => ({
  type: "integer",
  takes: max === undefined ? [min] : [min, max],
  refuses: [min - 1, UNSAFE, ...(max === undefined ? [] : [max + 1])]
})
/** An amount: above the cap, the error has its own code. */
export const amount = (min: number, max = 999_999_999_999, ...takes: ReadonlyArray<number>): Kind => ({
  type: "integer",
  takes: takes.length === 0 ? [min, max] : takes,
  refuses: [min - 1, UNSAFE],
  says: [{ value: max + 1, status: 400, code: "amount_too_large" }]
})
export const dimension: Kind = { type: "number", takes: [0.5, 1, 1e9], refuses: [0, -1] }

export const array = (takes: ReadonlyArray<unknown>, refuses: ReadonlyArray<unknown>): Kind => ({
  type: "array",
  takes,
  refuses
})
export const object = (...takes: ReadonlyArray<object>): Kind => ({ type: "object", takes, refuses: [] })

const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, "v"]))
export const metadata: Kind = {
  type: "object",
  isMap: true,
  takes: [{ a: "b" }, {}, keys(50), { [SMILEY.repeat(40)]: "v" }],
  refuses: [["a"], [[]], keys(51), { ["k".repeat(41)]: "v" }, { "a[b]": "v" }, { "": "v" }]
}
export const metadataValue = text(500)

/** A security code of this card scheme. */
export const cvc: Kind = {
  type: "string",
  takes: ["123", "000"],
  refuses: ["12", "1234", "12a", " 12", "１２３"]
}
export const cardNumber: Kind = {
  type: "string",
  takes: ["4242424242424242", "5555555555554444", "3056930009020004"],
  refuses: ["4242424242424241", "4242 4242 4242 4242", "42", "4".repeat(20)]
}
/** A token, in a request that has a card, too. */
export const token: Kind = {
  type: "string",
  takes: [],
  refuses: ["a b", "ü", "x".repeat(256), "4242424242424242", "4242-4242-4242-4242"],
  says: [{ value: "tok_visa", status: 400, code: "parameters_exclusive" }]
}

/** Values of the other JSON types; for an integer, also a fraction. */
export const wrongTypes = ({ isMap = false, type }: Kind): ReadonlyArray<unknown> => {
  const samples: ReadonlyArray<readonly [Kind["type"], unknown]> = [
    ["string", "2000"],
    ["integer", 1],
    ["number", 1.5],
    ["boolean", true],
    ["array", isMap ? ["a"] : []],
    ["object", {}]
  ]
  return samples.filter(([of]) => of !== type && !(type === "number" && of === "integer")).map(([, value]) => value)
}

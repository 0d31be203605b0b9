/** People who sign in to the dashboard of one merchant, in a role (semantics dashboard.people). */
import { Schema } from "effect"

/** Developers have neither team nor live keys; support only reads and refunds (semantics dashboard.roles). */
export const Role = Schema.Literals(["owner", "developer", "support"]).annotate({
  rule: "one of `owner`, `developer` or `support`"
})
export type Role = typeof Role.Type

export const Person = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("person"),
  merchant_id: Schema.String,
  /** The address as entered; null until the first owner has entered one. */
  email: Schema.NullOr(Schema.String),
  role: Role,
  /** Whether a password is set. Without one, only a sign-in link works. */
  has_password: Schema.Boolean,
  /** IANA name of the time zone of the person's pages and files; absent until it is set, for UTC. */
  time_zone: Schema.optionalKey(Schema.String),
  /** Unix seconds. */
  created: Schema.Int
})
export type Person = typeof Person.Type

/** Shorter passwords can be guessed. */
export const PASSWORD_LENGTH_MIN = 12
/** Longer than typed passwords, and short enough to hash quickly. */
export const PASSWORD_LENGTH_MAX = 256

export const SignInMeans = Schema.Literals(["link", "password"])
export type SignInMeans = typeof SignInMeans.Type

/** How a person with two-step verification proved the second step. */
export const SecondMeans = Schema.Literals(["app", "recovery_code"])
export type SecondMeans = typeof SecondMeans.Type

/** The origin of a sign-in, as reported by the browser and the network. */
export const Origin = Schema.Struct({
  /** An IP address; empty if unknown. */
  address: Schema.String,
  /** The browser's `User-Agent`, truncated if long. */
  agent: Schema.String
})
export type Origin = typeof Origin.Type

/** A signed-in browser. The session ends by expiry, by a sign-out, or with a change of the person's password. */
export const DashboardSession = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("dashboard_session"),
  person: Schema.String,
  merchant_id: Schema.String,
  means: SignInMeans,
  ...Origin.fields,
  /** Unix seconds. */
  created: Schema.Int,
  /** Unix seconds. */
  expires_at: Schema.Int,
  /** Unix seconds of the last identity confirmation. */
  confirmed_at: Schema.Int,
  /** The last use, noted every ten minutes at most; absent until then. */
  last_used: Schema.optionalKey(
    Schema.Struct({
      /** Unix seconds. */
      at: Schema.Int,
      /** The address of that request. */
      address: Schema.String
    })
  )
})
export type DashboardSession = typeof DashboardSession.Type

export const SignIn = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("sign_in"),
  person: Schema.String,
  merchant_id: Schema.String,
  means: SignInMeans,
  /** Absent without two-step verification. */
  second_means: Schema.optionalKey(SecondMeans),
  ...Origin.fields,
  /** Unix seconds. */
  created: Schema.Int
})
export type SignIn = typeof SignIn.Type

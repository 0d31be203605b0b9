/** A person signs in to the dashboard of one merchant, in a role (semantics 9.60). */
import { Schema } from "effect"

/**
 * What somebody may do there: an owner everything; a developer everything but the team and live keys; support sees, and
 * gives money back (semantics 9.61).
 */
export const Role = Schema.Literals(["owner", "developer", "support"]).annotate({
  rule: "one of `owner`, `developer` or `support`"
})
export type Role = typeof Role.Type

export const Person = Schema.Struct({
  /** `per_…` */
  id: Schema.String,
  object: Schema.Literal("person"),
  merchant_id: Schema.String,
  /** As it was entered; null until the first owner has chosen one. */
  email: Schema.NullOr(Schema.String),
  role: Role,
  /** Whether a password is set. Without one, only a link leads in. */
  has_password: Schema.Boolean,
  /** Unix seconds. */
  created: Schema.Int
})
export type Person = typeof Person.Type

/** Fewer characters are guessed. */
export const PASSWORD_LENGTH_MIN = 12
/** More than anybody types, and few enough to be hashed at once. */
export const PASSWORD_LENGTH_MAX = 256

/** How somebody came in. */
export const SignInMeans = Schema.Literals(["link", "password"])
export type SignInMeans = typeof SignInMeans.Type

/** Where somebody came from, as far as their browser and the network say. */
export const Origin = Schema.Struct({
  /** An IP address; empty if nobody knows. */
  address: Schema.String,
  /** The browser's `User-Agent`, cut off where it is long. */
  agent: Schema.String
})
export type Origin = typeof Origin.Type

/** A browser in which somebody is signed in. It ends by itself, with a sign-out, or with its person's password. */
export const DashboardSession = Schema.Struct({
  /** `dse_…` */
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
  /** When somebody last proved who they are, in Unix seconds. */
  confirmed_at: Schema.Int
})
export type DashboardSession = typeof DashboardSession.Type

/** Somebody has signed in. */
export const SignIn = Schema.Struct({
  /** `sin_…` */
  id: Schema.String,
  object: Schema.Literal("sign_in"),
  person: Schema.String,
  merchant_id: Schema.String,
  means: SignInMeans,
  ...Origin.fields,
  /** Unix seconds. */
  created: Schema.Int
})
export type SignIn = typeof SignIn.Type

/**
 * The error of a failed attempt contains neither the address nor the secret (semantics webhooks.errors): every reader
 * of deliveries sees it.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { ANY, makeSender, messageTo, PUBLIC } from "./Sending.ts"

/** Texts long enough not to occur in an error by chance. */
const part = Schema.String.check(Schema.isPattern(/^[a-z\d]{12,24}$/u))

const target = Schema.Struct({
  scheme: Schema.Literals(["http", "https", "ftp", "x y"]),
  user: part,
  password: part,
  host: part,
  suffix: Schema.Literals(["localhost", "invalid", "127.0.0.1", "[::1]", "256.0.0.1"]),
  path: part,
  query: part,
  secret: part,
  body: part,
  publicOnly: Schema.Boolean,
  failure: Schema.Literals(["ENOTFOUND", "EAI_AGAIN", "ESERVFAIL", "empty", "private"])
})

/** A sentence without codes and numbers. */
const WORDS = /^[A-Z][a-z]+ [A-Za-z ]+\.$/u

describe("the error of an attempt", () => {
  it.live.prop(
    "is a few fixed words for any endpoint",
    [target],
    ([{ body, failure, host, password, path, publicOnly, query, scheme, secret, suffix, user }]) =>
      Effect.gen(function* () {
        const sender = yield* makeSender({
          resolve: (hostname, callback) => {
            if (failure === "empty") return callback(null, [])
            if (failure === "private") return callback(null, [{ address: "127.0.0.1", family: 4 }])
            const error = new Error(`query ${failure} ${hostname} ${secret}`)
            callback(Object.assign(error, { code: failure, hostname }), [])
          }
        })
        // No process listens on port 1.
        const name = /^[a-z]/u.test(suffix) ? `${host}.${suffix}` : suffix
        const url = `${scheme}://${user}:${password}@${name}:1/${path}?${query}`
        const secrets = [Redacted.make(`whsec_${secret}`)]
        const { error, status } = yield* sender.send(
          messageTo(url, { secrets, hosts: publicOnly ? PUBLIC : ANY, body })
        )
        assert.isNull(status)
        assert.match(error!, WORDS)
        assert.isAtMost(error!.length, 80)
        for (const hidden of [user, password, host, path, query, secret, body, name]) {
          assert.isFalse(error!.includes(hidden), `${JSON.stringify(error)} holds ${hidden}`)
        }
      }).pipe(Effect.scoped),
    { arbitrary: { runs: 100 } }
  )
})

/** The rule finds regular expressions of quadratic time, and no others. */
import { assert, describe, it } from "@effect/vitest"
import { slownessOf } from "./LinearRegExp.ts"

describe("the rule of linear regular expressions", () => {
  it.each([
    /^\s*for\s*=\s*(.*?)\s*$/i,
    /"((?:[^"\\]|\\.)*)"(\s*:)?/gsu,
    /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*)/g,
    /\s*[-–]\s*/u,
    /^[^\s@]+@[^\s@]+\.[^\s@]+$/u,
    /^[^\s@?]+@[^\s@?]+\.[^\s@?]+$/u,
    /\/+$/,
    /\B(?=(?:\d{3})+$)/g,
    /lock file ".*" already exists/,
    /(?:a|b(?:ab)*c)/,
    /^(?:a+)+$/
  ])("finds %s", (pattern) => assert.isNotEmpty(slownessOf(pattern.source, pattern.flags)))

  it.each([
    /^[^\s@]+@[^\s@][^\s@.]*\.[^\s@]+$/u,
    /^\s*text\/html\s*(?:;(?!\s*q=0(?:\.0*)?\s*$)|$)/i,
    /`([^`]+)`/g,
    /(?:[sp]k_(?:test|live)_|whsec_|_secret_)[0-9A-Za-z_+/=-]{4,}/gi,
    /["/](?:cus|pi)_[0-9A-Za-z]{8,64}(?=["/]|$)/g,
    /\s+/,
    /"(?:[^"\\]|\\.)*"/y,
    /lock file "[^"]*" already exists/
  ])("lets %s through", (pattern) => assert.deepStrictEqual(slownessOf(pattern.source, pattern.flags), []))
})

/** The addresses in the manifests of the packages. */
import { assert, describe, it } from "@effect/vitest"
import { webAddressOf } from "../../pack/Manifest.ts"

describe("the web address of a remote", () => {
  it.each([
    ["https://git.example/owner/till.git", "https://git.example/owner/till"],
    ["https://user@git.example:8443/owner/till", "https://git.example/owner/till"],
    ["git@git.example:owner/till.git", "https://git.example/owner/till"],
    ["ssh://git@git.example:22/group/owner/till.git", "https://git.example/group/owner/till"],
    ["git+https://git.example/owner/till.git/", "https://git.example/owner/till"],
    ["/srv/git/till.git", undefined],
    ["../till", undefined]
  ])("%s", (remote, expected) => {
    assert.strictEqual(webAddressOf(remote), expected)
  })
})

/** Any colour that a merchant chooses stays readable on pages (semantics pages.brand; WCAG 2.2). */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { contrast, GROUNDS, type Palette, paletteOf, type Scheme, styleSheetOf } from "../../src/html/Accent.ts"
import { stylesheet } from "../../src/html/Assets.ts"

const rgb = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0xff_ffff }))
const scheme = Schema.Literals(["light", "dark"])
const hex = (color: number): string => `#${color.toString(16).padStart(6, "0")}`

const assertReadable = (color: string, scheme: Scheme): Palette => {
  const palette = paletteOf(color, scheme)
  for (const part of Object.values(palette)) assert.match(part, /^#[0-9a-f]{6}$/)
  for (const below of [palette.accent, palette["accent-strong"]]) {
    assert.isAtLeast(contrast(palette["on-accent"], below), 4.5, `text on ${below}`)
  }
  for (const ground of GROUNDS[scheme]) {
    assert.isAtLeast(contrast(palette["accent-text"], ground), 4.5, `text of ${color} on ${ground}`)
    assert.isAtLeast(contrast(palette["accent-edge"], ground), 3, `edge of ${color} on ${ground}`)
  }
  return palette
}

describe("a merchant's colour", () => {
  it.prop("is readable on every background", { rgb, scheme }, ({ rgb, scheme }) => {
    const color = hex(rgb)
    const palette = assertReadable(color, scheme)
    assert.strictEqual(palette.accent, color)
    // A colour with enough contrast is unchanged.
    const isFine = GROUNDS[scheme].every((ground) => contrast(color, ground) >= 4.5)
    assert.strictEqual(palette["accent-text"] === color, isFine)
  })

  it("is readable in medium brightness, where black and white contrast least", () => {
    for (let part = 0; part < 256; part++) {
      for (const color of [
        [part, part, part],
        [255, part, 0],
        [0, part, 255],
        [part, 255, part],
        [255, 0, part]
      ]) {
        const [red, green, blue] = color as [number, number, number]
        for (const scheme of ["light", "dark"] as const) assertReadable(hex((red << 16) | (green << 8) | blue), scheme)
      }
    }
  })

  it("has contrasts as WCAG computes them", () => {
    assert.strictEqual(contrast("#000000", "#ffffff"), 21)
    assert.strictEqual(contrast("#123456", "#123456"), 1)
    assert.approximately(contrast("#ffffff", "#767676"), 4.54, 0.01)
  })

  it("uses the backgrounds and sets the properties of the style sheet", () => {
    const [light = "", dark = ""] = [...stylesheet.text.matchAll(/:root \{([^}]*)\}/g)].map(([, block]) => block!)
    const valuesIn = (block: string) =>
      ["ground", "panel", "test"].map((name) => new RegExp(`--${name}: (#[0-9a-f]{6})`).exec(block)?.[1])
    assert.deepStrictEqual(valuesIn(light), [...GROUNDS.light])
    assert.deepStrictEqual(valuesIn(dark), [...GROUNDS.dark])
    const set = [...styleSheetOf("#1b7f5e").matchAll(/--([a-z-]+):/g)].map(([, name]) => name!)
    const used = [...stylesheet.text.matchAll(/var\(--((?:on-)?accent[a-z-]*)\)/g)].map(([, name]) => name!)
    assert.sameMembers([...new Set(set)], [...new Set(used)])
  })
})

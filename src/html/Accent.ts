/**
 * Derives readable shades from a merchant's colour: text on it and in it has enough contrast (WCAG 2.2, 1.4.3 and
 * 1.4.11) in light and dark mode.
 *
 * Buttons use the colour itself, with black or white text, whichever contrasts more. As text or border, the colour is
 * shifted towards black or white until it contrasts with every background, and no further: a readable colour is
 * unchanged.
 */
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"

/** Red, green and blue, 0 to 255. */
type Color = readonly [number, number, number]

/** Backgrounds: page, panel and test-mode panel, as in `till.css`. */
export const GROUNDS = {
  light: ["#f4f6f9", "#ffffff", "#fff1d1"],
  dark: ["#0e1116", "#171c23", "#3a2c0c"]
} as const

export type Scheme = keyof typeof GROUNDS

/** Minimum contrast of text, and of other visible parts. */
const TEXT_CONTRAST = 4.5
const SHAPE_CONTRAST = 3

const BLACK = "#000000"
const WHITE = "#ffffff"

const parsed = (hex: string): Color => {
  const value = Number.parseInt(hex.slice(1), 16)
  return [value >> 16, (value >> 8) & 255, value & 255]
}

const written = (color: Color): string => `#${color.map((part) => part.toString(16).padStart(2, "0")).join("")}`

const luminance = (hex: string): number => {
  const [red, green, blue] = parsed(hex).map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }) as unknown as Color
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** The contrast ratio of two colours, from 1 to 21 (WCAG 2.2). */
export const contrast = (one: string, other: string): number => {
  const [darker, lighter] = [luminance(one), luminance(other)].toSorted((a, b) => a - b) as [number, number]
  return (lighter + 0.05) / (darker + 0.05)
}

/** Mixes a share of another colour into a colour; 0 to 1. */
const mixed = (hex: string, other: string, share: number): string => {
  const [from, to] = [parsed(hex), parsed(other)]
  return written(from.map((part, index) => Math.round(part + (to[index]! - part) * share)) as unknown as Color)
}

const STEPS = 64

/** The nearest shade of a colour with enough contrast to all of these backgrounds. */
const shifted = (hex: string, grounds: ReadonlyArray<string>, towards: string, enough: number): string => {
  for (let step = 0; step < STEPS; step++) {
    const shade = mixed(hex, towards, step / STEPS)
    if (grounds.every((ground) => contrast(shade, ground) >= enough)) return shade
  }
  return towards
}

/** Custom properties of the style sheet by name. */
export interface Palette {
  readonly accent: string
  readonly "accent-strong": string
  /** Text on both backgrounds. */
  readonly "on-accent": string
  /** Links and focus rings. */
  readonly "accent-text": string
  readonly "accent-edge": string
}

/** Shades of a colour `#rrggbb` for one colour scheme. */
export const paletteOf = (accent: string, scheme: Scheme): Palette => {
  const towards = scheme === "light" ? BLACK : WHITE
  const on = contrast(accent, WHITE) >= contrast(accent, BLACK) ? WHITE : BLACK
  return {
    accent,
    "accent-strong": mixed(accent, on === WHITE ? BLACK : WHITE, 0.2),
    "on-accent": on,
    "accent-text": shifted(accent, GROUNDS[scheme], towards, TEXT_CONTRAST),
    "accent-edge": shifted(accent, GROUNDS[scheme], towards, SHAPE_CONTRAST)
  }
}

const declarations = (palette: Palette): string =>
  `:root{${Object.entries(palette)
    .map(([name, value]) => `--${name}:${value}`)
    .join(";")}}`

export const styleSheetOf = (accent: string): string =>
  `${declarations(paletteOf(accent, "light"))}
@media (prefers-color-scheme:dark){${declarations(paletteOf(accent, "dark"))}}
`

/**
 * Path of the style sheet for a colour `#rrggbb`. Pages forbid inline styles, so a merchant's colour is a file
 * (semantics pages.brand). Its content depends on the path alone and reveals nothing about merchants.
 */
export const pathOf = (accent: string): string => `/accent/${accent.slice(1)}.css`

/** Not immutable: another version of Till may derive other shades. */
const HEADERS = { "cache-control": "public, max-age=3600", "cross-origin-resource-policy": "cross-origin" }

export const layer = HttpRouter.add(
  "GET",
  "/accent/:file",
  Effect.map(HttpRouter.params, ({ file = "" }) => {
    const color = /^([0-9a-f]{6})\.css$/.exec(file)?.[1]
    return color === undefined
      ? HttpServerResponse.empty({ status: 404 })
      : HttpServerResponse.text(styleSheetOf(`#${color}`), { contentType: "text/css; charset=utf-8", headers: HEADERS })
  })
)

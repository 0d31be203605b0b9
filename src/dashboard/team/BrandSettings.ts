/**
 * The settings of a merchant's brand on payers' pages (semantics pages.brand, dashboard.brand): logo, name, colour and
 * links, beside a preview of the checkout page.
 */
import { Effect, Layer } from "effect"
import { type Brand, BRAND_SETTING_NAMES } from "../../domain/Brand.ts"
import { ResourceMissing } from "../../domain/Errors.ts"
import type { ImageProblem } from "../../domain/ImageParts.ts"
import { IMAGE_BYTES_MAX, IMAGE_SIDE_MAX, IMAGE_TYPES, readImage } from "../../domain/RasterImage.ts"
import { contrast, GROUNDS, paletteOf, type Scheme } from "../../html/Accent.ts"
import { brandOf, iconHtml } from "../../html/Brand.ts"
import { CheckoutPreview } from "../../html/CheckoutPreview.ts"
import type { FormValues } from "../../html/Forms.ts"
import { type Child, html, type Html } from "../../html/Html.ts"
import { page as pageResponse } from "../../html/PageResponse.ts"
import { INSTALLATION } from "../../payments/shared/AccountIds.ts"
import { nameComplaint, settingComplaint } from "../../payments/administration/Administration.ts"
import * as Logos from "../../payments/merchants/Logos.ts"
import * as Merchants from "../../payments/merchants/Merchants.ts"
import { type Fields, form } from "../frame/Form.ts"
import { pickChanged } from "../frame/FormDecoding.ts"
import { action, download, Invalid, page, type Show } from "../frame/Page.ts"
import { facts, section } from "../frame/Values.ts"
import type { Visit } from "../frame/Visit.ts"

const PAGE = "/settings"
const PREVIEW = "preview"

const KILOBYTES_MAX = IMAGE_BYTES_MAX / 1024
const PIXELS_MAX = `${IMAGE_SIDE_MAX} × ${IMAGE_SIDE_MAX}`

/** Till's own colour, with which the picker begins. */
const COLOR_DEFAULT = "#0a56c9"

/** A button in the merchant's colour, as SVG because the page's policy forbids inline styles. */
const buttonIn = (accent: string): Html => {
  const { "on-accent": text, accent: ground } = paletteOf(accent, "light")
  return html`<svg width="160" height="40" viewBox="0 0 160 40" role="img" aria-label="A button in ${accent}">
    <rect width="160" height="40" rx="8" fill="${ground}" />
    <text x="80" y="25" text-anchor="middle" font-size="15" font-weight="600" fill="${text}">Pay $24.50</text>
  </svg>`
}

const ratio = (one: string, other: string): string => `${contrast(one, other).toFixed(1)}:1`

/** The lowest contrast of a colour with the backgrounds of a scheme. */
const lowest = (color: string, scheme: Scheme): number =>
  Math.min(...GROUNDS[scheme].map((ground) => contrast(color, ground)))

/** How links look in one scheme: in the colour itself, or in the nearest shade that can be read. */
const linksIn = (accent: string, scheme: Scheme): string => {
  const shade = paletteOf(accent, scheme)["accent-text"]
  const contrasts = `${lowest(accent, scheme).toFixed(1)}:1`
  if (shade === accent) return `Your colour, ${contrasts}`
  const instead = scheme === "light" ? "A darker shade" : "A lighter shade"
  return `${instead} (${shade}), because your colour would be hard to read (${contrasts})`
}

/** The judgement of a colour's contrast (WCAG 2.2): pages use shades of it where it would be hard to read. */
const colorFacts = (accent: string): Html => {
  const { "on-accent": text } = paletteOf(accent, "light")
  return facts([
    ["Buttons", html`${buttonIn(accent)}`],
    ["Text on buttons", `${text === "#ffffff" ? "White" : "Black"}, ${ratio(text, accent)}`],
    ["Links on light pages", linksIn(accent, "light")],
    ["Links on dark pages", linksIn(accent, "dark")]
  ])
}

/** The settings that are saved, or those of a preview. */
interface Shown {
  readonly name: string
  readonly accent: string | null
}

/** The frame has a page of its own that takes neither clicks nor the focus. */
const previewSection = (visit: Visit, { accent, name }: Shown): Html =>
  html`<section id="${PREVIEW}" tabindex="-1">
    <header><h2>Preview</h2></header>
    ${accent !== null && colorFacts(accent)}
    <iframe
      class="preview"
      src="${visit.to(`${PAGE}/preview`, { name, accent })}"
      title="Preview of the checkout page"
      sandbox="allow-same-origin"
      tabindex="-1"
      inert=""
    ></iframe>
  </section>`

const logoSection = (visit: Visit, problem: Parameters<Show>[2]): Html => {
  const brand = brandOf(visit.merchant, visit.livemode, visit.location.depth)
  const isUploaded = visit.merchant.brand.logo !== undefined
  return section(
    "Logo",
    html`${brand.icon !== null && html`<p class="logo">${iconHtml(brand)}</p>`}
    ${form({
      visit,
      action: `${PAGE}/logo`,
      submit: brand.icon === null ? "Upload" : "Replace",
      problem,
      isUpload: true,
      content: (fields) =>
        fields.file({
          name: "logo",
          label: "Image file",
          accept: IMAGE_TYPES.join(),
          hint: `PNG, JPEG or WebP, up to ${KILOBYTES_MAX} KB and ${PIXELS_MAX} pixels. Square images look best.`
        })
    })}
    ${isUploaded && form({ visit, action: `${PAGE}/remove-logo`, submit: "Remove logo", tone: "danger", problem })}`
  )
}

const linkFields = (fields: Fields, brand: Brand): Child => [
  fields.text({
    name: "support",
    label: "Support",
    value: brand.support ?? "",
    hint: "A web address, or mailto: and an email address."
  }),
  fields.text({ name: "terms", label: "Terms of sale", value: brand.terms ?? "", hint: "A web address." }),
  fields.text({ name: "privacy", label: "Privacy policy", value: brand.privacy ?? "", hint: "A web address." })
]

const brandFields =
  ({ merchant: { brand, name } }: Visit) =>
  (fields: Fields): Child => [
    fields.text({ name: "name", label: "Business name", value: name, required: true }),
    fields.check({ name: "has_accent", label: "Use my own colour", checked: brand.accent !== null }),
    fields.color({
      name: "accent",
      label: "Colour",
      value: brand.accent,
      initial: COLOR_DEFAULT,
      hint: "For buttons and links. Text stays readable on any colour."
    }),
    linkFields(fields, brand),
    fields.more({
      title: "Logo from another server",
      names: ["icon"],
      content: fields.text({
        name: "icon",
        label: "Address of the image",
        value: brand.icon ?? "",
        hint: "An uploaded logo is shown instead of this one."
      })
    })
  ]

const show: Show = (visit, _, problem) => {
  const { brand, name } = visit.merchant
  const shown = problem?.preview === undefined ? { name, accent: brand.accent } : (problem.preview as Shown)
  return Effect.succeed({
    title: "Settings",
    section: "Settings",
    pictures: [brandOf(visit.merchant, visit.livemode).icon],
    content: html`<div class="previewed">
      <div>
        ${logoSection(visit, problem)}
        ${section(
          "Brand",
          form({
            visit,
            action: `${PAGE}/set`,
            submit: "Save",
            preview: PREVIEW,
            problem,
            isEdit: true,
            content: brandFields(visit)
          })
        )}
      </div>
      ${previewSection(visit, shown)}
    </div>`
  })
}

const required = (id: string) => (changed: Merchants.Merchant | undefined) =>
  changed === undefined
    ? Effect.fail(new ResourceMissing({ kind: "Merchant", id, param: "id" }))
    : Effect.succeed(changed)

/** The values with the colour as it will be saved: a colour field always has one. */
const withColor = (values: FormValues): FormValues =>
  new Map(values).set("accent", values.has("has_accent") ? (values.get("accent") ?? "").toLowerCase() : "")

const onPage = { right: "build", page: PAGE, show } as const

const set = action({
  ...onPage,
  name: "merchant.brand",
  path: `${PAGE}/set`,
  notice: "Brand saved.",
  prepare: ({ merchant }, _, sent) => {
    const values = withColor(sent)
    const name = values.get("name") ?? ""
    const wrongName = nameComplaint(name)
    const errors: Record<string, string> = wrongName === undefined ? {} : { name: wrongName }
    const brand: Record<string, string | null> = {}
    for (const setting of BRAND_SETTING_NAMES) {
      const given = values.get(setting) ?? ""
      const rule = given === "" ? undefined : settingComplaint(setting, given)
      if (rule !== undefined) errors[setting] = `This must be ${rule}.`
      brand[setting] = given === "" ? null : given
    }
    if (Object.keys(errors).length > 0) return Effect.succeed(new Invalid(errors))
    const entered = pickChanged(values, { name, ...(brand as unknown as Omit<Brand, "logo">) })
    const isPreview = values.has("preview")
    return Effect.succeed({
      account: INSTALLATION,
      entered,
      subject: merchant.id,
      isPreview,
      command: isPreview
        ? Effect.succeed({ name, accent: brand["accent"] })
        : Effect.flatMap(Merchants.changeAppearance(merchant.id, entered), required(merchant.id))
    })
  }
})

const PROBLEMS: Readonly<Record<ImageProblem, string>> = {
  bytes: `This file is too large. Choose one of at most ${KILOBYTES_MAX} KB.`,
  kind: "Choose a PNG, JPEG or WebP image.",
  broken: "This file is damaged. Save the image again as PNG, and upload that.",
  animated: "Choose an image that is not animated.",
  pixels: `This image is too large. Choose one of at most ${PIXELS_MAX} pixels.`
}

const upload = action({
  ...onPage,
  name: "merchant.upload_logo",
  path: `${PAGE}/logo`,
  isUpload: true,
  notice: "Logo saved.",
  prepare: ({ merchant }, _, __, file) => {
    if (file === null) return Effect.succeed(new Invalid({ logo: "Choose an image file first." }))
    const image = readImage(file)
    if (typeof image === "string") return Effect.succeed(new Invalid({ logo: PROBLEMS[image] }))
    return Effect.succeed({
      account: INSTALLATION,
      entered: { logo: Logos.nameOf(image) },
      subject: merchant.id,
      command: Effect.flatMap(Logos.upload(merchant.id, image), required(merchant.id))
    })
  }
})

const remove = action({
  ...onPage,
  name: "merchant.remove_logo",
  path: `${PAGE}/remove-logo`,
  notice: "Logo removed.",
  prepare: ({ merchant }) =>
    Effect.succeed({
      account: INSTALLATION,
      entered: {},
      subject: merchant.id,
      command: Effect.flatMap(Logos.remove(merchant.id), required(merchant.id))
    })
})

/** The page in the frame: name and colour come with its address, and only the settings page may frame it. */
const preview = download<CheckoutPreview>(
  `${PAGE}/preview`,
  "build",
  Effect.fnUntraced(function* ({ livemode, location, merchant, query }) {
    const { render } = yield* CheckoutPreview
    const [name, accent] = [query.get("name") ?? "", query.get("accent") ?? ""]
    const saved = brandOf(merchant, livemode, location.depth)
    const brand = {
      ...saved,
      name: nameComplaint(name) === undefined ? name : saved.name,
      accent: settingComplaint("accent", accent) === undefined ? accent.toLowerCase() : null
    }
    return pageResponse(render(brand, location.depth), { pictures: [brand.icon], frameAncestors: ["'self'"] })
  })
)

export const layer = Layer.mergeAll(page(PAGE, "build", show), set, upload, remove, preview)

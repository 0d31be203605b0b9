/** The merchant's brand on payers' pages (semantics pages.brand): name, icon, colour, and links. */
import { Effect, Layer } from "effect"
import { type Brand, BRAND_SETTING_NAMES } from "../../domain/Brand.ts"
import { ResourceMissing } from "../../domain/Errors.ts"
import { paletteOf } from "../../html/Accent.ts"
import { iconHtml, brandOf } from "../../html/Brand.ts"
import { html } from "../../html/Html.ts"
import { INSTALLATION } from "../../payments/AccountIds.ts"
import { nameComplaint, settingComplaint } from "../../payments/Administration.ts"
import * as Merchants from "../../payments/Merchants.ts"
import { form } from "../frame/Form.ts"
import { facts, NOTHING, section } from "../frame/Values.ts"
import { pickChanged } from "../frame/FormDecoding.ts"
import { action, Invalid, page, type Show } from "../frame/Page.ts"
import type { Visit } from "../frame/Visit.ts"

/** A button in the merchant's colour, as SVG because the page's policy forbids inline styles. */
const buttonIn = (accent: string) => {
  const { "on-accent": text, accent: ground } = paletteOf(accent, "light")
  return html`<svg width="160" height="40" viewBox="0 0 160 40" role="img" aria-label="A button in ${accent}">
    <rect width="160" height="40" rx="8" fill="${ground}" />
    <text x="80" y="25" text-anchor="middle" font-size="15" font-weight="600" fill="${text}">Pay 43.21 USD</text>
  </svg>`
}

const preview = ({ livemode, merchant }: Visit) => {
  const brand = brandOf(merchant, livemode)
  return facts([
    ["Name", html`<bdi>${brand.name}</bdi>`],
    ["Icon", brand.icon === null ? NOTHING : iconHtml(brand)],
    ["Colour", brand.accent === null ? NOTHING : buttonIn(brand.accent)]
  ])
}

const show: Show = (visit, _, problem) => {
  const { brand, name } = visit.merchant
  return Effect.succeed({
    title: "Brand",
    section: "Developers",
    back: ["/developers", "Developers"],
    pictures: [brandOf(visit.merchant, visit.livemode).icon],
    content: [
      section("Preview", preview(visit)),
      section(
        "Settings",
        form({
          visit,
          action: "/developers/brand/set",
          submit: "Save",
          problem,
          isEdit: true,
          content: (fields) => [
            fields.text({ name: "name", label: "Name", value: name, required: true }),
            fields.text({ name: "icon", label: "Icon", value: brand.icon ?? "", hint: "URL of a square image" }),
            fields.text({ name: "accent", label: "Colour", value: brand.accent ?? "", hint: "For example #1b7f5e" }),
            fields.text({
              name: "support",
              label: "Support",
              value: brand.support ?? "",
              hint: "URL of a page, or mailto: and an address"
            }),
            fields.text({ name: "terms", label: "Terms", value: brand.terms ?? "", hint: "URL of the terms of sale" }),
            fields.text({
              name: "privacy",
              label: "Privacy",
              value: brand.privacy ?? "",
              hint: "URL of the privacy policy"
            })
          ]
        })
      )
    ]
  })
}

const set = action({
  name: "merchant.brand",
  right: "build",
  page: "/developers/brand",
  path: "/developers/brand/set",
  show,
  notice: "Brand saved.",
  prepare: ({ merchant }, _, values) => {
    const name = values.get("name") ?? ""
    const wrongName = nameComplaint(name)
    const errors: Record<string, string> = wrongName === undefined ? {} : { name: wrongName }
    const brand: Record<string, string | null> = {}
    for (const setting of BRAND_SETTING_NAMES) {
      const given = values.get(setting) ?? ""
      const rule = given === "" ? undefined : settingComplaint(setting, given)
      if (rule !== undefined) errors[setting] = `This must be ${rule}.`
      brand[setting] = given === "" ? null : setting === "accent" ? given.toLowerCase() : given
    }
    if (Object.keys(errors).length > 0) return Effect.succeed(new Invalid(errors))
    const entered = pickChanged(values, { name, ...(brand as unknown as Brand) })
    return Effect.succeed({
      account: INSTALLATION,
      entered,
      subject: merchant.id,
      command: Effect.flatMap(Merchants.changeAppearance(merchant.id, entered), (changed) =>
        changed === undefined
          ? Effect.fail(new ResourceMissing({ kind: "Merchant", id: merchant.id, param: "id" }))
          : Effect.succeed(changed)
      )
    })
  }
})

export const layer = Layer.merge(page("/developers/brand", "build", show), set)

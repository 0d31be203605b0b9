/** Prices (spec: Price; semantics prices.*). Rules for their terms: `PriceTerms.ts`; amounts: `PriceArithmetic.ts`. */
import { Schema } from "effect"
import { PriceId, ProductId } from "./Identifiers.ts"
import { Metadata, MetadataParameter } from "./Metadata.ts"
import { AMOUNT_CAP, AmountOrZero, Currency } from "./Money.ts"
import { text, unsettable } from "./Text.ts"
import { Timestamp } from "./Time.ts"

export const PriceType = Schema.Literals(["one_time", "recurring"])
export type PriceType = typeof PriceType.Type

export const BillingScheme = Schema.Literals(["per_unit", "tiered"])
export type BillingScheme = typeof BillingScheme.Type

export const TaxBehavior = Schema.Literals(["inclusive", "exclusive", "unspecified"])
export type TaxBehavior = typeof TaxBehavior.Type

export const TiersMode = Schema.Literals(["graduated", "volume"])

export const RecurringInterval = Schema.Literals(["day", "week", "month", "year"])
export type RecurringInterval = typeof RecurringInterval.Type

/** The longest interval of a recurring price: three years (semantics prices.recurring). */
export const INTERVAL_COUNT_MAX: Readonly<Record<RecurringInterval, number>> = {
  day: 1095,
  week: 156,
  month: 36,
  year: 3
}

export const UsageType = Schema.Literals(["licensed", "metered"])
export type UsageType = typeof UsageType.Type

const AtLeastOne = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({ rule: "a positive integer" })

export const LookupKey = text(200)
export const PriceNickname = text()

/** An amount with decimals: minor units as a decimal string (semantics prices.unit_amount). */
export const DecimalAmount = Schema.String.check(Schema.isPattern(/^\d{1,12}(\.\d{1,12})?$/u)).annotate({
  rule: "a decimal string with at most 12 digits before and 12 digits after the point"
})

export const TransformQuantity = Schema.Struct({
  divide_by: AtLeastOne,
  round: Schema.Literals(["up", "down"])
}).annotate({ identifier: "TransformQuantity" })
export type TransformQuantity = typeof TransformQuantity.Type

/** A tier of a price. Null is no amount, and in `up_to` no upper end. */
export const Tier = Schema.Struct({
  up_to: Schema.NullOr(Schema.Int),
  flat_amount: Schema.NullOr(AmountOrZero),
  flat_amount_decimal: Schema.NullOr(Schema.String),
  unit_amount: Schema.NullOr(AmountOrZero),
  unit_amount_decimal: Schema.NullOr(Schema.String)
}).annotate({ identifier: "Tier" })
export type Tier = typeof Tier.Type

export const CustomUnitAmount = Schema.Struct({
  enabled: Schema.Boolean,
  minimum: Schema.optionalKey(AmountOrZero),
  maximum: Schema.optionalKey(AmountOrZero),
  preset: Schema.optionalKey(AmountOrZero)
}).annotate({ identifier: "CustomUnitAmount" })

export const Recurring = Schema.Struct({
  interval: RecurringInterval,
  interval_count: Schema.Int,
  usage_type: UsageType
}).annotate({ identifier: "Recurring" })

/**
 * Amounts are in minor units, `created` in Unix seconds. A whole amount is in both `unit_amount` and
 * `unit_amount_decimal`, an amount with decimals only in the latter; both are null for a tiered price and for one whose
 * amount the payer chooses.
 */
export const Price = Schema.Struct({
  id: PriceId,
  object: Schema.Literal("price"),
  active: Schema.Boolean,
  product: ProductId,
  currency: Schema.String,
  type: PriceType,
  billing_scheme: BillingScheme,
  tax_behavior: TaxBehavior,
  metadata: Metadata,
  livemode: Schema.Boolean,
  created: Timestamp,
  unit_amount: Schema.NullOr(AmountOrZero),
  unit_amount_decimal: Schema.NullOr(Schema.String),
  custom_unit_amount: Schema.optionalKey(CustomUnitAmount),
  recurring: Schema.optionalKey(Recurring),
  tiers_mode: Schema.optionalKey(TiersMode),
  tiers: Schema.optionalKey(Schema.Array(Tier)),
  transform_quantity: Schema.optionalKey(TransformQuantity),
  lookup_key: Schema.NullOr(Schema.String),
  nickname: Schema.NullOr(Schema.String)
}).annotate({ identifier: "Price" })
export type Price = typeof Price.Type

/** The `recurring` of a request, by default every interval, `licensed` (semantics prices.recurring). */
export const RecurringParameter = Schema.Struct({
  interval: RecurringInterval,
  interval_count: Schema.optionalKey(Schema.NullOr(AtLeastOne)),
  usage_type: Schema.optionalKey(Schema.NullOr(UsageType))
})

/** The bounds of an amount that the payer chooses; `enabled` must be true (semantics prices.custom_unit_amount). */
export const CustomUnitAmountParameter = Schema.Struct({
  enabled: Schema.Boolean.check(Schema.makeFilter((enabled: boolean) => enabled, { rule: "true" })),
  minimum: Schema.optionalKey(Schema.NullOr(AmountOrZero)),
  maximum: Schema.optionalKey(Schema.NullOr(AmountOrZero)),
  preset: Schema.optionalKey(Schema.NullOr(AmountOrZero))
})

export const TIERS_MAX = 100
export const TIER_END_RULE = "an integer above the previous tier's, or `inf` for the last tier"

/** A tier of a request. The last one has no end: `inf`, null or absent (semantics prices.tiers). */
export const TierParameter = Schema.Struct({
  up_to: Schema.optionalKey(
    Schema.Union([AtLeastOne, Schema.Literal("inf"), Schema.Null]).annotate({ rule: TIER_END_RULE })
  ),
  flat_amount: Schema.optionalKey(Schema.NullOr(AmountOrZero)).annotate({ description: AMOUNT_CAP }),
  flat_amount_decimal: Schema.optionalKey(Schema.NullOr(DecimalAmount)),
  unit_amount: Schema.optionalKey(Schema.NullOr(AmountOrZero)).annotate({ description: AMOUNT_CAP }),
  unit_amount_decimal: Schema.optionalKey(Schema.NullOr(DecimalAmount))
})
export type TierParameter = typeof TierParameter.Type

export const TiersParameter = Schema.Array(TierParameter).check(
  Schema.isMinLength(1, { rule: `an array of 1 to ${TIERS_MAX} tiers` }),
  Schema.isMaxLength(TIERS_MAX, { rule: `an array of 1 to ${TIERS_MAX} tiers` })
)

/** The common fields of `default_price_data` (semantics products.default_price_data) and `price_data`. */
export const InlinePrice = {
  currency: Currency,
  tax_behavior: Schema.optionalKey(Schema.NullOr(TaxBehavior)),
  recurring: Schema.optionalKey(
    Schema.NullOr(
      Schema.Struct({
        interval: RecurringParameter.fields.interval,
        interval_count: RecurringParameter.fields.interval_count
      })
    )
  )
}

/** The body of a creation. Null and "" count as absent (semantics parameters.null, parameters.empty_text). */
export const CreatePrice = Schema.Struct({
  product: ProductId,
  currency: Currency,
  unit_amount: Schema.optionalKey(Schema.NullOr(AmountOrZero)).annotate({ description: AMOUNT_CAP }),
  unit_amount_decimal: Schema.optionalKey(Schema.NullOr(DecimalAmount)),
  custom_unit_amount: Schema.optionalKey(Schema.NullOr(CustomUnitAmountParameter)),
  active: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  type: Schema.optionalKey(Schema.NullOr(PriceType)),
  billing_scheme: Schema.optionalKey(Schema.NullOr(BillingScheme)),
  recurring: Schema.optionalKey(Schema.NullOr(RecurringParameter)),
  tax_behavior: Schema.optionalKey(Schema.NullOr(TaxBehavior)),
  tiers_mode: Schema.optionalKey(Schema.NullOr(TiersMode)),
  tiers: Schema.optionalKey(Schema.NullOr(TiersParameter)),
  transform_quantity: Schema.optionalKey(Schema.NullOr(TransformQuantity)),
  lookup_key: Schema.optionalKey(Schema.NullOr(LookupKey)),
  transfer_lookup_key: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  nickname: Schema.optionalKey(Schema.NullOr(PriceNickname)),
  metadata: Schema.optionalKey(Schema.NullOr(MetadataParameter))
}).annotate({ identifier: "CreatePrice" })
export type CreatePrice = typeof CreatePrice.Type

/** The body of an update. The amount of a price never changes (semantics prices.immutable); null and "" unset texts. */
export const UpdatePrice = Schema.Struct({
  active: Schema.optionalKey(Schema.Boolean),
  nickname: Schema.optionalKey(Schema.NullOr(PriceNickname)),
  tax_behavior: Schema.optionalKey(TaxBehavior),
  lookup_key: Schema.optionalKey(Schema.NullOr(LookupKey)),
  transfer_lookup_key: Schema.optionalKey(Schema.Boolean),
  metadata: Schema.optionalKey(unsettable(MetadataParameter))
}).annotate({ identifier: "UpdatePrice" })
export type UpdatePrice = typeof UpdatePrice.Type

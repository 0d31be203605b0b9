/**
 * Measures what subscribed endpoints cost the creates: as many creates as go, with none, one and ten endpoints in turn.
 */
import { Effect } from "effect"
import { deliver, type Pacing, type Shop, type WebhookSetting } from "./Shop.ts"
import { figuresOf, requestsPerSecondOf } from "./Figures.ts"
import type { FanOut } from "./WebhookResults.ts"

/** A round is over when all its deliveries have arrived, so none falls into another's. */
export const measure = Effect.fnUntraced(function* (
  setting: WebhookSetting,
  shops: ReadonlyArray<Shop>,
  pacing: Pacing,
  rounds: number
) {
  const lines = shops.map((shop) => ({ shop, creates: [] as Array<number>, deliveries: [] as Array<number> }))
  for (let round = 0; round < rounds; round++) {
    for (const { creates, deliveries, shop } of lines) {
      const { arrivals, record } = yield* deliver(setting, shop, pacing)
      creates.push(requestsPerSecondOf(record))
      if (shop.endpoints > 0) deliveries.push(figuresOf(record, arrivals).deliveriesPerSecond)
    }
  }
  return lines.map(({ creates, deliveries, shop }): FanOut => ({
    endpoints: shop.endpoints,
    requestsPerSecond: creates,
    deliveriesPerSecond: deliveries
  }))
})

/** The client for Effect programs (`Till`), and the verification of webhooks with the program's clock. */
export type { EffectListMethod, EffectMethod, EffectMethods } from "./EffectMethods.ts"
export * from "./Errors.ts"
export { Till, type TillOptions } from "./Till.ts"
export { verifyWebhookEffect, type VerifyWebhookEffectOptions } from "./WebhookEffect.ts"

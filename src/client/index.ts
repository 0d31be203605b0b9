/**
 * `till/client`: the typed client of the API, with promises (`TillClient`) and with Effect (`Till`), and the
 * verification of webhooks (`verifyWebhook`).
 */
export { EMITTED_EVENT_TYPES, EVENT_TYPES, type EmittedEventType, type EventType } from "../domain/Event.ts"
export * from "./Errors.ts"
export type { EffectMethods, PromiseMethods, PromiseRequestOptions, RequestOptions } from "./Methods.ts"
export { Till, type TillOptions } from "./Till.ts"
export { TillClient, type TillClientOptions } from "./TillClient.ts"
export { verifyWebhook } from "./Webhook.ts"
export { verifyWebhookEffect, type VerifyWebhookEffectOptions } from "./WebhookEffect.ts"
export type { WebhookEvent, WebhookEventOf } from "./WebhookEvent.ts"
export {
  WEBHOOK_SIGNATURE_HEADER,
  WEBHOOK_TOLERANCE_SECONDS_DEFAULT,
  WebhookVerificationError,
  type VerifyWebhookOptions,
  type WebhookVerificationFailure
} from "./WebhookVerification.ts"

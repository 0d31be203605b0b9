/** The typed client of the API, with promises (`TillClient`), and the verification of webhooks (`verifyWebhook`). */
export { EMITTED_EVENT_TYPES, EVENT_TYPES, type EmittedEventType } from "../domain/EventTypes.ts"
export type * from "./Contract.ts"
export * from "./Errors.ts"
export type { PromiseMethods, PromiseRequestOptions, RequestOptions } from "./Methods.ts"
export { TillClient, type TillClientOptions } from "./TillClient.ts"
export { verifyWebhook } from "./Webhook.ts"
export type { WebhookEvent, WebhookEventOf } from "./WebhookEvent.ts"
export {
  WEBHOOK_SIGNATURE_HEADER,
  WEBHOOK_TOLERANCE_SECONDS_DEFAULT,
  WebhookVerificationError,
  type VerifyWebhookOptions,
  type WebhookVerificationFailure
} from "./WebhookVerification.ts"

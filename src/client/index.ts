/** `till/client`: the typed client of the API, for promises (`TillClient`) and for Effect (`Till`). */
export * from "./Errors.ts"
export type { EffectMethods, PromiseMethods, PromiseRequestOptions, RequestOptions } from "./Methods.ts"
export { Till, type TillOptions } from "./Till.ts"
export { TillClient, type TillClientOptions } from "./TillClient.ts"

/** The address that a page's request came from (semantics limits.addresses). */
export { senderOf } from "../http/forward/ForwardPage.ts"

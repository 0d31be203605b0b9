/** Who may call an endpoint, beyond holders of a secret key: annotations of the contract's endpoints. */
import { Context } from "effect"

/**
 * Publishable keys may call the endpoint too, if they send the object's `client_secret` (semantics A5): in the query of
 * a GET, in the body of a POST.
 */
export const PublishableKey: Context.Reference<boolean> = Context.Reference("till/api/PublishableKey", {
  defaultValue: () => false
})

/**
 * Publishable keys may call the endpoint without a client secret: it makes something new, and shows nothing else
 * (semantics A5).
 */
export const WithoutClientSecret: Context.Reference<boolean> = Context.Reference("till/api/WithoutClientSecret", {
  defaultValue: () => false
})

/** The endpoint exists in test mode only (semantics §8.27). */
export const TestMode: Context.Reference<boolean> = Context.Reference("till/api/TestMode", {
  defaultValue: () => false
})

/**
 * The endpoint changes what the installation keeps of a merchant, not what the merchant keeps in an environment.
 */
export const InstallationWide: Context.Reference<boolean> = Context.Reference("till/api/InstallationWide", {
  defaultValue: () => false
})

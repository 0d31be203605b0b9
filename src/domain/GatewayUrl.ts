/** URLs of gateways and of the pages that they show to payers (semantics gateways.url). */

/** Returns whether a host of a URL is this machine, by name or address. */
const isLoopback = (hostname: string): boolean => /^(?:localhost|127(?:\.[0-9]+){3}|\[::1\])$/u.test(hostname)

/** The rule that a URL violates, as the end of a sentence; undefined for a URL that may be used. */
export const urlComplaint = (text: string): string | undefined => {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) return "must be an absolute https URL"
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    return "must begin with https://; http:// is for gateways on this machine only"
  }
  if (url.username !== "" || url.password !== "" || url.hash !== "") return "must have no credentials and no fragment"
  return undefined
}

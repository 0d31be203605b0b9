/**
 * The page of a processor with the inputs of a card, in a frame of Till's checkout or of a shop's own page. The card
 * never leaves the frame: the page gives a token for it.
 *
 * Messages go to the frame's own origin, and are accepted from the frame's own window and origin only. The frame may
 * run its scripts, and can neither open windows nor leave for another page of the window.
 */

/** The time after which a frame that shows nothing counts as blocked, in milliseconds. */
const READY_MILLIS = 15_000
/** The time in which the processor has to give a token, in milliseconds. */
const TOKEN_MILLIS = 30_000
const HEIGHT_MAX = 1000
const MESSAGE_LENGTH_MAX = 200

/**
 * Shows the page in a frame, and calls `onMissing` if it does not appear. `token` resolves to `{ token }`, to
 * `{ problem: "missing" }` if the page does not answer, or to `{ problem: "refused", message }` with the processor's
 * sentence for the payer, if it has one.
 */
export function cardFrame(place, { onMissing, title, url }) {
  const { origin } = new URL(url)
  const frame = document.createElement("iframe")
  let isReady = false
  let answer
  let decide
  const ready = new Promise((resolve) => (decide = resolve))

  function receive({ data, origin: sender, source }) {
    if (source !== frame.contentWindow || sender !== origin) return
    if (data?.type === "till.fields") {
      isReady = true
      decide(true)
      frame.style.height = `${Math.min(Math.max(Number(data.height) || 0, 40), HEIGHT_MAX)}px`
    }
    if (data?.type === "till.token" && typeof data.token === "string") answer?.({ token: data.token })
    if (data?.type === "till.token.error") {
      const isText = typeof data.message === "string" && data.message.length <= MESSAGE_LENGTH_MAX
      answer?.({ problem: "refused", message: isText ? data.message : "" })
    }
  }

  addEventListener("message", receive)
  // The address comes last, so that the page is loaded with the other attributes.
  frame.setAttribute("sandbox", "allow-scripts allow-same-origin")
  Object.assign(frame.style, { border: "0", display: "block", height: "48px", width: "100%" })
  Object.assign(frame, { title, referrerPolicy: "no-referrer", src: url })
  place.append(frame)
  const waiting = setTimeout(() => {
    decide(false)
    if (!isReady) onMissing()
  }, READY_MILLIS)

  async function token(locale) {
    const missing = { problem: "missing" }
    if (!isReady && !(await ready)) return missing
    const given = new Promise((resolve) => (answer = resolve))
    frame.contentWindow.postMessage({ type: "till.token.request", locale }, origin)
    return Promise.race([given, new Promise((resolve) => setTimeout(resolve, TOKEN_MILLIS, missing))])
  }

  function remove() {
    clearTimeout(waiting)
    removeEventListener("message", receive)
    frame.remove()
  }

  return { token, focus: () => frame.focus(), remove }
}

/**
 * Shows the page for a session or a PaymentIntent in a shop's own page. The client secret leads to Till's description
 * of it, with texts for the payer: in the given language, or else in that of the page or the browser.
 */
export async function mountCard(where, { clientSecret, locale }) {
  const id = /^((?:cs|pi)_[0-9A-Za-z]+)_secret_[0-9A-Za-z]+$/.exec(clientSecret)?.[1]
  if (id === undefined) throw new TypeError("clientSecret must be that of a PaymentIntent or a Checkout Session")
  const place = typeof where === "string" ? document.querySelector(where) : where
  if (!(place instanceof Element)) throw new TypeError(`No element ${where} to mount the card in`)
  const own = [document.documentElement.lang, ...navigator.languages].filter((tag) => /^[\w-]+$/.test(tag))
  const languages = own.join(", ")
  const query = new URLSearchParams({ client_secret: clientSecret })
  const response = await fetch(new URL(`checkout/${id}/fields?${query}`, import.meta.url), {
    credentials: "omit",
    referrerPolicy: "no-referrer",
    headers: { "accept-language": languages }
  })
  const { title, url, ...texts } = await response.json()
  if (typeof url !== "string") throw new Error("The processor of this payment has no form for cards")
  const onMissing = () =>
    console.warn(`${new URL(url).origin} shows no form for cards: does it allow this page to frame it?`)
  const { remove, token } = cardFrame(place, { url, title, onMissing })
  return {
    async token() {
      const { message, problem, token: given } = await token(locale ?? own[0])
      if (problem === undefined) return given
      const error = {
        type: "invalid_request_error",
        code: `card_${problem}`,
        message: message || texts[problem],
        param: null
      }
      throw Object.assign(new Error(error.message), { error, ofCard: error })
    },
    unmount: remove
  }
}

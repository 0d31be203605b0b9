/**
 * Till in a shop's own pages: `Till(publishableKey).embeddedCheckout(…)` shows Till's checkout in a frame,
 * `Till(publishableKey).checkout(…)` pays a session with the shop's own form. Types: `checkout.d.ts`.
 *
 * Card data is sent to Till only, or with `mountCard` to the processor only. Messages are accepted from the frame's own
 * window and origin only.
 */
;(() => {
  "use strict"

  const source = document.currentScript?.src
  const ATTEMPTS_MAX = 3
  const RETURNED = ["payment_intent", "payment_intent_client_secret", "redirect_status"]

  function Till(publishableKey, { baseUrl = source } = {}) {
    if (!/^pk_(test|live)_/.test(publishableKey)) throw new TypeError("Till needs a publishable key: pk_…")
    if (baseUrl === undefined) throw new TypeError("Till needs baseUrl when no script tag has loaded it")
    const base = new URL(baseUrl === source ? "." : `${baseUrl.replace(/(^|[^/])\/+$/, "$1")}/`, baseUrl)
    return {
      embeddedCheckout: (options) => embeddedCheckout(base, options),
      checkout: (options) => customCheckout(base, publishableKey, options),
      mountCard: async (...card) => (await import(new URL("fields.js", base))).mountCard(...card)
    }
  }

  function sessionIdOf(clientSecret) {
    const id = /^(cs_[0-9A-Za-z]+)_secret_[0-9A-Za-z]+$/.exec(clientSecret)?.[1]
    if (id === undefined) throw new TypeError("clientSecret must be the client_secret of a Checkout Session")
    return id
  }

  // Embedded

  function embeddedCheckout(base, { clientSecret, onComplete }) {
    const sessionId = sessionIdOf(clientSecret)
    let frame
    let isReported = false

    function receive({ data, origin, source }) {
      if (frame === undefined || source !== frame.contentWindow || origin !== base.origin) return
      if (data?.till !== "checkout") return
      frame.dataset.ready = ""
      if (data.type === "resize") frame.style.height = `${Math.min(Number(data.height) || 0, 20_000)}px`
      if (data.type === "leave") goTo(data.location)
      if (data.type === "complete") complete(data.location)
    }

    function complete(successUrl) {
      if (isReported) return
      isReported = true
      if (onComplete !== undefined) onComplete({ sessionId })
      else if (successUrl !== null) goTo(successUrl)
    }

    return {
      mount(where) {
        const place = typeof where === "string" ? document.querySelector(where) : where
        if (!(place instanceof Element)) throw new TypeError(`No element ${where} to mount the checkout in`)
        if (frame !== undefined) throw new Error("This checkout is already mounted")
        const url = new URL(`checkout/${sessionId}`, base)
        url.searchParams.set("client_secret", clientSecret)
        url.searchParams.set("origin", location.origin)
        frame = document.createElement("iframe")
        Object.assign(frame, { src: url.href, title: "Checkout", referrerPolicy: "no-referrer" })
        frame.setAttribute("style", "border:0;display:block;height:640px;width:100%;color-scheme:normal")
        frame.addEventListener("load", () => setTimeout(warnOfRefusal, 2000, frame))
        addEventListener("message", receive)
        place.append(frame)
      },
      unmount() {
        removeEventListener("message", receive)
        frame?.remove()
        frame = undefined
      }
    }
  }

  /** Opens an address that Till has sent, unless it is a script. */
  function goTo(address) {
    if (!/^\s*javascript:/i.test(address)) location.assign(address)
  }

  /** Warns the developer if the frame was blocked, which browsers do not report to the page. */
  function warnOfRefusal(frame) {
    if (!frame.isConnected || "ready" in frame.dataset) return
    console.warn(
      `The checkout does not respond. Does the client secret belong to an embedded session, ` +
        `and does TILL_EMBED_ORIGINS allow ${location.origin}?`
    )
  }

  // Custom

  /** Calls the API. Throws without a response. */
  async function call(base, key, path, body, idempotencyKey) {
    const response = await fetch(new URL(`v1/${path}`, base), {
      method: body === undefined ? "GET" : "POST",
      credentials: "omit",
      referrerPolicy: "no-referrer",
      headers: {
        authorization: `Basic ${btoa(`${key}:`)}`,
        ...(body !== undefined && { "content-type": "application/json", "idempotency-key": idempotencyKey })
      },
      ...(body !== undefined && { body: JSON.stringify(body) })
    })
    return { status: response.status, body: await response.json() }
  }

  /** Pages without TLS have no `crypto.randomUUID`. */
  function randomKey() {
    return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("")
  }

  /** Retries a call that may have failed. Its key makes it happen once. */
  async function callSafely(...parameters) {
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await call(...parameters)
        if ((answer.status !== 409 && answer.status < 500) || attempt === ATTEMPTS_MAX) return answer
      } catch (error) {
        if (attempt === ATTEMPTS_MAX) throw error
      }
      await new Promise((resolve) => setTimeout(resolve, 250 * 2 ** attempt))
    }
  }

  const UNREACHABLE = {
    type: "api_error",
    code: "service_unavailable",
    message: "The payment service could not be reached. Try again: you will not be charged twice.",
    param: null
  }

  /** Languages with texts of their own. */
  const LANGUAGES = ["de", "fr", "es", "it", "pt", "nl", "pl", "ja", "ar"]

  /** Loads the texts in the session's language, or else the page's or the browser's; none for English. */
  async function textsOf(base, locale) {
    const own = [document.documentElement?.lang, ...(globalThis.navigator?.languages ?? [])]
    const tags = locale == null || locale === "auto" ? own : [locale]
    const languages = tags.map((tag) => tag?.split("-", 1)[0].toLowerCase())
    const language = languages.find((name) => name === "en" || LANGUAGES.includes(name)) ?? "en"
    if (language === "en") return {}
    const response = await fetch(new URL(`checkout.${language}.json`, base), { credentials: "omit" })
    return response.ok ? response.json() : {}
  }

  /** English texts for payers by an error's parameter, or else its code. */
  const TEXTS = {
    "payment_method_data[card][number]": "Check the card number.",
    "payment_method_data[card][exp_month]": "Check the expiry date.",
    "payment_method_data[card][exp_year]": "Check the expiry date.",
    "payment_method_data[card][cvc]": "Check the security code.",
    custom_unit_amount: "Check the amount.",
    "customer_details[email]": "Check the email address.",
    "customer_details[name]": "Check the name.",
    "customer_details[phone]": "Check the phone number.",
    "customer_details[address][line1]": "Check the address.",
    "customer_details[address][city]": "Check the city.",
    "customer_details[address][state]": "Check the state or region.",
    "customer_details[address][postal_code]": "Check the postal code.",
    "customer_details[address][country]": "Check the country.",
    // `handleRefusal` uses this for expired sessions only: a payer who has paid sees no error.
    checkout_session_unexpected_state: "This checkout has expired. You have not been charged.",
    payment_intent_authentication_failure: "Your bank could not confirm that it was you.",
    processor_unavailable: "The card network did not answer. You have not been charged. Please try again.",
    processor_not_configured: "This shop cannot take card payments yet. You have not been charged.",
    // An earlier try may have succeeded.
    idempotency_key_in_use: "Your payment is still being processed. Please wait a moment.",
    internal_error: "Something went wrong. Try again: you will not be charged twice.",
    rate_limit_exceeded: "Too many attempts right now. Try again later: you will not be charged twice.",
    service_unavailable: "The payment service is not available right now. Try again: you will not be charged twice."
  }

  /** Replaces the API's message, which is for programs. A decline's message is for payers already. */
  function forPayer(error, texts) {
    const names = [error.message, error.decline_code, error.param, error.code, "other"]
    const name = names.find((name) => name in texts)
    if (name !== undefined) return { ...error, message: texts[name] }
    if (error.code === "card_declined") return error
    const otherwise = "The payment could not be made. You have not been charged. Please try again."
    return { ...error, message: TEXTS[error.param] ?? TEXTS[error.code] ?? otherwise }
  }

  async function retrieveSession(base, key, path) {
    const { body, status } = await callSafely(base, key, `checkout_sessions/${path}`)
    if (status !== 200) throw Object.assign(new Error(body.error.message), { error: body.error })
    return body
  }

  async function customCheckout(base, key, { clientSecret }) {
    const id = sessionIdOf(clientSecret)
    const query = new URLSearchParams({ client_secret: clientSecret })
    const retrieve = () => retrieveSession(base, key, `${id}?${query}`)
    const listeners = new Set()
    const session = await retrieve()
    // Loaded before the network may fail.
    const texts = textsOf(base, session.locale).catch(() => ({}))
    let state = { status: session.status, session, error: null }
    let idempotencyKey
    let confirming

    function change(changes) {
      state = Object.freeze({ ...state, ...changes })
      for (const listener of listeners) listener(state)
      return state
    }

    async function pay(parameters) {
      change({ status: "confirming", error: null })
      const { body, status } = await callSafely(
        base,
        key,
        `checkout_sessions/${id}/confirm`,
        confirmationOf(parameters, clientSecret, await parameters.card?.token?.()),
        (idempotencyKey ??= randomKey())
      )
      // An earlier attempt with other parameters has an unknown outcome. Both may run, because a session is paid once.
      if (body.error?.code === "idempotency_key_reuse") {
        idempotencyKey = undefined
        return pay(parameters)
      }
      // The next call is a new attempt with its own key, unless the outcome of this one is unknown.
      if (status < 500) idempotencyKey = undefined
      if (status !== 200) return handleRefusal(body.error)
      if (body.status !== "open") return change({ status: body.status, session: body })
      change({ status: "requires_action", session: body })
      location.assign(new URL(`challenge/${id}?${query}`, base))
      return state
    }

    async function handleRefusal(error) {
      // An earlier attempt has succeeded, or the session has expired: read the session again.
      const isOver = error.code === "checkout_session_unexpected_state"
      const current = isOver ? await retrieve() : state.session
      const failure = current.status === "complete" ? null : forPayer(error, await texts)
      return change({ status: current.status, session: current, error: failure })
    }

    /** The payer sees what to do; the console has the cause for the developer. */
    async function handleFailure(error) {
      console.error(error)
      const { unreachable: message = UNREACHABLE.message } = await texts
      return change({ status: "open", error: error.ofCard ?? { ...UNREACHABLE, message } })
    }

    state = Object.freeze({ ...state, error: await failureOnReturn(base, key, session, texts) })
    return {
      get state() {
        return state
      },
      get session() {
        return state.session
      },
      subscribe(listener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
      mountCard: async (where) =>
        (await import(new URL("fields.js", base))).mountCard(where, { clientSecret, locale: session.locale }),
      /** A call during another one joins it. */
      confirm(parameters = {}) {
        if (confirming !== undefined) return confirming
        if (state.status !== "open") return Promise.resolve(state)
        confirming = pay(parameters)
          .catch(handleFailure)
          .finally(() => (confirming = undefined))
        return confirming
      }
    }
  }

  function confirmationOf(parameters, client_secret, token) {
    const { card, custom_unit_amount, customer_details, payment_method, return_url = hereAgain() } = parameters
    return {
      client_secret,
      return_url,
      // JSON has no NaN, and null means an unchanged amount: other values are sent as text, and refused.
      ...(custom_unit_amount !== undefined && {
        custom_unit_amount: Number.isFinite(custom_unit_amount) ? custom_unit_amount : String(custom_unit_amount)
      }),
      ...(customer_details !== undefined && { customer_details }),
      ...(payment_method !== undefined && { payment_method }),
      ...(card !== undefined && {
        payment_method_data: {
          type: "card",
          ...(token ? { token } : { card: { ...card, number: String(card.number).replace(/[\s-]/g, "") } })
        }
      })
    }
  }

  /** The current address without the parameters of an earlier authentication; the rest is unchanged byte by byte. */
  function hereAgain() {
    const [, address, query, fragment] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(location.href)
    const own = (query ?? "").slice(1).split("&")
    const kept = own.filter((parameter) => !RETURNED.includes(parameter.split("=", 1)[0]))
    if (kept.length === own.length) return location.href
    return address + (kept.length === 0 ? "" : `?${kept.join("&")}`) + (fragment ?? "")
  }

  /** After a failed authentication, reads why it failed. Removes the secret from the address. */
  async function failureOnReturn(base, key, { payment_intent, status }, texts) {
    const returned = new URL(location.href).searchParams
    if (payment_intent === null || returned.get("payment_intent") !== payment_intent) return null
    const query = new URLSearchParams({ client_secret: returned.get("payment_intent_client_secret") ?? "" })
    history.replaceState(history.state, "", hereAgain())
    if (status !== "open") return null
    const answer = await callSafely(base, key, `payment_intents/${payment_intent}?${query}`)
    const failure = answer.status === 200 ? answer.body.last_payment_error : null
    return failure == null ? null : forPayer(failure, await texts)
  }

  globalThis.Till = Till
})()

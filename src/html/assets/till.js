/**
 * Enhances the checkout form: formats the card while it is typed, shows errors beside the fields, and pays without
 * reloading the page. The form works without it.
 *
 * Card data is not stored: it is in the fields while the payer types, and is sent in one request. After a payment it is
 * removed from the fields; after a failed one, only the parts that have to be typed again. Texts are in `data-texts`.
 */
import { readCode, readExpiry, readNumber, shapeCode, shapeExpiry, shapeNumber } from "./card.js"

document.documentElement.classList.add("scripted")

// The back-forward cache may restore an old state of the page. The payment may have changed since.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload()
})

/** Card brands by the beginning of the number; the first match counts. Security codes have 3 digits by default. */
const BRANDS = [
  { id: "amex", name: "American Express", start: /^3[47]/, groups: [4, 6, 5], cvc: 4 },
  { id: "diners", name: "Diners Club", start: /^3(0[0-5]|6|[89])/, groups: [4, 4, 4, 4, 3] },
  { id: "jcb", name: "JCB", start: /^35(2[89]|[3-8])/, groups: [4, 4, 4, 4, 3] },
  { id: "visa", name: "Visa", start: /^4/, groups: [4, 4, 4, 4, 3] },
  {
    id: "mastercard",
    name: "Mastercard",
    start: /^(5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/,
    groups: [4, 4, 4, 4, 3]
  },
  { id: "discover", name: "Discover", start: /^(6011|64[4-9]|65)/, groups: [4, 4, 4, 4, 3] },
  { id: "unionpay", name: "UnionPay", start: /^62/, groups: [4, 4, 4, 4, 3] }
]

function enhanceCheckout(form) {
  const texts = JSON.parse(form.dataset.texts)
  const field = (name) => form.elements.namedItem(name)
  const cardFields = ["card_number", "card_expiry", "card_cvc"].map(field)
  const [number, expiry, cvc] = cardFields
  const controlsIn = () => [...form.elements].filter((control) => control.id !== "" && control.name !== "")
  const controls = controlsIn()
  const button = form.querySelector("button[type=submit]")
  const label = button.querySelector(".action")
  let action = label.textContent
  let busy = false

  const framed = document.getElementById("card") === null ? undefined : enhanceFrame(form, texts)

  reportMistakes(controls)
  if (number !== null) enhanceCard(number, expiry, cvc)
  if (field("payment_method") !== null) enhanceChoice(form, cardFields)
  if (field("country") !== null) enhanceAddress(form, field("country"))
  const amount = field("amount")
  if (amount !== null) {
    followAmount(amount, (total) => {
      action = total === null ? texts.pay : texts.payAmount.replace("{amount}", () => total)
      if (!busy) label.textContent = action
    }).catch(() => {})
  }
  offerTestCards(number, expiry, cvc, () => {
    const first = controlsIn().find((control) => complaint(control) !== "")
    ;(first ?? button).focus()
  })

  // A field that lost the focus to the button would show its error and move the button away from under the pointer.
  button.addEventListener("mousedown", (event) => event.preventDefault())

  form.addEventListener("submit", async (event) => {
    event.preventDefault()
    if (busy) return
    showMessage("")
    for (const control of controls) showError(control, complaint(control))
    if (focusMistake()) return
    setBusy(true)
    try {
      if (framed === undefined || (await framed.fetchToken())) await send()
      else setBusy(false)
    } catch {
      setBusy(false)
      showMessage(texts.unreachable)
    }
  })

  async function send() {
    const answer = await post(form, new FormData(form))
    if (answer.location !== undefined || answer.reload === true) {
      forget(cardFields)
      return goOn(answer)
    }
    forget(cardFields.filter((control) => answer.again.includes(control?.name)))
    form.elements.namedItem("token").value = answer.token
    setBusy(false)
    for (const control of controls) showError(control, answer.errors[control.name] ?? "")
    framed?.report(answer.errors[framed.name] ?? "")
    showMessage(answer.message ?? "")
    focusMistake()
  }

  /** Focuses the first field with an error, in the page's current order. */
  function focusMistake() {
    const wrong = controlsIn().find((control) => control.getAttribute("aria-invalid") === "true")
    wrong?.focus()
    return wrong !== undefined
  }

  function setBusy(isBusy) {
    busy = isBusy
    button.setAttribute("aria-disabled", String(isBusy))
    label.textContent = isBusy ? texts.busy : action
  }
}

/**
 * Shows the processor's page with the inputs of a card. `fetchToken` puts a token for the card into the form; it
 * returns false, and shows the reason, if there is none. A saved card needs none.
 */
function enhanceFrame(form, texts) {
  const place = document.getElementById("card")
  const field = form.elements.namedItem("card_token")
  const { script, title, url } = place.dataset
  const report = (text) => {
    showError(field, text)
    place.classList.toggle("wrong", text !== "")
  }
  const loaded = import(new URL(script, document.baseURI)).then(({ cardFrame }) =>
    cardFrame(place, { url, title, onMissing: () => report(texts.frameMissing) })
  )
  loaded.catch(() => report(texts.frameMissing))

  async function fetchToken() {
    field.value = ""
    report("")
    const isSaved = [...form.querySelectorAll('[name="payment_method"]')].some(
      ({ checked, value }) => checked && value !== ""
    )
    if (isSaved) return true
    const frame = await loaded
    const { message, problem, token } = await frame.token(document.documentElement.lang)
    if (problem === undefined) field.value = token
    else {
      report(problem === "missing" ? texts.frameMissing : message || texts.frameRefused)
      frame.focus()
    }
    return problem === undefined
  }

  return { name: field.name, report, fetchToken }
}

/** Reports a mistake when the payer leaves its field, until the payer corrects it. */
function reportMistakes(controls) {
  for (const control of controls) {
    control.addEventListener("input", () => showError(control, ""))
    control.addEventListener("change", () => control.value !== "" && showError(control, complaint(control)))
  }
}

/** Empties card fields. A session with nothing to pay has none. */
function forget(fields) {
  for (const control of fields) {
    if (control === null) continue
    control.value = ""
    if (control.name === "card_number") showBrand(control)
  }
}

/** Disables the card fields, if there are any, while a saved card is selected; the style sheet hides them. */
function enhanceChoice(form, fields) {
  const radios = [...form.querySelectorAll('[name="payment_method"]')]
  const follow = () => {
    const isSaved = radios.some(({ checked, value }) => checked && value !== "")
    for (const control of fields) if (control !== null) control.disabled = isSaved
  }
  for (const radio of radios) {
    radio.addEventListener("change", () => {
      showError(radios[0], "")
      follow()
    })
  }
  follow()
}

/** Makes the test cards fill in the form; `goOn` then focuses the next field to fill in. */
function offerTestCards(number, expiry, cvc, goOn) {
  for (const card of document.querySelectorAll(".test-card")) {
    card.addEventListener("click", () => {
      number.value = card.dataset.number
      expiry.value = "12 / 34"
      cvc.value = card.dataset.number.startsWith("3782") ? "1234" : "123"
      const another = number.form.querySelector('[name="payment_method"][value=""]')
      another?.click()
      for (const control of [number, expiry, cvc]) showError(control, "")
      showBrand(number)
      card.closest("details").open = false
      goOn()
    })
  }
}

/** Address fields by their letters in `data-formats`. */
const PARTS = { A: "line1", C: "city", S: "state", Z: "postal_code" }

/**
 * Orders and names the address fields for the selected country. Fields that the country does not use are hidden and not
 * sent; their values return with another country.
 */
function enhanceAddress(form, country) {
  const { formats: packed, missingPart, optional } = country.dataset
  const names = JSON.parse(country.dataset.names)
  const formats = packed.split(";").map((entry) => {
    const [codes, parts] = entry.split(":")
    return { codes: codes.match(/../g) ?? [""], parts: parts.split(",") }
  })
  const place = (name) => form.elements.namedItem(name).closest(".field")

  function arrange() {
    const format = formats.find(({ codes }) => codes.includes(country.value)) ?? formats[0]
    const fieldset = country.closest("fieldset")
    const used = format.parts.map((part) => PARTS[part[0]])
    for (const name of Object.values(PARTS)) {
      const control = form.elements.namedItem(name)
      control.disabled = place(name).hidden = !used.includes(name)
      showError(control, "")
    }
    for (const part of format.parts) name(part)
    for (const name of used) fieldset.append(place(name), ...(name === "line1" ? [place("line2")] : []))
  }

  function name(part) {
    const [letter, need] = part
    const control = form.elements.namedItem(PARTS[letter])
    const text = names[part.slice(2)]
    const label = control.labels[0]
    label.textContent = text[0].toLocaleUpperCase(document.documentElement.lang) + text.slice(1)
    if (need === "?") label.append(" ", Object.assign(document.createElement("small"), { textContent: optional }))
    control.required = need === "!"
    control.dataset.missing = missingPart.replace("{name}", () => text)
  }

  // The browser may have restored another country than the page was sent with.
  const first = [...country.options].find((option) => option.defaultSelected)
  if (country.value !== (first?.value ?? "")) arrange()
  country.addEventListener("change", arrange)
}

/**
 * Updates prices while the payer chooses an amount. `show` receives the total, or null while there is none. The field
 * is read by the server's own module; if it cannot be loaded, only the server reads the field.
 */
async function followAmount(amount, show) {
  const { formatAmount, problemText, readAmountWithin } = await import(new URL(amount.dataset.script, document.baseURI))
  const money = JSON.parse(amount.dataset.money)
  const open = JSON.parse(amount.dataset.open)
  const problems = JSON.parse(amount.dataset.problems)
  const follow = () => {
    const read = readAmountWithin(amount.value, money)
    const { minor } = read
    amount.setCustomValidity(minor === undefined ? problemText(read, problems) : "")
    const isOpen = minor === undefined
    const prices = isOpen
      ? open
      : { line: formatAmount(minor, money), total: formatAmount(money.others + minor, money) }
    for (const place of document.querySelectorAll("[data-amount]")) {
      place.textContent = prices[place.dataset.amount]
      if (place.localName === "strong") place.classList.toggle("long", place.textContent.length > 12)
    }
    show(isOpen ? null : prices.total)
  }
  amount.addEventListener("input", follow)
  follow()
}

/** Formats the card fields while the payer types. */
function enhanceCard(number, expiry, cvc) {
  shapeWith(number, (text) => shapeNumber(text, groupsOf(text)))
  number.addEventListener("input", () => showBrand(number))
  // The code's length depends on the card, so another number can make the code valid or invalid.
  number.addEventListener("change", () => cvc.value !== "" && showError(cvc, complaint(cvc)))
  shapeWith(expiry, shapeExpiry)
  shapeWith(cvc, shapeCode)
  showBrand(number)
}

/** Formats a field on input, except while an input method is composing. */
function shapeWith(control, shape) {
  control.addEventListener("input", (event) => {
    const isKept = control.name === "card_expiry" && event.inputType === "deleteContentBackward"
    if (!event.isComposing && !isKept) reformat(control, shape, event)
  })
  control.addEventListener("compositionend", (event) => reformat(control, shape, event))
}

/** Sends the answer to a challenge once, with the button that was pressed. */
function enhanceAuthentication(form) {
  let busy = false
  form.addEventListener("submit", async (event) => {
    event.preventDefault()
    if (busy) return
    busy = true
    showMessage("")
    try {
      goOn(await post(form, new FormData(form, event.submitter)))
    } catch {
      busy = false
      showMessage(JSON.parse(form.dataset.texts).unreachable)
    }
  })
}

/**
 * Sends a form and requests data. The content security policy does not restrict where a script navigates after a form.
 */
async function post(form, values) {
  const response = await fetch(form.action, {
    method: "POST",
    headers: { accept: "application/json" },
    body: new URLSearchParams(values)
  })
  return response.json()
}

function goOn(answer) {
  // Inside a frame, the redirect may have to leave it.
  if (!dispatchEvent(new CustomEvent("leave", { detail: answer, cancelable: true }))) return
  if (answer.reload === true) return location.reload()
  location.assign(answer.location)
  // An address of an app opens the app and leaves this page open. Reloaded, it shows the payment.
  if (!/^https?:/i.test(answer.location)) setTimeout(() => location.reload(), 2000)
}

function showMessage(text) {
  const message = document.getElementById("message")
  message.textContent = text
  if (text !== "") message.focus()
}

/** The error about a field; empty if it is valid. */
function complaint(control) {
  if (control.disabled) return ""
  const value = control.value.trim()
  if (value === "") return control.required ? control.dataset.missing : ""
  if (control.validity.customError) return control.validationMessage
  return isValid(control, value) ? "" : control.dataset.invalid
}

function isValid({ form, name }, value) {
  switch (name) {
    case "email":
      return /^[^\s@]+@[^\s@][^\s@.]*\.[^\s@]+$/.test(value)
    case "card_number":
      return /^[0-9]{12,19}$/.test(readNumber(value)) && luhn(readNumber(value)) % 10 === 0
    case "card_expiry":
      return readExpiry(value) !== undefined
    case "card_cvc":
      return isSecurityCode(readCode(value), readNumber(form.elements.namedItem("card_number").value) ?? "")
    default:
      return true
  }
}

/** The code must have the length of the card's brand; without a number, 3 or 4 digits are accepted. */
function isSecurityCode(code, number) {
  return /^[0-9]{3,4}$/.test(code) && (number === "" || code.length === (brandOf(number)?.cvc ?? 3))
}

function showError(control, text) {
  const place = document.getElementById(`${control.name}-error`)
  if (place === null) return
  place.textContent = text
  if (text === "") control.removeAttribute("aria-invalid")
  else control.setAttribute("aria-invalid", "true")
}

function showBrand(number) {
  const { id = "", name = "" } = brandOf(readNumber(number.value) ?? "") ?? {}
  const mark = document.getElementById("brand")
  mark.dataset.scheme = id
  mark.textContent = name
}

function brandOf(number) {
  return BRANDS.find(({ start }) => start.test(number))
}

function luhn(number) {
  let sum = 0
  for (let i = 0; i < number.length; i++) {
    const digit = Number(number[number.length - 1 - i]) * (1 + (i % 2))
    sum += digit > 9 ? digit - 9 : digit
  }
  return sum
}

function groupsOf(text) {
  return brandOf(readNumber(text) ?? "")?.groups ?? [4, 4, 4, 4, 3]
}

/**
 * Formats a value and keeps the caret after the same digit. After a forward Delete, the caret stays before the same
 * digit; otherwise the next Delete would remove a space that formatting has inserted.
 */
function reformat(control, shape, { inputType }) {
  const shaped = shape(control.value)
  const isForward = /^delete.*Forward$/.test(inputType)
  if (shaped === control.value && !isForward) return
  const before = control.value.slice(0, control.selectionStart)
  const after = control.value.slice(control.selectionStart)
  control.value = shaped
  if (after === "") return
  let caret = isForward ? control.value.length : 0
  if (isForward) while (caret > 0 && count(control.value.slice(caret)) < count(after)) caret--
  else while (caret < control.value.length && count(control.value.slice(0, caret)) < count(before)) caret++
  control.setSelectionRange(caret, caret)
}

function count(text) {
  return text.match(/\p{Nd}/gu)?.length ?? 0
}

/** Opens the order on desktop screens in browsers that cannot open it by CSS. */
function openOrder(order) {
  if (CSS.supports("selector(::details-content)") || order.classList.contains("folded")) return
  order.open = matchMedia("(min-width: 56rem)").matches
}

const RESULT_SECONDS = [2, 3, 5, 10, 20, 30, 60]

/** Polls the page at growing intervals, and reloads it when its text has changed. A hidden page does not poll. */
function awaitResult(attempt = 0) {
  const textIn = (page) => page.querySelector("main").textContent
  const poll = async () => {
    if (document.visibilityState === "hidden") return
    const response = await fetch(location.href, { cache: "no-store" })
    // Other statuses are temporary problems.
    if (response.status !== 200 && response.status !== 410) return
    const page = new DOMParser().parseFromString(await response.text(), "text/html")
    if (textIn(page) !== textIn(document)) location.reload()
  }
  const seconds = RESULT_SECONDS[Math.min(attempt, RESULT_SECONDS.length - 1)]
  setTimeout(
    () =>
      poll()
        .catch(() => {})
        .finally(() => awaitResult(attempt + 1)),
    seconds * 1000
  )
}

const order = document.querySelector(".order")
if (order !== null) openOrder(order)
if ("awaitsResult" in document.body.dataset) awaitResult()
const checkout = document.getElementById("checkout")
if (checkout instanceof HTMLFormElement) enhanceCheckout(checkout)
const authentication = document.getElementById("authentication")
if (authentication instanceof HTMLFormElement) enhanceAuthentication(authentication)

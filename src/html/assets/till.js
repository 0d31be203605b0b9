/**
 * Makes the checkout form comfortable: formats the card as it is typed, says what is wrong beside the field, and pays
 * without loading the page again. The form works without it.
 *
 * No card data is kept: it is in the fields while the payer types, goes into one request, and is taken out of the
 * fields as soon as that is answered.
 */
import { readCode, readExpiry, readNumber, shapeCode, shapeExpiry, shapeNumber } from "./card.js"

document.documentElement.classList.add("scripted")

// The browser may show a page from its memory, as it was when the payer left it. The payment may have changed since.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload()
})

const UNREACHABLE = "The payment service could not be reached. Try again: you will not pay twice."

/** Schemes by the beginning of their numbers; the first that fits counts. Security codes have 3 digits by default. */
const BRANDS = [
  { name: "American Express", start: /^3[47]/, groups: [4, 6, 5], cvc: 4 },
  { name: "Diners Club", start: /^3(0[0-5]|6|[89])/, groups: [4, 4, 4, 4, 3] },
  { name: "JCB", start: /^35(2[89]|[3-8])/, groups: [4, 4, 4, 4, 3] },
  { name: "Visa", start: /^4/, groups: [4, 4, 4, 4, 3] },
  { name: "Mastercard", start: /^(5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/, groups: [4, 4, 4, 4, 3] },
  { name: "Discover", start: /^(6011|64[4-9]|65)/, groups: [4, 4, 4, 4, 3] },
  { name: "UnionPay", start: /^62/, groups: [4, 4, 4, 4, 3] }
]

function enhanceCheckout(form) {
  const field = (name) => form.elements.namedItem(name)
  const [number, expiry, cvc] = ["card_number", "card_expiry", "card_cvc"].map(field)
  const controlsIn = () => [...form.elements].filter((control) => control.id !== "" && control.name !== "")
  const controls = controlsIn()
  const button = form.querySelector("button[type=submit]")
  const label = button.querySelector(".action")
  let action = label.textContent
  let busy = false

  for (const control of controls) {
    control.addEventListener("input", () => showError(control, ""))
    control.addEventListener("change", () => control.value !== "" && showError(control, complaint(control)))
  }
  if (number !== null) enhanceCard(number, expiry, cvc)
  if (field("payment_method") !== null) enhanceChoice(form, [number, expiry, cvc])
  if (field("country") !== null) enhanceAddress(form, field("country"))
  const amount = field("amount")
  if (amount !== null) {
    followAmount(amount, (total) => {
      action = total === null ? "Pay" : `Pay ${total}`
      if (!busy) label.textContent = action
    }).catch(() => {})
  }
  offerTestCards(number, expiry, cvc, () => {
    const first = controlsIn().find((control) => complaint(control) !== "")
    ;(first ?? button).focus()
  })

  form.addEventListener("submit", async (event) => {
    event.preventDefault()
    if (busy) return
    showMessage("")
    for (const control of controls) showError(control, complaint(control))
    if (focusMistake()) return
    setBusy(true)
    try {
      await send()
    } catch {
      setBusy(false)
      showMessage(UNREACHABLE)
    }
  })

  async function send() {
    const answer = await post(form, new FormData(form))
    if (answer.location !== undefined || answer.reload === true) {
      forgetCard()
      return goOn(answer)
    }
    // With the same token the payer should send the same form again, so the card stays in it.
    if (answer.token !== form.elements.namedItem("token").value) forgetCard()
    form.elements.namedItem("token").value = answer.token
    setBusy(false)
    for (const control of controls) showError(control, answer.errors[control.name] ?? "")
    showMessage(answer.message ?? "")
    focusMistake()
  }

  /** The first of the page, whose fields may have changed places. */
  function focusMistake() {
    const wrong = controlsIn().find((control) => control.getAttribute("aria-invalid") === "true")
    wrong?.focus()
    return wrong !== undefined
  }

  function forgetCard() {
    for (const control of [number, expiry, cvc]) if (control !== null) control.value = ""
    if (number !== null) showBrand(number)
  }

  function setBusy(isBusy) {
    busy = isBusy
    button.setAttribute("aria-disabled", String(isBusy))
    label.textContent = isBusy ? button.dataset.busy : action
  }
}

/** Asks for a card only where no saved one is chosen. The page's style hides its fields. */
function enhanceChoice(form, fields) {
  const radios = [...form.querySelectorAll('[name="payment_method"]')]
  const follow = () => {
    const isSaved = radios.some(({ checked, value }) => checked && value !== "")
    for (const control of fields) control.disabled = isSaved
  }
  for (const radio of radios) {
    radio.addEventListener("change", () => {
      showError(radios[0], "")
      follow()
    })
  }
  follow()
}

/** Has the cards of test mode fill themselves in; `goOn` leads the payer to what is left to do. */
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

/** The fields of an address by their letters in `data-formats`, and what they are called where that says nothing. */
const PARTS = { A: "line1", C: "city", S: "state", Z: "postal_code" }
const NAMES = { A: "address", C: "city", S: "province", Z: "postal code" }

/**
 * Puts the fields of an address into the order of the chosen country, and names them as they are called there. What a
 * country's addresses do not have is hidden and not sent; its value comes back with another country.
 */
function enhanceAddress(form, country) {
  const formats = country.dataset.formats.split(";").map((entry) => {
    const [codes, parts] = entry.split(":")
    return { codes: codes.match(/../g) ?? [""], parts: parts.split(",") }
  })
  const place = (name) => form.elements.namedItem(name).closest(".field")

  function arrange() {
    const format = formats.find(({ codes }) => codes.includes(country.value)) ?? formats[0]
    const fieldset = country.closest("fieldset")
    const names = format.parts.map((part) => PARTS[part[0]])
    for (const name of Object.values(PARTS)) {
      const control = form.elements.namedItem(name)
      control.disabled = place(name).hidden = !names.includes(name)
      showError(control, "")
    }
    for (const part of format.parts) name(part)
    for (const name of names) fieldset.append(place(name), ...(name === "line1" ? [place("line2")] : []))
  }

  function name(part) {
    const [letter, need] = part
    const control = form.elements.namedItem(PARTS[letter])
    const text = part.slice(2) || NAMES[letter]
    const label = control.labels[0]
    label.textContent = text[0].toUpperCase() + text.slice(1)
    if (need === "?") label.insertAdjacentHTML("beforeend", " <small>optional</small>")
    control.required = need === "!"
    control.dataset.missing = `Enter your ${text}.`
  }

  // A browser may have put back another country than the page came with.
  const first = [...country.options].find((option) => option.defaultSelected)
  if (country.value !== (first?.value ?? "")) arrange()
  country.addEventListener("change", arrange)
}

/**
 * Has the prices, and with `show` whatever else, follow the amount that the payer chooses. `show` gets the total, null
 * while there is none. The server's own module reads the field; where it cannot be loaded, the server alone does.
 */
async function followAmount(amount, show) {
  const { formatAmount, readAmountWithin } = await import(new URL(amount.dataset.script, document.baseURI))
  const money = JSON.parse(amount.dataset.money)
  const open = JSON.parse(amount.dataset.open)
  const follow = () => {
    const { minor, problem } = readAmountWithin(amount.value, money)
    amount.setCustomValidity(problem ?? "")
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

/** Groups the digits in card fields while the payer types. */
function enhanceCard(number, expiry, cvc) {
  shapeWith(number, (text) => shapeNumber(text, groupsOf(text)))
  number.addEventListener("input", () => showBrand(number))
  // The length of the security code depends on the number, so another number may make it wrong or right.
  number.addEventListener("change", () => cvc.value !== "" && showError(cvc, complaint(cvc)))
  shapeWith(expiry, shapeExpiry)
  shapeWith(cvc, shapeCode)
  showBrand(number)
}

/** Shapes a field while the payer types, once an input method has composed it. */
function shapeWith(control, shape) {
  control.addEventListener("input", (event) => {
    const isKept = control.name === "card_expiry" && event.inputType === "deleteContentBackward"
    if (!event.isComposing && !isKept) reformat(control, shape, event)
  })
  control.addEventListener("compositionend", (event) => reformat(control, shape, event))
}

/** Sends the answer to a challenge once, whichever of the two buttons is pressed. */
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
      showMessage(UNREACHABLE)
    }
  })
}

/** Sends a form and asks for data. Browsers check a script's way on against no policy of forms. */
async function post(form, values) {
  const response = await fetch(form.action, {
    method: "POST",
    headers: { accept: "application/json" },
    body: new URLSearchParams(values)
  })
  return response.json()
}

function goOn(answer) {
  // Within a frame, the way on may lead out of it.
  if (!dispatchEvent(new CustomEvent("leave", { detail: answer, cancelable: true }))) return
  if (answer.reload === true) return location.reload()
  location.assign(answer.location)
  // An app's own address opens the app and leaves this page open. Loaded again, it says what was paid.
  if (!/^https?:/i.test(answer.location)) setTimeout(() => location.reload(), 2000)
}

function showMessage(text) {
  const message = document.getElementById("message")
  message.textContent = text
  if (text !== "") message.focus()
}

/** The text about a mistake in a field; empty if there is none. */
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

/** A code must be as long as the card's scheme has it; without a number, any length will do. */
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
  document.getElementById("brand").textContent = brandOf(readNumber(number.value) ?? "")?.name ?? ""
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
 * Shapes a value and keeps the caret behind the digit that it was behind. After a forward Delete, it stays before the
 * digit that it was before: otherwise the next Delete would take a space that shaping has put back.
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

/** Browsers that cannot open an order by its style show it open on a desk all the same. */
function openOrder(order) {
  if (CSS.supports("selector(::details-content)") || order.classList.contains("folded")) return
  order.open = matchMedia("(min-width: 56rem)").matches
}

const RESULT_SECONDS = [2, 3, 5, 10, 20, 30, 60]

/**
 * Asks for the page again, less and less often, and shows it once it says something else. Nobody is disturbed before.
 * A page that nobody looks at does not ask.
 */
function awaitResult(attempt = 0) {
  const textIn = (page) => page.querySelector("main").textContent
  const look = async () => {
    if (document.visibilityState === "hidden") return
    const response = await fetch(location.href, { cache: "no-store" })
    // What is over says so; anything else is a problem that passes.
    if (response.status !== 200 && response.status !== 410) return
    const page = new DOMParser().parseFromString(await response.text(), "text/html")
    if (textIn(page) !== textIn(document)) location.reload()
  }
  const seconds = RESULT_SECONDS[Math.min(attempt, RESULT_SECONDS.length - 1)]
  setTimeout(
    () =>
      look()
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

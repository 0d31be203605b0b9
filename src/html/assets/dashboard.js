/**
 * Makes the dashboard live: pages update by themselves, times are in the reader's time zone, values have copy buttons,
 * and shortcuts navigate. Without this script, pages work and are current when they are loaded.
 */
"use strict"

let main = document.getElementById("content")

/** Announces a text to screen readers. */
function announce(text) {
  document.getElementById("heard").textContent = text
}

/** The time zone that the person has set; undefined for the browser's, and null for one that it does not know. */
function timeZone() {
  const { zone } = main.dataset
  try {
    return Intl.DateTimeFormat(undefined, { timeZone: zone }) && zone
  } catch {
    return null
  }
}

function showTimes() {
  const zone = timeZone()
  if (zone === null) return
  const now = new Date()
  for (const element of document.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime)
    const isDetail = element.closest("td") === null
    element.textContent = at.toLocaleString(undefined, {
      timeZone: zone,
      month: "short",
      day: "numeric",
      hour: "2-digit",
      minute: "2-digit",
      ...((isDetail || at.getFullYear() !== now.getFullYear()) && { year: "numeric" }),
      ...(isDetail && { second: "2-digit" })
    })
  }
  if (zone !== undefined) return
  main.querySelector(".zone span")?.replaceChildren(Intl.DateTimeFormat().resolvedOptions().timeZone)
}

function enhance() {
  showTimes()
  for (const element of document.querySelectorAll(".copy")) offerCopy(element)
  showKeysSetting()
  showChosen()
}

function offerCopy(element) {
  if (navigator.clipboard === undefined || element.dataset.offered !== undefined) return
  element.dataset.offered = ""
  const text = element.textContent
  const button = document.createElement("button")
  button.type = "button"
  button.className = "copying"
  button.ariaLabel = button.title = "Copy"
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text)
    button.classList.add("done")
    announce("Copied")
    setTimeout(() => {
      button.classList.remove("done")
      announce("")
    }, 1500)
  })
  if (element.tagName !== "PRE") return (element.closest("a") ?? element).after(" ", button)
  const around = document.createElement("div")
  around.className = "copyable"
  element.replaceWith(around)
  around.append(element, button)
}

/* Live */

let source
let pending = false
let running = false

/** True while an update would lose input, a selection, an open form or an error. */
function isBusy() {
  const active = document.activeElement
  const enters = main.contains(active) && /^(INPUT|SELECT|TEXTAREA)$/.test(active.tagName)
  const hasChosen = main.querySelector("td input:checked") !== null
  // The error of a form that is no longer on the page would be lost.
  const isRefused = main.querySelector(":scope > [role=alert]") !== null
  return (
    enters ||
    hasChosen ||
    isRefused ||
    main.querySelector("details.dialog[open]") !== null ||
    String(getSelection()) !== ""
  )
}

const FOCUSABLE = "a[href], button, summary, [tabindex]"

/**
 * Restores the focus after an update: to the element with the same text and link that is nearest to the old position.
 */
function focusAgain(place, before) {
  const found = [...main.querySelectorAll(FOCUSABLE)]
    .map((element, i) => ({ element, distance: Math.abs(i - place) }))
    .filter(({ element }) => element.textContent === before.textContent && element.href === before.href)
    .toSorted((one, other) => one.distance - other.distance)
  found[0]?.element.focus({ preventScroll: true })
}

/** The page's own address. The response to a form has the form's address; reloading it would send the form again. */
function ownAddress() {
  return new URL(main.dataset.page, location.href)
}

/** Fetches the page again and replaces the content. */
async function refresh() {
  if (running || document.hidden || isBusy()) {
    pending = true
    return
  }
  const address = ownAddress()
  if (address.pathname !== location.pathname) return loadAgain()
  running = true
  pending = false
  try {
    const response = await fetch(address, { headers: { accept: "text/html" }, redirect: "manual" })
    if (response.type === "opaqueredirect") return leave()
    pending = isBusy()
    if (!response.ok || pending) return
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("content")
    if (fresh === null) return
    // Notices of forms stay visible.
    fresh.prepend(...main.querySelectorAll(":scope > .said"))
    const focused = document.activeElement
    const place = [...main.querySelectorAll(FOCUSABLE)].indexOf(focused)
    const open = [...main.querySelectorAll("details")].map((details) => details.open)
    // Filter values that were entered but not submitted stay.
    for (const field of main.querySelectorAll(".filters [id]")) {
      const same = fresh.querySelector(`#${CSS.escape(field.id)}`)
      if (field.value !== undefined && same !== null) same.value = field.value
    }
    main.replaceWith(fresh)
    main = fresh
    ;[...main.querySelectorAll("details")].forEach((details, i) => (details.open = open[i] ?? false))
    enhance()
    if (place >= 0) focusAgain(place, focused)
    announce("Page updated")
  } catch {
    pending = true
  } finally {
    running = false
  }
}

/** The session has ended: the content must not stay visible. */
function leave() {
  source?.close()
  loadAgain()
}

function loadAgain() {
  location.replace(ownAddress())
}

let soon
function refreshSoon() {
  clearTimeout(soon)
  soon = setTimeout(refresh, 100)
}

const AGAIN_MILLIS = 10_000

function listen(wasOpen = false) {
  const { live, stream } = main.dataset
  if (live === undefined || stream === undefined || source !== undefined) return
  const kinds = new Set(live.split(" "))
  source = new EventSource(stream)
  let opened = wasOpen
  source.addEventListener("open", () => {
    // After a sleep or a restart of the service, changes may have been missed.
    if (opened) refreshSoon()
    opened = true
    document.documentElement.dataset.live = "on"
  })
  source.addEventListener("error", () => {
    delete document.documentElement.dataset.live
    if (source.readyState !== EventSource.CLOSED) return
    // Too many streams, or the service is stopping. The browser does not reconnect by itself.
    source = undefined
    setTimeout(() => document.hidden || listen(true), AGAIN_MILLIS)
  })
  source.addEventListener("changed", ({ data }) => {
    if (JSON.parse(data).kinds.some((kind) => kinds.has(kind))) refreshSoon()
  })
  source.addEventListener("ended", leave)
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return
  if (source === undefined) listen(true)
  if (pending) refreshSoon()
})
addEventListener("focusout", () => {
  if (pending) refreshSoon()
})
document.addEventListener("toggle", () => pending && refreshSoon(), true)
// A page from the browser's back-forward cache may belong to a person who has signed out.
addEventListener("pageshow", ({ persisted }) => persisted && loadAgain())
addEventListener("pagehide", () => {
  source?.close()
  source = undefined
})

/* Selecting rows */

const boxesOf = (form) => [...form.querySelectorAll("td .box input")]

/** Shows the number of selected rows on each form, and whether all are selected. */
function showChosen() {
  for (const all of main.querySelectorAll("[data-choose-all]")) {
    const boxes = boxesOf(all.form)
    const chosen = boxes.filter(({ checked }) => checked).length
    all.checked = chosen === boxes.length
    all.indeterminate = chosen > 0 && !all.checked
    all.closest("[hidden]")?.removeAttribute("hidden")
    all.form.querySelector("[data-chosen]").textContent = chosen === 0 ? "" : `(${chosen})`
  }
}

addEventListener("change", ({ target }) => {
  const isAll = target.dataset.chooseAll !== undefined
  if (!isAll && target.closest(".box") === null) return
  if (isAll) for (const box of boxesOf(target.form)) box.checked = target.checked
  showChosen()
  announce(`${boxesOf(target.form).filter(({ checked }) => checked).length} selected`)
})

/* Keys */

/**
 * Single-key shortcuts can be turned off in this browser (semantics dashboard.keyboard): speech input and accidental
 * key presses would trigger them.
 */
const KEYS_SETTING = "till-keys"
const areKeysOn = () => localStorage.getItem(KEYS_SETTING) !== "off"

function showKeysSetting() {
  for (const box of document.querySelectorAll("[data-keys]")) {
    box.checked = areKeysOn()
    box.closest("[hidden]")?.removeAttribute("hidden")
  }
}

addEventListener("change", ({ target }) => {
  if (target.dataset.keys === undefined) return
  localStorage.setItem(KEYS_SETTING, target.checked ? "on" : "off")
  showKeysSetting()
})

let row = -1
let led = false

function move(step) {
  const links = [...main.querySelectorAll("tbody td:first-child > a")]
  if (links.length === 0) return
  // An update may have moved the focused row.
  const focused = links.indexOf(document.activeElement)
  row = Math.min(Math.max((focused < 0 ? row : focused) + step, 0), links.length - 1)
  links[row].focus()
}

/** Focuses the page's first filter, or the search field; opens its fold. */
function search() {
  const field =
    main.querySelector(".filters :is(input:not([type=hidden]), select)") ?? document.querySelector(".find input")
  const fold = field.closest("details")
  if (fold !== null) fold.open = true
  field.focus()
}

/** Closes the form with the focus, and focuses its button. */
function close() {
  const open = document.activeElement?.closest("details[open]")
  if (!open) return
  open.open = false
  open.querySelector("summary").focus()
}

const KEYS = {
  "/": search,
  j: () => move(1),
  k: () => move(-1),
  "?": () => document.querySelector("dialog.keys")?.showModal()
}

addEventListener("keydown", (event) => {
  const { altKey, ctrlKey, key, metaKey, target } = event
  if (key === "Escape") return close()
  if (!areKeysOn()) return
  // A closed dialog keeps the focus for a moment.
  const enters = target.checkVisibility() && target.closest("input, select, textarea, dialog[open]") !== null
  if (altKey || ctrlKey || metaKey || enters) return
  if (led) {
    led = false
    const link = /^[a-z]$/.test(key) && document.querySelector(`.side [data-key="${key}"] a`)
    if (link) return link.click()
  }
  if (key === "g") led = true
  else if (KEYS[key] !== undefined) {
    event.preventDefault()
    KEYS[key]()
  }
})

enhance()
listen()

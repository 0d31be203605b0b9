/**
 * Enhances the documentation, which also works without a script: results while typing, the key `/`, copy buttons, and
 * one language for the samples of all pages. Everything comes from this server.
 */
const root = document.documentElement
root.classList.add("scripted")

// Contents fold on a phone.
const side = document.querySelector(".side")
if (side !== null && !matchMedia("(min-width: 60rem)").matches) side.open = false

// Copy buttons
for (const block of document.querySelectorAll("main pre")) {
  const wrapper = document.createElement("div")
  wrapper.className = "copyable"
  const button = document.createElement("button")
  button.type = "button"
  button.className = "copy"
  button.textContent = "Copy"
  button.setAttribute("aria-label", `Copy: ${block.getAttribute("aria-label")}`)
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.textContent)
    button.textContent = "Copied"
    setTimeout(() => (button.textContent = "Copy"), 2000)
  })
  block.replaceWith(wrapper)
  wrapper.append(block, button)
}

// Languages
const LANGUAGE = "till-docs-language"
const choose = (language) => {
  for (const input of document.querySelectorAll(`.samples input[value="${language}"]`)) input.checked = true
}
try {
  const language = localStorage.getItem(LANGUAGE)
  if (/^[a-z]+$/.test(language ?? "")) choose(language)
} catch {
  // Without storage, each page begins with curl.
}
document.addEventListener("change", ({ target }) => {
  if (!target.matches(".samples input")) return
  const before = target.getBoundingClientRect().top
  choose(target.value)
  // The samples above have changed their height.
  scrollBy(0, target.getBoundingClientRect().top - before)
  try {
    localStorage.setItem(LANGUAGE, target.value)
  } catch {
    // The choice then counts for this page.
  }
})

// Search
const RESULTS_MAX = 12
const input = document.querySelector("[role=search] input")
if (input !== null) {
  const list = document.createElement("ul")
  list.className = "results"
  list.hidden = true
  const count = document.createElement("p")
  count.className = "unseen"
  count.role = "status"
  input.after(list, count)

  let entries
  const load = () =>
    (entries ??= fetch(input.dataset.index)
      .then((response) => response.json())
      .catch(() => (entries = undefined)))
  input.addEventListener("focus", load)

  const show = (found) => {
    list.replaceChildren(
      ...found.map(([title, path]) => {
        const item = document.createElement("li")
        const link = document.createElement("a")
        link.href = input.dataset.base + path
        const place = document.createElement("small")
        place.textContent = path
        link.append(title, place)
        item.append(link)
        return item
      })
    )
    list.hidden = found.length === 0
    count.textContent = input.value === "" ? "" : `${found.length} results`
  }
  const search = async () => {
    const words = input.value
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== "")
    if (words.length === 0) return show([])
    const all = (await load()) ?? []
    const has = (text) => words.every((word) => text.toLowerCase().includes(word))
    const titled = all.filter(([title]) => has(title))
    const others = all.filter((entry) => !titled.includes(entry) && has(`${entry[0]} ${entry[2]}`))
    show([...titled, ...others].slice(0, RESULTS_MAX))
  }
  input.addEventListener("input", search)

  // Arrows lead from the field through the results and back.
  input.form.addEventListener("keydown", (event) => {
    const places = [input, ...list.querySelectorAll("a")]
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      places[places.indexOf(document.activeElement) + step]?.focus()
    } else if (event.key === "Escape") {
      show([])
      input.focus()
    }
  })
  document.addEventListener("click", ({ target }) => {
    if (!target.closest("[role=search]") || target.closest(".results a")) show([])
  })
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.matches("input:not([type=radio]), textarea, select")
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping) return
    event.preventDefault()
    input.focus()
    input.select()
  })
}

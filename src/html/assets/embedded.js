/**
 * Runs in a frame of the shop's page. Reports the checkout's height, redirects and completion to that page. It sends
 * messages only to the one origin that the server allows to frame the page, and accepts none.
 */
"use strict"
;(() => {
  if (parent === window) return
  const { embedder, location: successUrl, status } = document.body.dataset
  const report = (message) => parent.postMessage({ till: "checkout", ...message }, embedder)

  new ResizeObserver(() =>
    report({ type: "resize", height: Math.ceil(document.documentElement.getBoundingClientRect().height) })
  ).observe(document.body)

  // A bank's page cannot be framed, so the whole page is redirected.
  addEventListener("leave", (event) => {
    if (event.detail.location === undefined) return
    event.preventDefault()
    report({ type: "leave", location: event.detail.location })
  })

  if (status === "complete") report({ type: "complete", location: successUrl ?? null })
})()

/**
 * Runs in a frame of the shop's page. It tells that page how high the checkout is, when the payer has to go elsewhere,
 * and when the session is complete. It speaks to the one origin that the server lets show this page, and listens to
 * nobody.
 */
"use strict"
;(() => {
  if (parent === window) return
  const { embedder, location: successUrl, status } = document.body.dataset
  const tell = (message) => parent.postMessage({ till: "checkout", ...message }, embedder)

  new ResizeObserver(() =>
    tell({ type: "resize", height: Math.ceil(document.documentElement.getBoundingClientRect().height) })
  ).observe(document.body)

  // A bank's page does not let itself be framed, so the whole page goes there.
  addEventListener("leave", (event) => {
    if (event.detail.location === undefined) return
    event.preventDefault()
    tell({ type: "leave", location: event.detail.location })
  })

  if (status === "complete") tell({ type: "complete", location: successUrl ?? null })
})()

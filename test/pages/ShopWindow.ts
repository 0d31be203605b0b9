/** A shop of another origin than Till's, to which browsers come back. */
import * as http from "node:http"

export interface ShopWindow {
  /** `http://localhost:<port>`: to a browser, another site than Till's `127.0.0.1`. */
  readonly url: string
  readonly close: () => Promise<void>
}

/**
 * Answers every address with a page that says where it is; `/frame?<url>` shows another page in a frame,
 * `/onward?<url>` leads on to it.
 */
export const openShop = async (): Promise<ShopWindow> => {
  const server = http.createServer((request, response) => {
    const [path, framed] = (request.url ?? "/").split("?", 2) as [string, string | undefined]
    const frame = path === "/frame" ? `<iframe src="${decodeURIComponent(framed ?? "")}"></iframe>` : ""
    if (path === "/onward") response.writeHead(302, { location: decodeURIComponent(framed ?? "") })
    else response.setHeader("content-type", "text/html")
    response.end(`<!doctype html><html lang="en"><title>Shop</title><h1>Shop ${path}</h1>${frame}`)
  })
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve))
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("The shop does not listen on a port")
  return {
    url: `http://localhost:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
}

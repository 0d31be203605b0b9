/** The bare `node:http` server of the baselines, on `PORT`; it reads the body of a request as text. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"

/** Returns JSON text, which is sent with a 200. */
export type Handler = (request: IncomingMessage) => Promise<string> | string

export const serve = (handler: Handler): void => {
  const server = createServer((request, response) => {
    if (request.url === "/healthz") return reply(response, 200, "{}")
    const fail = (error: unknown) => {
      console.error(error)
      reply(response, 500, `{"error":"internal"}`)
    }
    try {
      const body = handler(request)
      if (typeof body === "string") return reply(response, 200, body)
      body.then((text) => reply(response, 200, text), fail)
    } catch (error) {
      fail(error)
    }
  })
  server.keepAliveTimeout = 60_000
  server.listen(Number(process.env["PORT"]), "127.0.0.1")
  process.on("SIGTERM", () => process.exit(0))
}

const reply = (response: ServerResponse, status: number, body: string): void => {
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store"
  })
  response.end(body)
}

export const bodyOf = (request: IncomingMessage): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ""
    request.setEncoding("utf8")
    request.on("data", (chunk: string) => (text += chunk))
    request.on("end", () => resolve(text))
    request.on("error", reject)
  })

/** The requests whose costs the budget bounds. */
import { randomUUID } from "node:crypto"
import { intentBody, INTENTS } from "../scenarios/Scenario.ts"

export const KINDS = ["create", "confirm", "retrieve", "list"] as const
export type Kind = (typeof KINDS)[number]

/** The account that requests are put to. */
export interface Target {
  readonly port: number
  readonly apiKey: string
  /** Ids of PaymentIntents that are not confirmed. */
  readonly confirmable: Array<string>
  /** Ids of PaymentIntents to read. */
  readonly known: Array<string>
}

const LIST_LIMIT = 10

const textOf = ({ apiKey, port }: Target, method: string, path: string, body?: object): string => {
  const head =
    `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n` +
    `Authorization: Basic ${Buffer.from(`${apiKey}:`).toString("base64")}\r\nX-API-Version: 2026-03-09\r\n`
  if (body === undefined) return `${head}\r\n`
  const text = JSON.stringify(body)
  return (
    `${head}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n` +
    `Idempotency-Key: ${randomUUID()}\r\n\r\n${text}`
  )
}

/** Makes the text of the next request of a kind. */
export const makeNextText = (kind: Kind, target: Target): (() => string) => {
  let count = 0
  switch (kind) {
    case "create":
      return () => textOf(target, "POST", INTENTS, intentBody)
    case "confirm":
      return () => {
        // The newest one: it is in memory.
        const id = target.confirmable.pop()
        if (id === undefined) throw new Error("There are too few PaymentIntents to confirm.")
        return textOf(target, "POST", `${INTENTS}/${id}/confirm`, { payment_method: "pm_card_visa" })
      }
    case "retrieve":
      return () => textOf(target, "GET", `${INTENTS}/${target.known[count++ % target.known.length]}`)
    case "list":
      return () => textOf(target, "GET", `${INTENTS}?limit=${LIST_LIMIT}`)
  }
}

/** Returns the id of the PaymentIntent in the answer to a create. */
export const idIn = (answer: string): string => {
  const [, id] = /"id": ?"(pi_[^"]+)"/.exec(answer) ?? []
  if (id === undefined) throw new Error(`An answer without an id: ${answer}`)
  return id
}

/** The mail server and the sender that the operator configures (semantics mail.server). */
import { Redacted } from "effect"
import { headerText, isMailable } from "./Mail.ts"

export interface MailServer {
  readonly host: string
  readonly port: number
  /** True for TLS from the first byte. */
  readonly isSecure: boolean
  /** Null for a server that takes mail without a password. */
  readonly user: string | null
  readonly password: Redacted.Redacted
}

export interface Sender {
  readonly name: string
  readonly address: string
}

/** The port of mail submission, and that of submission over TLS. */
const PORT = 587
const SECURE_PORT = 465

const decoded = (part: string): string | undefined => {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

/** Reads `smtp://user:password@host:port` or `smtps://…`; undefined for anything else. */
export const parseMailServer = (value: string): MailServer | undefined => {
  // A second `@`, or anything behind the host, is part of a password that is not percent-encoded.
  if (!/^smtps?:\/\/(?:[^/?#\s@]*@)?[^/?#\s@]+\/?$/iu.test(value)) return undefined
  const url = URL.parse(value)
  if (url === null || url.hostname === "") return undefined
  const [user, password] = [decoded(url.username), decoded(url.password)]
  if (user === undefined || password === undefined || (user === "" && password !== "")) return undefined
  const isSecure = url.protocol === "smtps:"
  return {
    host: url.hostname.replaceAll(/^\[|\]$/gu, ""),
    port: url.port === "" ? (isSecure ? SECURE_PORT : PORT) : Number(url.port),
    isSecure,
    user: user === "" ? null : user,
    password: Redacted.make(password, { label: "mail password" })
  }
}

/** Reads `payments@shop.example` or `Lumen Coffee <payments@shop.example>`; undefined for anything else. */
export const parseSender = (value: string): Sender | undefined => {
  const at = value.indexOf("<")
  const isNamed = at !== -1 && value.endsWith(">")
  const name = isNamed ? value.slice(0, at).trim().replaceAll(/^"|"$/gu, "") : "Till"
  const address = isNamed ? value.slice(at + 1, -1) : value
  return isMailable(address) && name !== "" && headerText(name) === name ? { name, address } : undefined
}

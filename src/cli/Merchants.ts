/**
 * `till merchants` and `till keys` create, list and change the installation's merchants and their keys (semantics
 * keys.cli, keys.roll, versions.default, keys.revoke), whether the service is running or not.
 */
import { Console, Effect } from "effect"
import * as app from "../app.ts"
import { columns, timeOf } from "./Columns.ts"

type Merchant = app.Administered["merchants"][number]
type ApiKey = app.Administered["keys"][number]

const merchantCells = ({ api_version, created, id, name }: Merchant) => [id, api_version, timeOf(created), name]
const MERCHANT_HEADS = ["ID", "VERSION", "CREATED", "NAME"]

const merchantLines = (merchants: ReadonlyArray<Merchant>): string => columns(merchants.map(merchantCells))

const statusOf = ({ expires_at, status }: ApiKey): string =>
  expires_at !== null && status === "rolling" ? `${status} until ${timeOf(expires_at)}` : status

/** A key without its secret. */
const keyCells = (key: ApiKey) => [
  key.id,
  key.merchant_id,
  `${key.prefix}…${key.last4}`,
  timeOf(key.created),
  statusOf(key),
  key.name ?? ""
]
const KEY_HEADS = ["ID", "MERCHANT", "KEY", "CREATED", "STATUS", "NAME"]

/** Formats new keys in full. No later command can print them. */
const newKeyLines = (keys: ReadonlyArray<ApiKey>): string => {
  const rows = keys.map(({ id, livemode, secret = "", type }) => [
    `  ${type === "secret" ? "Secret" : "Publishable"} key, ${livemode ? "live" : "test"} mode`,
    id,
    secret
  ])
  return `These keys are shown only once; Till stores nothing but their hashes:\n${columns(rows)}`
}

const brandLines = ({ brand, id, name }: Merchant): string =>
  columns([
    ["merchant", id],
    ["name", name],
    ...Object.entries(brand).map(([setting, value]) => [setting, value ?? "-"])
  ])

const LINES = {
  merchants: ({ merchants }: app.Administered): string => merchantLines(merchants),
  merchantList: ({ merchants }: app.Administered): string => columns([MERCHANT_HEADS, ...merchants.map(merchantCells)]),
  merchantWithKeys: ({ keys, merchants }: app.Administered): string =>
    `${merchantLines(merchants)}\n\n${newKeyLines(keys)}`,
  brands: ({ merchants }: app.Administered): string => merchants.map(brandLines).join("\n"),
  keys: ({ keys }: app.Administered): string => columns(keys.map(keyCells)),
  keyList: ({ keys }: app.Administered): string => columns([KEY_HEADS, ...keys.map(keyCells)]),
  newKeys: ({ keys }: app.Administered): string => newKeyLines(keys)
}

/** The part of an answer that lines of a kind show. */
const partOf = ({ keys, merchants }: app.Administered, lines: keyof typeof LINES) => {
  if (lines === "merchantWithKeys") return { merchants, keys }
  return lines === "keys" || lines === "keyList" || lines === "newKeys" ? { keys } : { merchants }
}

/** Runs a command on the installation, and prints its answer as lines of one kind or as JSON. */
export const administer = Effect.fnUntraced(function* (
  command: app.OperatorCommand,
  lines: keyof typeof LINES,
  json: boolean
) {
  const carriedOut = app.Administration.use(({ carryOut }) => carryOut(command))
  const answer = yield* Effect.provide(carriedOut, app.administration)
  yield* Console.log(json ? JSON.stringify(partOf(answer, lines), null, 2) : LINES[lines](answer))
})

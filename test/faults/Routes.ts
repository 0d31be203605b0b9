/**
 * A module that Node loads before Till (`node --import`): it redirects connections to ports of this machine to the
 * ports of proxies. `FAULTS_ROUTES` names the file: a JSON object, port to port.
 */
import * as fs from "node:fs"
import { Socket } from "node:net"

const file = process.env["FAULTS_ROUTES"]

const routed = (port: unknown): unknown => {
  const routes: Readonly<Record<string, number>> = JSON.parse(fs.readFileSync(file!, "utf8"))
  return routes[String(port)] ?? port
}

// oxlint-disable-next-line typescript/unbound-method -- it is called on the socket below
const connect = Socket.prototype.connect as (this: Socket, ...parameters: Array<unknown>) => Socket

/** Returns the options of a connection in each of Node's forms. */
const optionsIn = ([first]: ReadonlyArray<unknown>): { port?: unknown } | undefined => {
  const options = Array.isArray(first) ? first[0] : first
  return typeof options === "object" && options !== null ? options : undefined
}

Socket.prototype.connect = function (this: Socket, ...parameters: Array<unknown>) {
  const options = optionsIn(parameters)
  if (file !== undefined && options?.port !== undefined) options.port = routed(options.port)
  return connect.apply(this, parameters)
} as typeof Socket.prototype.connect

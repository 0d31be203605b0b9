/**
 * Finds the endpoint of a method and a path (semantics requests.paths), in a tree of path segments that is built at
 * start. A literal segment takes precedence over a parameter. A path with trailing or doubled slashes is a different
 * path.
 */
import { Exit } from "effect"
import { MethodNotAllowed, RouteNotFound } from "../server/HttpErrors.ts"
import { isStorable } from "./JsonBody.ts"

export interface Matched<Endpoint> {
  readonly endpoint: Endpoint
  /** Values of the path's parameters, decoded. */
  readonly params: Readonly<Record<string, string>>
}

interface Node<Endpoint> {
  readonly literals: Map<string, Node<Endpoint>>
  parameter: { readonly name: string; readonly node: Node<Endpoint> } | undefined
  readonly endpoints: Map<string, Endpoint>
}

const makeNode = <Endpoint>(): Node<Endpoint> => ({ literals: new Map(), parameter: undefined, endpoints: new Map() })

export class RouteTable<Endpoint extends { readonly method: string; readonly path: string }> {
  readonly #root = makeNode<Endpoint>()
  /** Nodes of paths without parameters, which need no walk. */
  readonly #literal = new Map<string, Node<Endpoint>>()

  constructor(endpoints: Iterable<Endpoint>) {
    for (const endpoint of endpoints) {
      let node = this.#root
      for (const segment of endpoint.path.split("/").slice(1)) node = descend(node, segment)
      node.endpoints.set(endpoint.method, endpoint)
      if (!endpoint.path.includes(":")) this.#literal.set(endpoint.path, node)
    }
  }

  /** Finds the endpoint. Fails if there is none with this path, or none with this method. HEAD counts as GET. */
  find(method: string, path: string): Exit.Exit<Matched<Endpoint>, RouteNotFound | MethodNotAllowed> {
    const params: Record<string, string> = {}
    const node = this.#literal.get(path) ?? this.#walk(path, params)
    if (node === undefined || node.endpoints.size === 0) return Exit.fail(new RouteNotFound({ method, path }))
    const endpoint = node.endpoints.get(method === "HEAD" ? "GET" : method)
    return endpoint === undefined
      ? Exit.fail(new MethodNotAllowed({ method, path, allowed: [...node.endpoints.keys()] }))
      : Exit.succeed({ endpoint, params })
  }

  #walk(path: string, params: Record<string, string>): Node<Endpoint> | undefined {
    let node = this.#root
    for (let start = 1, end = 0; end < path.length; start = end + 1) {
      const slash = path.indexOf("/", start)
      end = slash === -1 ? path.length : slash
      const segment = path.slice(start, end)
      const literal = node.literals.get(segment)
      if (literal !== undefined) {
        node = literal
      } else if (node.parameter !== undefined && segment !== "") {
        params[node.parameter.name] = decodeSegment(segment)
        node = node.parameter.node
      } else {
        return undefined
      }
    }
    return node
  }
}

const descend = <Endpoint>(node: Node<Endpoint>, segment: string): Node<Endpoint> => {
  if (segment.startsWith(":")) {
    node.parameter ??= { name: segment.slice(1), node: makeNode() }
    return node.parameter.node
  }
  const next = node.literals.get(segment) ?? makeNode<Endpoint>()
  node.literals.set(segment, next)
  return next
}

/**
 * Decodes a segment. An id needs no percent-encoding, so a segment that cannot be decoded or stored is returned as is:
 * no object has such an id.
 */
const decodeSegment = (segment: string): string => {
  if (!segment.includes("%")) return segment
  try {
    const text = decodeURIComponent(segment)
    return isStorable(text) ? text : segment
  } catch {
    return segment
  }
}

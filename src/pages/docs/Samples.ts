/**
 * The recipe of an operation as a program that works as it is printed, with the key in `TILL_API_KEY`: in curl,
 * TypeScript, Python and PHP. Tests run what this file renders.
 */
import type { Document } from "../../api/openapi/Document.ts"
import {
  filledIn,
  ID_PREFIXES,
  isReference,
  type Recipe,
  recipeOf,
  type Step,
  type Value
} from "../../api/openapi/Recipes.ts"

/** The name under which programs import the client. */
export const CLIENT_MODULE = "till-payments-client"

export interface Sample {
  readonly language: "curl" | "typescript" | "python" | "php"
  readonly title: string
  readonly code: string
}

/** A step with its route. */
interface Request extends Step {
  readonly method: string
  readonly path: string
  readonly isLast: boolean
  /** True if an earlier step has the same name, so that its value is known. */
  readonly isRepeated: boolean
}

/** The routes by operation ID. */
const routesOf = ({ paths }: Document): ReadonlyMap<string, { readonly method: string; readonly path: string }> =>
  new Map(
    Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item).map(
        ([method, { operationId }]) => [operationId, { method: method.toUpperCase(), path }] as const
      )
    )
  )

/** Renders the samples of all operations. */
export const samplesOf = (document: Document): ((operationId: string) => ReadonlyArray<Sample>) => {
  const routes = routesOf(document)
  const base = document.servers[0]!.url
  return (operationId) => {
    const recipe: Recipe = recipeOf(operationId)
    const requests = recipe.map((step, index) => ({
      ...step,
      ...routes.get(step.operation)!,
      isLast: index === recipe.length - 1,
      isRepeated: recipe.slice(0, index).some(({ name }) => name === step.name)
    }))
    return [
      { language: "curl", title: "curl", code: requests.map((one) => curl(one, base)).join("\n\n") },
      { language: "typescript", title: "TypeScript", code: typescript(requests, recipe, base) },
      { language: "python", title: "Python", code: python(requests, recipe, base) },
      { language: "php", title: "PHP", code: php(requests, recipe, base) }
    ]
  }
}

// curl

const curl = (request: Request, base: string): string => {
  const { isLast, isRepeated, method, name, on, parameters, path } = request
  const isCommand = method === "POST"
  const query = isCommand ? {} : (parameters ?? {})
  const isSearch = Object.keys(query).length > 0
  const route = on === undefined ? path : path.replace("{id}", `$${on.step}`)
  const parts = [
    `curl ${isLast || isRepeated ? "" : "-s "}${isSearch ? "-G " : ""}${base}${route}`,
    '-u "$TILL_API_KEY:"',
    ...(method === "DELETE" ? ["-X DELETE"] : []),
    ...(isCommand ? [`-H "Idempotency-Key: ${name}-$RANDOM$RANDOM"`] : []),
    ...(isCommand && parameters !== undefined ? [`-H "Content-Type: application/json"`] : []),
    ...(isCommand && parameters !== undefined ? [`-d '${indented(shellJson(parameters))}'`] : []),
    ...(isCommand && parameters === undefined ? ["-X POST"] : []),
    ...Object.entries(query).map(([field, value]) => `--data-urlencode ${queryItem(field, value)}`)
  ]
  const command = parts.join(" \\\n  ")
  if (isLast || isRepeated) return command
  return `${name}=$(${command} |\n  grep -o '${ID_PREFIXES[name]}_[0-9A-Za-z]*' | head -n 1)`
}

const queryItem = (field: string, value: Value): string =>
  [value]
    .flat()
    .map((one) =>
      isReference(one as Value) ? `"${field}=$${(one as { step: string }).step}"` : `'${field}=${String(one)}'`
    )
    .join(" --data-urlencode ")

/** JSON within single quotes, in which the shell replaces the variables of earlier steps. */
const shellJson = (value: Value): string =>
  JSON.stringify(
    filledIn(value, (step) => `'$${step}'`),
    null,
    2
  )

const indented = (text: string): string => text.replaceAll("\n", "\n  ")

// Programs

/** The code that reads a value of an earlier step. */
type Read = (step: string) => string

const readerOf =
  (recipe: Recipe, byId: (name: string) => string, itself: Read): Read =>
  (step) =>
    recipe.find(({ name }) => name === step)?.takes === "latest_charge" ? itself(step) : byId(step)

/** A literal of the language, with references as code. */
const literal = (value: Value, read: Read, { map, pair, quote }: Notation, depth = 0): string => {
  if (typeof value === "string") return quote(value)
  if (typeof value === "boolean") return map.booleans[value ? 1 : 0]!
  if (typeof value === "number") return String(value)
  if (isReference(value)) return read(value.step)
  const inner = (one: Value) => literal(one, read, { map, pair, quote }, depth + 1)
  const [open, close, items] = Array.isArray(value)
    ? (["[", "]", value.map(inner)] as const)
    : ([map.open, map.close, Object.entries(value).map(([key, one]) => pair(key, inner(one as Value)))] as const)
  const line = items.join(", ")
  const space = open === "{" && map.spaced && items.length > 0 ? " " : ""
  if (line.length < LINE_LENGTH - 2 * depth && !line.includes("\n")) return `${open}${space}${line}${space}${close}`
  const indent = "  ".repeat(depth + 1)
  return `${open}\n${items.map((item) => indent + item).join(",\n")}\n${"  ".repeat(depth)}${close}`
}

const LINE_LENGTH = 62

interface Notation {
  readonly map: {
    readonly open: string
    readonly close: string
    readonly spaced: boolean
    readonly booleans: readonly [string, string]
  }
  readonly pair: (key: string, value: string) => string
  readonly quote: (text: string) => string
}

const TYPESCRIPT: Notation = {
  map: { open: "{", close: "}", spaced: true, booleans: ["false", "true"] },
  pair: (key, value) => `${/^\w+$/.test(key) ? key : JSON.stringify(key)}: ${value}`,
  quote: (text) => JSON.stringify(text)
}

const typescript = (requests: ReadonlyArray<Request>, recipe: Recipe, base: string): string => {
  const read = readerOf(
    recipe,
    (name) => `${name}${isFromList(recipe, name) ? "!" : ""}.id`,
    (name) => `${name}!`
  )
  const lines = requests.map(({ isLast, isRepeated, name, on, operation, parameters, takes }) => {
    const sent = parameters === undefined ? [] : [literal(parameters, read, TYPESCRIPT)]
    const args = [...(on === undefined ? [] : [read(on.step)]), ...sent].join(", ")
    const call = `await till.${operation}(${args})`
    if (isLast) return `console.log(${call})`
    if (isRepeated) return call
    if (takes === "data") return `const [${name}] = (${call}).data`
    return takes === undefined ? `const ${name} = ${call}` : `const { ${takes}: ${name} } = ${call}`
  })
  return `import { TillClient } from "${CLIENT_MODULE}"

const till = new TillClient({ apiKey: process.env.TILL_API_KEY!, baseUrl: "${base}" })
${lines.join("\n")}`
}

const isFromList = (recipe: Recipe, step: string): boolean => recipe.find(({ name }) => name === step)?.takes === "data"

const PYTHON: Notation = {
  map: { open: "{", close: "}", spaced: false, booleans: ["False", "True"] },
  pair: (key, value) => `${JSON.stringify(key)}: ${value}`,
  quote: (text) => JSON.stringify(text)
}

/** A query for the language's encoder: truth values in lower case, and for PHP names of lists without brackets. */
const queryOf = (parameters: NonNullable<Step["parameters"]>, language: "python" | "php"): Value =>
  Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [
      language === "php" ? name.replace("[]", "") : name,
      typeof value === "boolean" ? String(value) : value
    ])
  )

/** The address of a request whose query is in the address, as an expression. */
const addressOf = ({ method, on, parameters, path }: Request, read: Read, language: "python" | "php"): string => {
  const join = language === "python" ? " + " : " . "
  const [before = "", after = ""] = path.split("{id}")
  const parts = on === undefined ? [JSON.stringify(path)] : [JSON.stringify(before), read(on.step)]
  if (after !== "" && on !== undefined) parts.push(JSON.stringify(after))
  if (method !== "POST" && parameters !== undefined) {
    const query = literal(queryOf(parameters, language), read, language === "python" ? PYTHON : PHP)
    parts.push(`"?"`, language === "python" ? `urlencode(${query}, doseq=True)` : `http_build_query(${query})`)
  }
  return parts.join(join).replaceAll(`"${join}"`, "")
}

const python = (requests: ReadonlyArray<Request>, recipe: Recipe, base: string): string => {
  const read = readerOf(
    recipe,
    (name) => `${name}["id"]`,
    (name) => name
  )
  const hasQuery = requests.some(({ method, parameters }) => method !== "POST" && parameters !== undefined)
  const lines = requests.map((request) => {
    const { isLast, isRepeated, method, name, parameters, takes } = request
    const body = method === "POST" && parameters !== undefined ? [literal(parameters, read, PYTHON)] : []
    const call = `till(${[`"${method}"`, addressOf(request, read, "python"), ...body].join(", ")})`
    if (isLast) return `print(${call})`
    if (isRepeated) return call
    return `${name} = ${call}${takes === undefined ? "" : `["${takes}"]`}${takes === "data" ? "[0]" : ""}`
  })
  return `import base64, json, os, uuid
${hasQuery ? "from urllib.parse import urlencode\n" : ""}from urllib.request import Request, urlopen

KEY = base64.b64encode((os.environ["TILL_API_KEY"] + ":").encode()).decode()

def till(method, path, body=None):
    headers = {"Authorization": "Basic " + KEY, "Content-Type": "application/json"}
    if method == "POST":
        headers["Idempotency-Key"] = str(uuid.uuid4())
    data = json.dumps(body or {}).encode() if method == "POST" else None
    with urlopen(Request("${base}" + path, data, headers, method=method)) as response:
        return json.load(response)

${lines.join("\n")}`
}

const PHP: Notation = {
  map: { open: "[", close: "]", spaced: false, booleans: ["false", "true"] },
  pair: (key, value) => `${JSON.stringify(key)} => ${value}`,
  // Single quotes, in which PHP replaces nothing.
  quote: (text) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`
}

const php = (requests: ReadonlyArray<Request>, recipe: Recipe, base: string): string => {
  const read = readerOf(
    recipe,
    (name) => `$${name}['id']`,
    (name) => `$${name}`
  )
  const lines = requests.map((request) => {
    const { isLast, isRepeated, method, name, parameters, takes } = request
    const body = method === "POST" && parameters !== undefined ? [literal(parameters, read, PHP)] : []
    const call = `till(${[`'${method}'`, addressOf(request, read, "php"), ...body].join(", ")})`
    if (isLast) return `print_r(${call});`
    if (isRepeated) return `${call};`
    return `$${name} = ${call}${takes === undefined ? "" : `['${takes}']`}${takes === "data" ? "[0]" : ""};`
  })
  return `<?php
function till(string $method, string $path, array $body = []): array {
    $headers = [
        'Authorization: Basic ' . base64_encode(getenv('TILL_API_KEY') . ':'),
        'Content-Type: application/json',
        'Idempotency-Key: ' . bin2hex(random_bytes(16)),
    ];
    $content = $method === 'POST' ? json_encode((object) $body) : '';
    $http = ['method' => $method, 'header' => $headers, 'content' => $content];
    $answer = file_get_contents('${base}' . $path, false, stream_context_create(['http' => $http]));
    return json_decode($answer, true, 512, JSON_THROW_ON_ERROR);
}

${lines.join("\n")}`
}

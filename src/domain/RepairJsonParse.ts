/** Repairs `JSON.parse` for all that the process parses, whoever does it. Imported first. */
import { parseJson } from "./JsonParse.ts"

JSON.parse = parseJson

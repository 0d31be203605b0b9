/**
 * Part of `npm run check`: the OpenAPI documents of the API and of the gateways' protocol have no finding of Redocly's
 * and Spectral's recommended rules, warnings included.
 */
import { createConfig, lintFromString } from "@redocly/openapi-core"
import spectralCore, { type RulesetDefinition } from "@stoplight/spectral-core"
import spectralRulesets from "@stoplight/spectral-rulesets"
import * as Document from "../../../src/api/openapi/Document.ts"
import * as GatewayDocument from "./GatewayDocument.ts"

/** The address that a document for everybody could have. Redocly refuses localhost. */
const ADDRESS = "https://pay.till.example"

/** Returns the findings of both, one per line. */
export const findingsOf = async (document: object): Promise<ReadonlyArray<string>> => {
  const source = JSON.stringify(document)
  const spectral = new spectralCore.Spectral()
  spectral.setRuleset({ extends: [[spectralRulesets.oas as RulesetDefinition, "recommended"]] })
  const [redocly, found] = await Promise.all([
    lintFromString({ source, config: await createConfig({ extends: ["recommended"] }) }),
    spectral.run(JSON.parse(source))
  ])
  return [
    ...redocly.map(({ location, message, ruleId }) => `redocly ${ruleId}: ${message} ${location[0]?.pointer ?? ""}`),
    ...found.map(({ code, message, path }) => `spectral ${code}: ${message} ${path.join(".")}`)
  ]
}

if (import.meta.main) {
  const documents = [Document.make(ADDRESS), GatewayDocument.make()]
  const findings = [...(await Promise.all(documents.map(findingsOf))).flat(), ...GatewayDocument.differences()]
  for (const finding of findings) console.log(finding)
  if (findings.length > 0) process.exitCode = 1
}

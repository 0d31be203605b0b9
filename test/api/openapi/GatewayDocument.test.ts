/** The OpenAPI document of the gateways' protocol (semantics gateways.messages). */
import { assert, describe, it } from "@effect/vitest"
import { Validator } from "@seriousme/openapi-schema-validator"
import { Schema } from "effect"
import * as Messages from "../../../src/processors/protocol/Messages.ts"
import { differences, make } from "./GatewayDocument.ts"

interface Examples {
  readonly content: {
    readonly "application/json": { readonly examples: Readonly<Record<string, { readonly value: unknown }>> }
  }
}
interface Operation {
  readonly requestBody: Examples
  readonly responses: Readonly<Record<string, Examples>>
}
const document = make() as unknown as {
  readonly paths: Readonly<Record<"/", { readonly post: Operation }>>
  readonly webhooks: { readonly notification: { readonly post: Operation } }
}

const valuesOf = ({ content }: Examples) => Object.values(content["application/json"].examples)

describe("gateways.messages: the protocol's document", () => {
  it("is the file in docs/openapi", () => assert.deepStrictEqual(differences(), []))

  it("is a valid document of OpenAPI", async () => {
    const { errors, valid } = await new Validator().validate(
      structuredClone(document) as unknown as Record<string, unknown>
    )
    assert.isTrue(valid, JSON.stringify(errors))
  })

  const { requestBody, responses } = document.paths["/"].post
  const answers = Schema.Union([Messages.State, Messages.Listed, Messages.Checked, Messages.TokenDescribed])

  it.each([
    ["requests", Messages.Request, valuesOf(requestBody), 6],
    ["answers", answers, valuesOf(responses["200"]!), 8],
    ["errors", Messages.ErrorBody, Object.values(responses).slice(1).flatMap(valuesOf), 5],
    ["messages", Messages.Notification, valuesOf(document.webhooks.notification.post.requestBody), 3]
  ] as const)("has examples of %s that have the protocol's form", (_, schema, examples, count) => {
    assert.lengthOf(examples, count)
    const decode = Schema.decodeUnknownSync(schema as Schema.Codec<unknown>)
    for (const { value } of examples) assert.deepStrictEqual(decode(value), value)
  })
})

/**
 * Prints the types of src/client/Contract.ts without Effect: the contract's schemas become plain interfaces, which
 * compile in a fraction of the time and show their fields in an editor, with their descriptions.
 */
import { Schema, SchemaAST } from "effect"
import { HttpApi } from "effect/http-api"
import { Api } from "../../src/api/Api.ts"
import { ApiVersion } from "../../src/domain/ApiVersion.ts"
import { Charge } from "../../src/domain/Charge.ts"
import { CheckoutSession } from "../../src/domain/CheckoutSession.ts"
import { Customer } from "../../src/domain/Customer.ts"
import { Event, EventType } from "../../src/domain/Event.ts"
import { PaymentIntent } from "../../src/domain/PaymentIntent.ts"
import { PaymentMethod } from "../../src/domain/PaymentMethod.ts"
import { Price } from "../../src/domain/Price.ts"
import { Product } from "../../src/domain/Product.ts"
import { Refund } from "../../src/domain/Refund.ts"

/** The schemas whose types Contract.ts exports. */
const EXPORTED = {
  // First: other types contain it.
  EventType,
  ApiVersion,
  Charge,
  CheckoutSession,
  Customer,
  Event,
  PaymentIntent,
  PaymentMethod,
  Price,
  Product,
  Refund
}

/** Quotes a name that is no identifier. */
const nameOf = (name: string): string => (/^[A-Za-z_]\w*$/u.test(name) ? name : JSON.stringify(name))

/** Collects the named types that printed types refer to. */
class Printer {
  readonly declarations = new Map<string, string>()

  /** Names of unions, which have no identifiers of their own. */
  readonly #unions = new Map<string, string>()

  /** Prints the type of decoded values. */
  print(schema: Schema.Top): string {
    return this.#typeOf(SchemaAST.toType(schema.ast))
  }

  /** Declares a type under a name. */
  declare(name: string, schema: Schema.Top): void {
    const type = this.print(schema)
    if (type === name) return
    this.declarations.set(name, type)
    if (type.includes(" | ")) this.#unions.set(type, name)
  }

  #typeOf(ast: SchemaAST.AST): string {
    const name = SchemaAST.resolveIdentifier(ast)
    if (name === undefined || ast._tag !== "Objects") return this.#structureOf(ast)
    const known = this.declarations.get(name)
    if (known === undefined) this.declarations.set(name, "")
    const type = this.#structureOf(ast)
    if (known !== undefined && known !== "" && known !== type) throw new Error(`two schemas have the name ${name}`)
    this.declarations.set(name, type)
    return name
  }

  #structureOf(ast: SchemaAST.AST): string {
    switch (ast._tag) {
      case "String":
      case "Number":
      case "Boolean":
      case "Null":
      case "Undefined":
      case "Unknown":
      case "Never":
        return ast._tag.toLowerCase()
      case "Literal":
        return JSON.stringify(ast.literal)
      case "Union":
        return this.#unionOf(ast)
      case "Arrays":
        return this.#arrayOf(ast)
      case "Objects":
        return this.#objectOf(ast)
      case "Suspend":
        return this.#typeOf(ast.thunk())
      default:
        throw new Error(`the contract has a type without a printed form: ${ast._tag}`)
    }
  }

  #unionOf({ types }: SchemaAST.Union): string {
    if (types.length === 0) return "never"
    const type = types.map((member) => this.#typeOf(member)).join(" | ")
    return this.#unions.get(type) ?? type
  }

  #arrayOf({ elements, rest }: SchemaAST.Arrays): string {
    const [item, ...others] = rest
    if (others.length > 0) throw new Error("the contract has a tuple with elements behind its rest")
    if (elements.length === 0 && item !== undefined) return `ReadonlyArray<${this.#typeOf(item)}>`
    const parts = elements.map((element) => `${this.#typeOf(element)}${SchemaAST.isOptional(element) ? "?" : ""}`)
    return `readonly [${[...parts, ...(item === undefined ? [] : [`...Array<${this.#typeOf(item)}>`])].join(", ")}]`
  }

  #objectOf({ indexSignatures, propertySignatures }: SchemaAST.Objects): string {
    const properties = propertySignatures.map(({ name, type }) => {
      const description = SchemaAST.resolveDescription(type)
      const comment = description === undefined ? "" : `/** ${description.replaceAll("*/", "* /")} */\n`
      const mark = SchemaAST.isOptional(type) ? "?" : ""
      return `${comment}readonly ${nameOf(String(name))}${mark}: ${this.#typeOf(type)}`
    })
    const indexes = indexSignatures.map(
      ({ parameter, type }) => `readonly [name: ${this.#typeOf(parameter)}]: ${this.#typeOf(type)}`
    )
    return `{\n${[...properties, ...indexes].join("\n")}\n}`
  }
}

/** Prints the parameters and results of every endpoint. */
const contractOf = (printer: Printer): string => {
  const groups = new Map<string, Array<string>>()
  HttpApi.reflect(Api, {
    onGroup: ({ group }) => void groups.set(group.identifier, []),
    onEndpoint: ({ endpoint, group }) => {
      const [parameters = endpoint.query] = [...endpoint.payload.values()].flatMap(({ schemas }) => schemas)
      const given = parameters === undefined ? "Readonly<Record<string, never>>" : printer.print(parameters)
      const results = [...endpoint.success].map((result) => printer.print(result))
      groups
        .get(group.identifier)!
        .push(
          `readonly ${endpoint.identifier}: { readonly parameters: ${given}; readonly result: ${results.join(" | ")} }`
        )
    }
  })
  const texts = [...groups].map(([name, endpoints]) => `readonly ${name}: {\n${endpoints.join("\n")}\n}`)
  return `{\n${texts.join("\n")}\n}`
}

/** Returns a module with the types that src/client/Contract.ts exports. */
export const contractTypes = (): string => {
  const printer = new Printer()
  for (const [name, schema] of Object.entries(EXPORTED)) printer.declare(name, schema)
  const contract = contractOf(printer)
  const declarations = [...printer.declarations].map(([name, type]) =>
    type.startsWith("{") ? `export interface ${name} ${type}` : `export type ${name} = ${type}`
  )
  return [
    "/** The types of the contract: the objects, and the parameters and results of every endpoint. */",
    ...declarations,
    `/** The parameters and results by group and name. */\nexport interface Contract ${contract}`,
    "/** The paths by group and name. */\nexport type ContractPaths = {\n" +
      "  readonly [Group in keyof Contract]: { readonly [Name in keyof Contract[Group]]: string }\n}"
  ].join("\n\n")
}

/**
 * Rules: the requirement on a parameter, in words.
 *
 * The schema of a parameter carries a `rule` annotation, which completes "The `param` field must be …" (semantics
 * errors.table). `violations` returns it for a decode failure, so a schema is the only place that states its rule.
 */
import { SchemaAST, type SchemaIssue } from "effect"

declare module "effect/Schema" {
  namespace Annotations {
    interface Annotations {
      /** Completes "The `param` field must be …". */
      readonly rule?: string | undefined
    }
  }
}

export interface Violation {
  readonly kind: "unknown" | "missing" | "invalid"
  /** Keys and indexes from the root; empty for the root itself. */
  readonly path: ReadonlyArray<PropertyKey>
  /** Completes "The `param` field must be …". */
  readonly rule: string
}

/** Returns the violations of an issue, in the order of the schema's fields, one per path. */
export const violations = (issue: SchemaIssue.Issue): ReadonlyArray<Violation> => {
  const found = new Map<string, Violation>()
  collect(issue, [], undefined, (violation) => {
    const key = JSON.stringify(violation.path.map(String))
    if (!found.has(key)) found.set(key, violation)
  })
  return [...found.values()]
}

/** Returns the rule that a schema states, else one for its type. */
export const ruleOf = (schema: { readonly ast: SchemaAST.AST }): string =>
  statedRule(schema.ast) ?? typeRule(schema.ast)

/** Reports the violations of an issue. `rule`, of the enclosing schema at the same path, precedes its parts' rules. */
const collect = (
  issue: SchemaIssue.Issue,
  path: ReadonlyArray<PropertyKey>,
  rule: string | undefined,
  report: (violation: Violation) => void
): void => {
  switch (issue._tag) {
    case "Pointer":
      return collect(issue.issue, [...path, ...issue.path], undefined, report)
    case "MissingKey":
      return report({ kind: "missing", path, rule: "present" })
    case "UnexpectedKey":
      return report({ kind: "unknown", path, rule: "absent" })
    case "Composite":
      return issue.issues.forEach((inner) => collect(inner, path, rule ?? statedRule(issue.ast), report))
    case "AnyOf": {
      const deeper = issue.issues.filter(pointsDeeper)
      const own = rule ?? ruleOf(issue)
      if (deeper.length === 0) return report({ kind: "invalid", path, rule: own })
      return deeper.forEach((inner) => collect(inner, path, own, report))
    }
    case "Filter":
      return collect(issue.issue, path, rule ?? issue.filter.annotations?.rule, report)
    case "Encoding":
      return collect(issue.issue, path, rule ?? statedRule(issue.ast), report)
    case "InvalidType":
    case "OneOf":
      return report({ kind: "invalid", path, rule: rule ?? ruleOf(issue) })
    default:
      return report({ kind: "invalid", path, rule: rule ?? issue.annotations?.message ?? "valid" })
  }
}

const pointsDeeper = (issue: SchemaIssue.Issue): boolean => {
  if (issue._tag === "Pointer") return true
  if ("issues" in issue) return issue.issues.some(pointsDeeper)
  return "issue" in issue && pointsDeeper(issue.issue)
}

/** Returns the `rule` annotation, which lies on the last check of a schema that has checks. */
const statedRule = (ast: SchemaAST.AST): string | undefined =>
  ast.checks?.at(-1)?.annotations?.rule ?? ast.annotations?.rule

const typeRule = (ast: SchemaAST.AST): string => {
  if (SchemaAST.isString(ast)) return "a string"
  if (SchemaAST.isNumber(ast)) return "a number"
  if (SchemaAST.isBoolean(ast)) return "a boolean"
  if (SchemaAST.isArrays(ast)) return "an array"
  if (SchemaAST.isObjects(ast)) return "an object"
  if (SchemaAST.isLiteral(ast)) return `\`${String(ast.literal)}\``
  if (SchemaAST.isUnion(ast)) return unionRule(ast.types)
  return "valid"
}

/** Returns the rule of a union; it omits null. */
const unionRule = (types: ReadonlyArray<SchemaAST.AST>): string => {
  const rules = types.filter((type) => !SchemaAST.isNull(type)).map((ast) => ruleOf({ ast }))
  const literals = types.every((type) => SchemaAST.isLiteral(type) || SchemaAST.isNull(type))
  return literals && rules.length > 1 ? `one of ${rules.join(", ")}` : rules.join(" or ")
}

/**
 * A rule for oxlint: every regular expression takes linear time, whatever the text.
 *
 * `scslre` finds quantifiers that exchange characters, such as `\s*.*?\s*$`, and quantifiers that run to the same end
 * from each character of a run, such as `\s*-`. It considers texts that repeat one character. The rest of this file
 * finds patterns that can begin again within their own match, such as `"(?:[^"\\]|\\.)*"` in `\"\"\"…`: each of the
 * quotes may begin a string without an end.
 */
import {
  CharSet,
  type Concatenation,
  type Element,
  isDisjointWith,
  JS,
  NFA,
  type NoParent,
  type Quantifier
} from "refa"
import { analyse } from "scslre"

/** Describes slow parts of a regular expression, one per line. */
export const slownessOf = (source: string, flags: string): ReadonlyArray<string> => {
  const { reports } = analyse({ source, flags })
  return [
    ...reports.map((report) =>
      report.type === "Trade"
        ? `${report.startQuant.raw} exchanges characters with ${report.endQuant.raw}`
        : report.type === "Self"
          ? `${report.quant.raw} exchanges characters with itself, in ${report.parentQuant.raw}`
          : `${report.quant.raw} runs again from each ${report.character.pick}`
    ),
    ...(flags.includes("y") ? [] : restartsOf(source, flags))
  ]
}

type Part = NoParent<Element>

const concatenation = (elements: ReadonlyArray<Part>): NoParent<Concatenation> =>
  ({ type: "Concatenation", elements }) as NoParent<Concatenation>

/** Returns whether the match can fail at this part for some continuation of the text. */
const mayFail = (part: Part): boolean =>
  part.type === "Quantifier"
    ? part.min > 0
    : part.type === "Alternation"
      ? part.alternatives.every(({ elements }) => elements.some(mayFail))
      : true

const isAssertion = (part: Part): boolean =>
  part.type === "Assertion" || ("alternatives" in part && part.alternatives.some((a) => a.elements.some(isAssertion)))

const restartsOf = (source: string, flags: string): ReadonlyArray<string> => {
  const { expression, maxCharacter } = JS.Parser.fromLiteral({ source, flags }).parse({ backreferences: "unknown" })
  const anything = {
    type: "Quantifier",
    alternatives: [concatenation([{ type: "CharacterClass", characters: CharSet.all(maxCharacter) } as Part])],
    min: 0,
    max: Infinity,
    lazy: false
  } as Part
  const automatonOf = (...parts: ReadonlyArray<Part>) =>
    NFA.fromRegex(concatenation(parts), { maxCharacter }, { unknowns: "disable" })

  /**
   * Returns whether a part within the quantifier matches the pattern's beginning and continues as the quantifier does.
   */
  const beginsAgain = (before: ReadonlyArray<Part>, quantifier: NoParent<Quantifier>): boolean => {
    const repeated = { ...quantifier, min: 0 } as Part
    return !isDisjointWith(automatonOf(repeated), automatonOf(anything, ...before, repeated))
  }

  const visit = (parts: ReadonlyArray<Part>, before: ReadonlyArray<Part>, failsBehind: boolean): Array<string> =>
    parts.flatMap((part, i) => {
      const start = [...before, ...parts.slice(0, i)]
      // A part that an assertion ties to one place cannot begin again.
      if (start.some(isAssertion)) return []
      const fails = failsBehind || parts.slice(i + 1).some(mayFail)
      if (part.type === "Alternation") return part.alternatives.flatMap((one) => visit(one.elements, start, fails))
      if (part.type !== "Quantifier" || part.max !== Infinity || !fails || !start.some(mayFail)) return []
      return beginsAgain(start, part) ? ["A quantifier begins again in the middle of what it has read"] : []
    })
  return expression.alternatives.flatMap(({ elements }) => visit(elements, [], false))
}

interface Reporter {
  readonly report: (problem: { readonly node: unknown; readonly message: string }) => void
}

interface Literal {
  readonly regex?: { readonly pattern: string; readonly flags: string }
}

/** `new RegExp("…")` with a literal text. */
interface Construction {
  readonly callee: { readonly name?: string }
  readonly arguments: ReadonlyArray<{ readonly value?: unknown }>
}

export const create = ({ report }: Reporter) => {
  const check = (node: unknown, source: string, flags: string) => {
    for (const message of slownessOf(source, flags)) report({ node, message: `Quadratic time: ${message}.` })
  }
  const construction = (node: Construction) => {
    const [source, flags = { value: "" }] = node.arguments
    if (node.callee.name !== "RegExp" || typeof source?.value !== "string") return
    check(node, source.value, String(flags.value))
  }
  return {
    Literal: (node: Literal) => node.regex && check(node, node.regex.pattern, node.regex.flags),
    NewExpression: construction,
    CallExpression: construction
  }
}

/** The reference of a resource as Markdown. */
import type { Field } from "./Fields.ts"
import type { Operation, Resource } from "./Reference.ts"

const FENCES = { curl: "sh", typescript: "ts", python: "python", php: "php" }

export const resourceMarkdown = ({ example, fields, incoming, operations, tag }: Resource, base: string): string =>
  [
    `# ${tag.title}`,
    tag.description,
    ...(fields.length === 0 ? [] : ["## The object", list(fields), fenced(example!, "json")]),
    ...operations.flatMap((operation) => operationMarkdown(operation, base)),
    ...incoming.flatMap(({ answers, description, headers, summary }) => [
      `## ${summary}`,
      description,
      `The body is an [event](${base}/docs/api/events.md).`,
      "### Headers",
      list(headers),
      "### Your answer",
      answers.map(({ description: meaning, status }) => `- \`${status}\`: ${meaning}`).join("\n")
    ])
  ].join("\n\n") + "\n"

const operationMarkdown = (operation: Operation, base: string): ReadonlyArray<string> => {
  const { description, errors, events, example, method, parameters, path, result, samples, summary } = operation
  const name =
    result.resource === undefined
      ? "an object"
      : `[${result.resource.title}](${base}/docs/api/${result.resource.name}.md)`
  return [
    `## ${summary}`,
    `\`${method} ${path}\``,
    description,
    ...parameters.flatMap(({ fields, title }) => [`### ${title}`, list(fields, true)]),
    "### Returns",
    result.isList ? `A page of ${name}.` : `${name.charAt(0).toUpperCase()}${name.slice(1)}.`,
    ...(result.fields.length === 0 ? [] : [list(result.fields)]),
    ...(errors.length === 0 ? [] : [`Errors: ${links(errors, base)}.`]),
    ...(events.length === 0 ? [] : [`Events: ${events.map((type) => `\`${type}\``).join(", ")}.`]),
    ...samples.map(({ code, language }) => fenced(code, FENCES[language])),
    fenced(example, "json")
  ]
}

const links = (codes: ReadonlyArray<string>, base: string): string =>
  codes.map((code) => `[\`${code}\`](${base}/docs/errors/${code}.md)`).join(", ")

const fenced = (code: string, language: string): string => `\`\`\`${language}\n${code}\n\`\`\``

const list = (fields: ReadonlyArray<Field>, marksRequired = false, depth = 0): string =>
  fields
    .map(({ children, description, isNullable, isRequired, name, type, values }) => {
      const facts = [
        isNullable && !marksRequired ? `${type}, or null` : type,
        ...(values.length > 1 ? [values.map((value) => `\`${value}\``).join(" ")] : []),
        ...(marksRequired && isRequired ? ["required"] : [])
      ]
      const line = `${"  ".repeat(depth)}- \`${name}\` (${facts.join("; ")})${description === "" ? "" : `: ${description}`}`
      return children.length === 0 ? line : `${line}\n${list(children, marksRequired, depth + 1)}`
    })
    .join("\n")

/**
 * A rule for oxlint: a comment begins with a verb in the third person or with a noun, so that it names its subject. A
 * question word, a pronoun or a quantity as the first word of a sentence hides the subject; some other words name an
 * event or an actor that the reader cannot know.
 */

/** Words with which no sentence of a comment may begin. */
const WORDS = "What|Who|Whoever|Whose|Whom|Of|So many|So much|So long|Those|One that|One who|Nobody|Somebody|Whatever"
const BEGINNINGS = new RegExp(`^(?:${WORDS})(?![\\w-])`, "u")

/** Words that stand for an event or an actor, which the comment should name instead. */
const ANYWHERE = /\b(?:meanwhile|by now|any more|whoever|somebody|nobody)\b/iu

const sentencesOf = (text: string): ReadonlyArray<string> =>
  text.split(/\n\s*\n/u).flatMap((paragraph) =>
    paragraph
      .replaceAll(/\s+/gu, " ")
      .trim()
      .split(/(?<=[.!?:] )/u)
  )

/** Returns the problems of a comment without its markers, one line each. */
export const problemsOf = (comment: string): ReadonlyArray<string> => {
  const beginnings = sentencesOf(comment).flatMap((sentence) => BEGINNINGS.exec(sentence)?.[0] ?? [])
  const vague = ANYWHERE.exec(comment)?.[0]
  return [
    ...beginnings.map((word) => `A sentence begins with "${word}": begin with a noun or a verb.`),
    ...(vague === undefined ? [] : [`"${vague}" leaves open who or when: name the actor or the event.`])
  ]
}

interface Comment {
  readonly type: "Line" | "Block" | "Shebang"
  readonly value: string
  readonly loc: { readonly start: { readonly line: number }; readonly end: { readonly line: number } }
}

/** Comments without their markers. Line comments on consecutive lines are one comment. */
const textsOf = (
  comments: ReadonlyArray<Comment>
): ReadonlyArray<{ readonly node: Comment; readonly text: string }> => {
  const texts: Array<{ readonly node: Comment; text: string; end: number }> = []
  for (const node of comments) {
    const last = texts.at(-1)
    const isNext = node.type === "Line" && last?.node.type === "Line" && last.end + 1 === node.loc.start.line
    if (isNext) {
      last.text += `\n${node.value}`
      last.end = node.loc.end.line
    } else {
      const text = node.type === "Line" ? node.value : node.value.replaceAll(/^\s*\*+ ?/gmu, "")
      texts.push({ node, text, end: node.loc.end.line })
    }
  }
  return texts
}

interface Context {
  readonly sourceCode: { readonly getAllComments: () => ReadonlyArray<Comment> }
  readonly report: (problem: { readonly node: unknown; readonly message: string }) => void
}

export const create = ({ report, sourceCode }: Context) => ({
  Program: () => {
    for (const { node, text } of textsOf(sourceCode.getAllComments())) {
      for (const message of problemsOf(text)) report({ node, message })
    }
  }
})

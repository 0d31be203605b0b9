/**
 * Reads secrets of processors: from standard input, or from a file that no other user can read. Other users of the
 * machine could read them on the command line.
 */
import { Effect, Redacted, Stdio, Stream } from "effect"
import * as fs from "node:fs"
import { WrongArguments } from "./WrongArguments.ts"

const BYTES_MAX = 65_536
const OTHERS = 0o077

/** Reads the text of a file, or of standard input for `-`. `flag` names the flag in messages. */
export const readSecret = Effect.fnUntraced(function* (flag: string, source: string) {
  const text = source === "-" ? yield* inputText : yield* fileText(flag, source)
  return Redacted.make(text.trim(), { label: flag })
})

const inputText = Effect.gen(function* () {
  const { stdin } = yield* Stdio.Stdio
  const text = yield* Stream.mkString(stdin.pipe(Stream.decodeText))
  // An open standard input would keep the command running until its terminal or pipe closes.
  process.stdin.destroy()
  return text
})

const fileText = (flag: string, path: string): Effect.Effect<string, WrongArguments> =>
  Effect.suspend(() => {
    try {
      const file = fs.openSync(path, fs.constants.O_RDONLY)
      try {
        const { mode, size } = fs.fstatSync(file)
        if ((mode & OTHERS) !== 0) {
          return wrong(`other users can read the file of ${flag}: run chmod 600 on it, or pipe it to ${flag} -`)
        }
        if (size > BYTES_MAX) return wrong(`the file of ${flag} is longer than 64 KiB`)
        return Effect.succeed(fs.readFileSync(file, "utf8"))
      } finally {
        fs.closeSync(file)
      }
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error"
      return wrong(`the file of ${flag} cannot be read (${code})`)
    }
  })

const wrong = (message: string) => Effect.fail(new WrongArguments({ message }))

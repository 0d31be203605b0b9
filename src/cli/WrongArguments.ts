import { Data } from "effect"

/** The command cannot run with these arguments. */
export class WrongArguments extends Data.TaggedError("WrongArguments")<{ readonly message: string }> {}

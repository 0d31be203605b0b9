/** The embedded Postgres or its data folder cannot be used. The message is one line for a person, with the reason. */
import { Effect, Schema } from "effect"

/**
 * - `NoBinaries`: no Postgres is packaged for this platform, or it cannot be run here.
 * - `FolderUnusable`: the data folder is not a folder, cannot be written, is full, or belongs to another user.
 * - `FolderInUse`: another live Till holds it.
 * - `IncompatibleVersion`: another version of Postgres or of Till wrote it.
 * - `StartFailed`: Postgres did not start, or does not answer.
 */
export class EmbeddedPostgresError extends Schema.TaggedError<EmbeddedPostgresError>()("EmbeddedPostgresError", {
  reason: Schema.Literals(["NoBinaries", "FolderUnusable", "FolderInUse", "IncompatibleVersion", "StartFailed"]),
  message: Schema.String
}) {}

export const embeddedPostgresError = (
  reason: EmbeddedPostgresError["reason"],
  message: string
): EmbeddedPostgresError => new EmbeddedPostgresError({ reason, message: oneLine(message) })

const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim()

const errnoTexts: Record<string, string> = {
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EROFS: "the file system is read-only",
  ENOSPC: "no space left on the device",
  EDQUOT: "the disk quota is used up",
  ENOTDIR: "a part of the path is not a folder",
  EEXIST: "it exists and is not a folder",
  ELOOP: "a symbolic link is in its place",
  ENXIO: "something that is no file is in its place",
  ENAMETOOLONG: "the path is too long",
  EMFILE: "too many open files"
}

/** Describes an error: the system's error code in words, otherwise the error's message. */
export const describeCause = (cause: unknown): string => {
  const code = errorCode(cause)
  return oneLine((code && errnoTexts[code]) || (cause instanceof Error ? cause.message : String(cause)))
}

export const errorCode = (cause: unknown): string | undefined =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : undefined

/** Runs work on files; a failure becomes `FolderUnusable` with `Cannot <doing>: <description>`. */
export const attempt = <A>(doing: string, run: () => A): Effect.Effect<A, EmbeddedPostgresError> =>
  Effect.try({
    try: run,
    catch: (cause) => embeddedPostgresError("FolderUnusable", `Cannot ${doing}: ${describeCause(cause)}.`)
  })

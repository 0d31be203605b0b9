/** The part of `node:util/types` that the verification of webhooks uses, also for buffers of other realms. */

const tagOf = (value: unknown): string => Object.prototype.toString.call(value)

export const isSharedArrayBuffer = (value: unknown): value is SharedArrayBuffer =>
  tagOf(value) === "[object SharedArrayBuffer]"

export const isAnyArrayBuffer = (value: unknown): value is ArrayBufferLike =>
  tagOf(value) === "[object ArrayBuffer]" || isSharedArrayBuffer(value)

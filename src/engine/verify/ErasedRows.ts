/**
 * The rows of an account's journal whose texts were replaced, compared with the records that name them: nothing but a
 * noted erasure may replace a text (`Erasures.ts`).
 *
 * An erasure that has not come to its end leaves rows that are noted and not replaced yet, or replaced by an earlier
 * erasure only. Both are intact.
 */
import type { AccountId } from "../log/Document.ts"
import { type Erased, JournalCorrupt, type JournalRow } from "../log/Record.ts"
import { type ErasureKey, signatureOf } from "../log/Erased.ts"

export class ErasedRows {
  readonly #account: AccountId
  readonly #key: ErasureKey | null
  /** Digests by version, of the replaced rows that no record read so far has noted. */
  readonly #found = new Map<number, string>()
  #size = 0

  /** Without a key, signatures are not checked. */
  constructor(account: AccountId, key: ErasureKey | null) {
    this.#account = account
    this.#key = key
  }

  get size(): number {
    return this.#size
  }

  /** Adds the next row, and the erasure that its record notes. Throws `JournalCorrupt` if that is not signed. */
  add({ erased: digest, version }: JournalRow, erased: Erased | undefined): void {
    const { rows, signature } = erased ?? NONE
    if (erased !== undefined && this.#key !== null && signature !== signatureOf(this.#key, this.#account, rows)) {
      throw this.#corrupt(version, "notes an erasure that was not signed with the secret in TILL_DATA_DIR")
    }
    for (const [version, digest] of rows) if (this.#found.get(version) === digest) this.#found.delete(version)
    if (digest === undefined) return
    this.#found.set(version, digest)
    this.#size++
  }

  /** Throws `JournalCorrupt` if a row was replaced without a note. */
  requireNoted(): void {
    for (const version of this.#found.keys()) {
      throw this.#corrupt(version, "was replaced, and no later record notes an erasure of it")
    }
  }

  #corrupt(version: number, problem: string): JournalCorrupt {
    return new JournalCorrupt({ account: this.#account, version, problem })
  }
}

const NONE: Erased = { rows: [], signature: "" }

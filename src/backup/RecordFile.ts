/**
 * A file of a backup: records of any accounts, each account's in order, compressed with Zstandard. A line is a record:
 * `<account> <version> <hash> <record>`, with the record's bytes as in the journal. They are JSON without a line feed,
 * so `zstd -dc FILE | cut -d ' ' -f 4-` shows them. If a person's data was erased from the record, its row's digest
 * follows the hash: `<hash>+<digest>`.
 *
 * A file gets its name when it is complete and on disk, and is never changed again.
 */
import { createHash, type Hash } from "node:crypto"
import { once } from "node:events"
import * as fs from "node:fs"
import * as Path from "node:path"
import * as stream from "node:stream"
import * as zlib from "node:zlib"
import type { JournalRow } from "../engine/log/Record.ts"
import { syncFolder } from "../postgres/embedded/DataFolder.ts"
import { openToRead } from "../postgres/embedded/OwnFiles.ts"
import { BackupFailed } from "./BackupFailed.ts"
import type { RecordFile } from "./Manifest.ts"

const LINE_FEED = 0x0a
const SPACE = 0x20

const PARTIAL = ".part"

export const nameOf = (number: number): string => `${String(number).padStart(8, "0")}.zst`

/** Returns whether a name is that of a complete or incomplete file of a backup. */
export const isNameOfFile = (name: string): boolean => /^\d{8}\.zst(\.part)?$/.test(name)

/** At this level, two cores compress about 100,000 records a second, to a seventh of their size. */
const compression = { params: { [zlib.constants.ZSTD_c_compressionLevel]: 3 } }

export class Writer {
  readonly #folder: string
  readonly #name: string
  readonly #zstd = zlib.createZstdCompress(compression)
  readonly #hash: Hash = createHash("sha256")
  readonly #ended: Promise<void>
  #bytes = 0
  #records = 0
  size = 0

  constructor(folder: string, name: string) {
    this.#folder = folder
    this.#name = name
    const fd = fs.openSync(this.#partial, "wx", 0o600)
    const file = fs.createWriteStream(this.#partial, { fd, flush: true })
    this.#ended = stream.promises.pipeline(this.#zstd, (source: AsyncIterable<Buffer>) => this.#weighed(source), file)
    // The next `write` or `finish` reports a failure.
    this.#ended.catch(() => {})
  }

  get #partial(): string {
    return Path.join(this.#folder, `${this.#name}${PARTIAL}`)
  }

  async *#weighed(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      this.#hash.update(chunk)
      this.#bytes += chunk.length
      yield chunk
    }
  }

  async write(rows: ReadonlyArray<JournalRow>): Promise<void> {
    const chunk = Buffer.concat(
      rows.flatMap(({ account, bytes, erased, hash, version }) => [
        Buffer.from(`${account} ${version} ${hash}${erased === undefined ? "" : `+${erased}`} `),
        bytes,
        Buffer.of(LINE_FEED)
      ])
    )
    this.size += chunk.length
    this.#records += rows.length
    if (!this.#zstd.write(chunk)) await Promise.race([once(this.#zstd, "drain"), this.#ended])
  }

  async finish(): Promise<RecordFile> {
    this.#zstd.end()
    await this.#ended
    fs.renameSync(this.#partial, Path.join(this.#folder, this.#name))
    syncFolder(this.#folder)
    return { name: this.#name, records: this.#records, bytes: this.#bytes, sha256: this.#hash.digest("hex") }
  }

  async abandon(): Promise<void> {
    this.#zstd.destroy()
    await this.#ended.catch(() => {})
    fs.rmSync(this.#partial, { force: true })
  }
}

/** Fails with `BackupFailed` if a file differs from its manifest. */
export const checkFile = async (folder: string, { bytes, name, sha256 }: RecordFile): Promise<void> => {
  const file = Path.join(folder, name)
  if (!fs.existsSync(file)) throw new BackupFailed({ message: `${file} is missing.` })
  const digest = createHash("sha256")
  let size = 0
  for await (const chunk of streamOf(file)) {
    digest.update(chunk)
    size += chunk.length
  }
  if (size !== bytes || digest.digest("hex") !== sha256) {
    throw new BackupFailed({ message: `${file} is damaged: its SHA-256 is not the one in the manifest.` })
  }
}

const streamOf = (file: string): AsyncIterable<Buffer> & NodeJS.ReadableStream =>
  fs.createReadStream(file, { fd: openToRead(file) })

/** The limits of a page: rows, and bytes after which no further row is added. */
const ROWS_MAX = 1000
const ROWS_BYTES_MAX = 8 * 1_048_576
const CHUNK_BYTES = 1_048_576

/** Reads a file's rows in order, in pages. Fails with `BackupFailed` for a damaged file. */
export async function* rowsIn(folder: string, { name }: Pick<RecordFile, "name">): AsyncGenerator<Array<JournalRow>> {
  const file = Path.join(folder, name)
  let rows: Array<JournalRow> = []
  let weight = 0
  for await (const line of linesIn(file)) {
    const row = rowOf(line)
    if (row === undefined) throw new BackupFailed({ message: `${file} is damaged: a line of it is no record.` })
    rows.push(row)
    weight += line.length
    if (rows.length < ROWS_MAX && weight < ROWS_BYTES_MAX) continue
    yield rows
    rows = []
    weight = 0
  }
  if (rows.length > 0) yield rows
}

async function* linesIn(file: string): AsyncGenerator<Buffer> {
  // The stream that is read reports failures.
  const decompressed = stream.pipeline(streamOf(file), zlib.createZstdDecompress({ chunkSize: CHUNK_BYTES }), () => {})
  // The parts of a line whose end is not read yet.
  let parts: Array<Buffer> = []
  for await (const chunk of decompressed as AsyncIterable<Buffer>) {
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      yield Buffer.concat([...parts, chunk.subarray(start, end)])
      parts = []
      start = end + 1
    }
    if (start < chunk.length) parts.push(chunk.subarray(start))
  }
  if (parts.length > 0) throw new BackupFailed({ message: `${file} is damaged: it ends within a record.` })
}

const rowOf = (line: Buffer): JournalRow | undefined => {
  const first = line.indexOf(SPACE)
  const second = line.indexOf(SPACE, first + 1)
  const third = line.indexOf(SPACE, second + 1)
  if (first < 1 || second === -1 || third === -1) return undefined
  const version = Number(line.toString("latin1", first + 1, second))
  if (!Number.isSafeInteger(version)) return undefined
  const [hash, erased] = line.toString("latin1", second + 1, third).split("+", 2)
  return {
    account: line.toString("utf8", 0, first),
    version,
    hash: hash!,
    ...(erased !== undefined && { erased }),
    bytes: line.subarray(third + 1)
  }
}

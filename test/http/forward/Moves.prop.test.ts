/**
 * Accounts move between processes while clients send requests to any process. A client gets the right answer, or a 503
 * with Retry-After, and nothing else: no other status, nothing lost, nothing done twice.
 */
import "effect/schema/SchemaJITCompiler/enable"
import { assert, describe, it } from "@effect/vitest"
import { partitionOf } from "../../../src/engine/process/Placement.ts"
import type { Keys } from "../../support/fixtures/Merchants.ts"
import { Random, runSeed } from "../../support/Random.ts"
import { runs } from "../../support/Runs.ts"
import { basic } from "../../support/HttpExchange.ts"
import { type MemoryFleet, start } from "../../support/MemoryFleet.ts"

const MILLIS = runs(Number(process.env["TILL_MOVES_MILLIS"] ?? 3000))
/** Enough for slow machines. */
const MOVES_MIN = 15
const ANSWERS_MIN = 100
const CLIENTS = 12

interface Answer {
  readonly status: number
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into whatever came back
  readonly body: any
  readonly replayed: boolean
}

/** Moves of partitions, for clients to see which refusals a move explains. */
class Moves {
  readonly #runners: MemoryFleet
  readonly #steps = new Map<number, number>()
  #moving: number | undefined
  count = 0

  constructor(runners: MemoryFleet) {
    this.#runners = runners
  }

  async move(account: string, to: number): Promise<void> {
    const partition = partitionOf(account)
    this.#moving = partition
    this.#step(partition)
    await this.#runners.move(account, to)
    this.#moving = undefined
    this.#step(partition)
    this.count++
  }

  /** Begins to watch the account of a client and that of its keys; true if one of them has moved until the call. */
  watch(account: string): () => boolean {
    const partitions = [partitionOf(account), partitionOf("till")]
    const stepsOf = () => partitions.map((partition) => this.#steps.get(partition) ?? 0).join()
    const isMoving = partitions.some((partition) => partition === this.#moving)
    const before = stepsOf()
    return () => isMoving || stepsOf() !== before
  }

  #step(partition: number): void {
    this.#steps.set(partition, (this.#steps.get(partition) ?? 0) + 1)
  }
}

/** A client of one merchant: what it was told is what it is told from then on, whomever it asks. */
class Client {
  readonly #runners: MemoryFleet
  readonly #key: string
  readonly #random: Random
  readonly #name: string
  /** Acknowledged customers; null for a deleted one. */
  readonly #known = new Map<string, { readonly name: string } | null>()
  readonly #account: string
  readonly #moves: Moves
  #count = 0
  /** Refusals during which neither the client's account nor that of its keys has moved. */
  refused = 0
  answered = 0

  constructor(runners: MemoryFleet, moves: Moves, keys: Keys, random: Random, name: string) {
    this.#runners = runners
    this.#moves = moves
    this.#account = `${keys.merchantId}:test`
    this.#key = keys.secretTest
    this.#random = random
    this.#name = name
  }

  async step(): Promise<void> {
    const choice = this.#random.next()
    const [id, known] = this.#known.size === 0 ? [] : this.#random.pick([...this.#known])
    if (id === undefined || choice < 0.4) return this.#create()
    if (choice < 0.75) return this.#read(id, known!)
    if (choice < 0.95) return known === null ? this.#read(id, null) : this.#rename(id)
    if (known !== null) await this.#delete(id)
  }

  async #create(): Promise<void> {
    const name = `${this.#name} ${++this.#count}`
    const { body } = await this.#until("POST", "/v1/customers", { name }, (answer) => answer.status === 200)
    assert.strictEqual(body.name, name)
    assert.isFalse(this.#known.has(body.id), "an id came twice")
    this.#known.set(body.id, { name })
  }

  async #rename(id: string): Promise<void> {
    const name = `${this.#name} ${++this.#count}`
    await this.#until("POST", `/v1/customers/${id}`, { name }, (answer) => answer.status === 200)
    this.#known.set(id, { name })
  }

  async #read(id: string, known: { readonly name: string } | null): Promise<void> {
    const answer = await this.#until("GET", `/v1/customers/${id}`, undefined, (answer) => answer.status === 200)
    assert.deepStrictEqual(
      [answer.body.name, answer.body.deleted],
      known === null ? [undefined, true] : [known.name, undefined]
    )
  }

  /** A 503 leaves open whether the deletion happened; then the customer is gone already. */
  async #delete(id: string): Promise<void> {
    let wasRefused = false
    await this.#until("DELETE", `/v1/customers/${id}`, undefined, (answer) => {
      wasRefused ||= answer.status === 503
      return answer.status === 200 || (wasRefused && answer.status === 404)
    })
    this.#known.set(id, null)
  }

  /** Sends a request to any runner until it is not refused, with the same key, so that it is carried out once. */
  async #until(
    method: string,
    path: string,
    body: object | undefined,
    isRight: (answer: Answer) => boolean
  ): Promise<Answer> {
    const idempotencyKey = method === "POST" ? `${this.#name}-${++this.#count}` : undefined
    for (;;) {
      const hasMoved = this.#moves.watch(this.#account)
      const answer = await this.#send(method, path, body, idempotencyKey)
      const right = isRight(answer)
      if (answer.status === 503) {
        if (!hasMoved()) this.refused++
        continue
      }
      assert.isTrue(right, `TILL_SEED=${runSeed}: ${method} ${path} ${JSON.stringify(answer)}`)
      this.answered++
      return answer
    }
  }

  async #send(method: string, path: string, body: object | undefined, key: string | undefined): Promise<Answer> {
    const { port } = this.#random.pick(this.#runners.all)
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: {
        authorization: basic(this.#key),
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(key !== undefined && { "idempotency-key": key })
      },
      ...(body !== undefined && { body: JSON.stringify(body) })
    })
    if (response.status === 503) assert.isNotNull(response.headers.get("retry-after"))
    return {
      status: response.status,
      body: await response.json(),
      replayed: response.headers.has("idempotent-replayed")
    }
  }

  /** A list shows the acknowledged objects. */
  async check(): Promise<void> {
    for (const [id, known] of this.#known) await this.#read(id, known)
  }
}

describe("accounts that move", () => {
  it(
    `show their clients the right answer, or a 503, for ${MILLIS} ms`,
    async () => {
      const random = new Random(runSeed)
      const runners = await start(3)
      try {
        const moves = new Moves(runners)
        const merchants = [await runners.merchant(), await runners.merchant(), await runners.merchant()]
        const clients = Array.from(
          { length: CLIENTS },
          (_, index) =>
            new Client(runners, moves, merchants[index % 3]!, new Random(random.below(2 ** 31)), `c${index}`)
        )
        const end = performance.now() + MILLIS
        const answered = () => clients.reduce((sum, client) => sum + client.answered, 0)
        const goesOn = () => performance.now() < end || moves.count < MOVES_MIN || answered() < ANSWERS_MIN
        const moving = (async () => {
          while (goesOn()) {
            const { merchantId } = random.pick(merchants)
            // The installation's account moves, too, which all processes read.
            const account = random.chance(0.2) ? "till" : `${merchantId}:test`
            await moves.move(account, random.below(3))
            await new Promise((resolve) => setTimeout(resolve, random.below(40)))
          }
        })()
        await Promise.all([
          moving,
          ...clients.map(async (client) => {
            while (goesOn()) await client.step()
          })
        ])
        for (const client of clients) await client.check()
        const refused = clients.reduce((sum, client) => sum + client.refused, 0)
        // All that a move costs is waiting; a request that no move concerns is refused by a busy machine at most.
        assert.isBelow(refused, answered() / 10)
      } finally {
        await runners.close()
      }
    },
    MILLIS + 600_000
  )
})

/**
 * When a partition may be served whose lock was got.
 *
 * The lock says that nobody else has it, and not that nobody answers for the partition any more: whoever had it before
 * goes by what was confirmed up to `CONFIRMED_MILLIS` ago (`Placement.ts`). It gives the partition up, before its lock,
 * by its row in the table `partitions`; and when it finds that its session is gone, at once by all of its rows. So
 * where the row still names another runner, that one has lost its lock without giving it up, and
 *
 * - if nobody listens at its address, it is gone, and the partition is taken at once, as it is after a kill;
 * - if it answers, it is about to find out: the partition is taken when its row says so. It may be cut off from
 *   Postgres, and then its row never says so: it is taken as soon as what it was confirmed is over. That is so
 *   `CONFIRMED_MILLIS` after its last sign of life was first seen here. It gives one in the database, over the session
 *   of its locks, whenever it has something confirmed; one that is newer is seen by the look after its lock was got;
 * - if it does not answer, or another program listens there, it may be frozen or cut off, and the time that the
 *   database says of that sign is believed.
 *
 * Postgres ends a session after six seconds without any sign, so nobody waits for a frozen runner once more.
 *
 * In any case the partition is taken `CONFIRMED_MILLIS` after its lock: nothing can have been confirmed since.
 */
import { Effect } from "effect"
import type { Partition } from "../engine/process/Placement.ts"
import { CONFIRMED_MILLIS } from "../engine/process/Placement.ts"
import type { Health } from "./Health.ts"
import type { PartitionTable } from "./PartitionTable.ts"

/** The table and the other runner are asked again after so long, if nobody says anything. */
const AGAIN_MILLIS = 100

/** Waits until no other runner can answer for a partition, whose lock this one has. */
export const vacated = (
  { look, news, ownerOf }: Pick<PartitionTable, "look" | "news" | "ownerOf">,
  { presenceOf }: Pick<Health, "presenceOf">,
  partition: Partition
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const until = performance.now() + CONFIRMED_MILLIS
    while (performance.now() < until) {
      yield* Effect.timeoutOption(look, until - performance.now())
      const owner = ownerOf(partition)
      if (owner === null) return
      if (owner !== undefined) {
        const presence = yield* presenceOf(owner.url)
        const overAt = presence === "unknown" ? Math.min(owner.overAt, owner.surelyOverAt) : owner.surelyOverAt
        if (presence === "refused" || performance.now() >= overAt) return
      }
      yield* Effect.timeoutOption(news, AGAIN_MILLIS)
    }
  })

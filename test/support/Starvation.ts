/** Whether the machine is too busy for a service to keep its own time limits. */
import { availableParallelism, loadavg } from "node:os"

const LOAD_PER_CORE_MAX = 4

/**
 * Returns true if so many processes wait for each core that a 503 is the right answer: a service may confirm its
 * ownership of accounts too late, or wait too long for its database.
 */
export const isStarved = (): boolean => loadavg()[0]! / availableParallelism() > LOAD_PER_CORE_MAX

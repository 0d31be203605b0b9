/**
 * Answers go out in bursts: those that get ready within a turn of the event loop are written at the turn's end, one
 * right after the other. A write is mostly the price of waking up whoever reads, and one that comes while they are
 * still awake costs little.
 */

/** Calls what it is given at the end of the turn, in order. */
export type AtTurnsEnd = (write: () => void) => void

export const makeWriteBatch = (): AtTurnsEnd => {
  let ready: Array<() => void> = []
  const burst = () => {
    const writes = ready
    ready = []
    for (const write of writes) write()
  }
  return (write) => {
    if (ready.push(write) === 1) setImmediate(burst)
  }
}

/**
 * Writes answers in batches: those that are ready within a turn of the event loop are written at the turn's end. Most
 * of a write's cost is waking the reader, and a write that follows while the reader is awake costs little.
 */

/** Calls the given functions at the end of the turn, in order. */
export type AtTurnsEnd = (write: () => void) => void

export const makeWriteBatch = (): AtTurnsEnd => {
  let ready: Array<() => void> = []
  const writeAll = () => {
    const writes = ready
    ready = []
    for (const write of writes) write()
  }
  return (write) => {
    if (ready.push(write) === 1) setImmediate(writeAll)
  }
}

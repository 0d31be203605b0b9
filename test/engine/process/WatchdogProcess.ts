/**
 * A watched process: it runs the steps of its JSON argument and then writes `done`. A step blocks the event loop for a
 * number of milliseconds (`hold`), notes a request (`note`), or lets the loop turn (`turn`).
 */
import { noteRequest, watchEventLoop } from "../../../src/engine/process/Watchdog.ts"

type Step = { readonly hold: number } | { readonly note: string } | { readonly turn: number }

const [options, steps] = process.argv.slice(2).map((text) => JSON.parse(text)) as [
  Parameters<typeof watchEventLoop>[0],
  ReadonlyArray<Step>
]

watchEventLoop(options, (error) => {
  throw error
})
// The watchdog's thread has started after this time.
await new Promise((resolve) => setTimeout(resolve, 700))
process.stdout.write("begun\n")
for (const step of steps) {
  if ("note" in step) noteRequest(step.note)
  else if ("turn" in step) await new Promise((resolve) => setTimeout(resolve, step.turn))
  else for (const end = performance.now() + step.hold; performance.now() < end;);
}
process.stdout.write("done\n")

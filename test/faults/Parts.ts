/** The parts of the suite, in the order in which they run. */
import * as Alerts from "./parts/Alerts.ts"
import * as Clocks from "./parts/Clocks.ts"
import * as Corruption from "./parts/Corruption.ts"
import * as Disks from "./parts/Disks.ts"
import * as Flushes from "./parts/Flushes.ts"
import * as Freezes from "./parts/Freezes.ts"
import * as Hangs from "./parts/Hangs.ts"
import * as Kills from "./parts/Kills.ts"
import * as Network from "./parts/Network.ts"
import * as Overload from "./parts/Overload.ts"
import * as Processor from "./parts/Processor.ts"
import * as Runners from "./parts/Runners.ts"
import * as Webhooks from "./parts/Webhooks.ts"
import type { Context, Row } from "./Scene.ts"

export interface Part {
  readonly name: string
  readonly run: (context: Context) => Promise<ReadonlyArray<Row>>
  /** Time limit of a part that needs more than the others. */
  readonly minutes?: number
}

export const PARTS: ReadonlyArray<Part> = [
  { name: "kills", run: Kills.run },
  { name: "disks", run: Disks.run },
  { name: "flushes", run: Flushes.run },
  { name: "network", run: Network.run },
  { name: "freezes", run: Freezes.run },
  { name: "hangs", run: Hangs.run },
  { name: "runners", run: Runners.run },
  { name: "processor", run: Processor.run, minutes: 12 },
  { name: "clocks", run: Clocks.run },
  { name: "corruption", run: Corruption.run },
  { name: "overload", run: Overload.run },
  { name: "webhooks", run: Webhooks.run },
  { name: "alerts", run: Alerts.run, minutes: 25 }
]

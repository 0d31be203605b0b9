/** The `till` command: answers at once what needs no work, and loads the rest for everything else. */
import cluster from "node:cluster"
import { announcementOf, answerTo } from "./cli/Quick.ts"

const args = process.argv.slice(2)
const answer = answerTo(args)
if (answer === undefined) {
  process.stdout.write(announcementOf(args, cluster.isWorker))
  await import("./cli/Program.ts")
} else {
  process[answer.stream].write(answer.text)
  process.exitCode = answer.exitCode
}

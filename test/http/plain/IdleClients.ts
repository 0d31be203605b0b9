/**
 * A process that opens connections and sends nothing on them: both ends of 10,000 exceed the limit of open files of one
 * process. Arguments are a port and the number of connections. Writes `open` once all are open, and at each byte of
 * input the number of open connections without received bytes. Ends with its input.
 */
import { connect, type Socket } from "node:net"

const [port = 0, count = 0] = process.argv.slice(2).map(Number)
/** The server's queue of unaccepted connections is bounded. */
const AT_ONCE = 500

let untouched = 0
const open = () =>
  new Promise<Socket>((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => {
      untouched++
      resolve(socket)
    })
    socket.once("error", reject)
    const touched = () => {
      untouched--
      socket.off("data", touched).off("end", touched)
    }
    socket.once("data", touched).once("end", touched)
  })

for (let opened = 0; opened < count; opened += AT_ONCE) {
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - opened) }, open))
}
process.stdout.write("open\n")
process.stdin.on("data", () => process.stdout.write(`${untouched}\n`)).on("end", () => process.exit())

// Checks the version of Node before anything is loaded that an older one cannot read. CommonJS, and old syntax.
var version = process.versions.node.split(".").map(Number)
var needed = [22, 19]
if (version[0] < needed[0] || (version[0] === needed[0] && version[1] < needed[1])) {
  process.stderr.write(
    "till: Till needs Node " + needed.join(".") + " or newer, and this is Node " + process.versions.node + ".\n"
  )
  process.exit(1)
}
// Node 22 warns of its SQLite, whose part that Till uses is the same in later versions.
var emit = process.emitWarning
process.emitWarning = function (warning, type) {
  if (type !== "ExperimentalWarning") emit.apply(process, arguments)
}
// Compiled code is kept in the temporary folder of the user: a third of the next start.
require("node:module").enableCompileCache()
import("./lib/main.js")

/**
 * The commands of `till`, with a line about each, by subject. Loads nothing, so that `till --help` and the answer to a
 * mistyped command take no longer than Node.
 */
export const SUMMARIES = {
  "Run a service": {
    serve: "Run the service",
    dashboard: "Print a link that signs in to the dashboard",
    open: "Open the dashboard, the documentation or an object in a browser",
    cluster: "Show the runners on the database"
  },
  "Develop against it": {
    listen: "Forward webhooks to an app on this machine",
    trigger: "Cause an event in test mode and print its ID",
    events: "Print events as they happen",
    logs: "Print API requests as they happen",
    fixtures: "Create the objects that a file describes",
    processor: "Check a payment gateway of your own",
    get: "Retrieve an object",
    list: "List objects",
    post: "Create an object, change it, or act on it",
    delete: "Delete an object"
  },
  "Administer it": {
    merchants: "Create, list, rename and brand merchants",
    keys: "Create, list, roll and revoke API keys",
    processors: "Add, list, change, pause and retire payment processors",
    operations: "List operations at processors, ask about one, or decide about it",
    erase: "Erase the data of a customer or a former member of a team",
    purge: "Remove the remains of erased data from the database's files",
    doctor: "Find what is wrong with the installation, and how to mend it",
    verify: "Check the journal, and the views against it",
    scrub: "Check the same as verify, at a slow pace",
    rebuild: "Rebuild the views from the journal",
    secret: "Replace the installation's secret by a new one",
    backup: "Back up the installation",
    restore: "Create an installation from a backup"
  },
  "Use it in a shell": {
    completion: "Print a completion script for bash, zsh or fish"
  }
} as const

type Summaries = typeof SUMMARIES
/** The name of a command. */
export type CommandName = { [Subject in keyof Summaries]: keyof Summaries[Subject] }[keyof Summaries]

const BY_NAME = Object.assign({}, ...Object.values(SUMMARIES)) as Readonly<Record<CommandName, string>>

/** The names of all commands. */
export const COMMAND_NAMES = Object.keys(BY_NAME) as ReadonlyArray<CommandName>

export const summaryOf = (name: CommandName): string => BY_NAME[name]

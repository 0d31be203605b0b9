/**
 * A file system in a file, which can be filled and whose power can be cut. The cut is ext4's own: it discards
 * everything that is not on the disk and refuses all access until the next mount (`EXT4_IOC_SHUTDOWN` without a flush
 * of its log). Needs root on Linux.
 */
import { execFileSync, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as Path from "node:path"
import { pause } from "../support/TillProcess.ts"

/** `_IOR('X', 125, __u32)`, and the flag that leaves the log unwritten. */
const SHUTDOWN = 0x8004587d
const WITHOUT_FLUSH = 2

const run = (program: string, ...parameters: ReadonlyArray<string>): void => {
  execFileSync(program, parameters, { stdio: ["ignore", "ignore", "pipe"], timeout: 60_000 })
}

const works = (program: string, ...parameters: ReadonlyArray<string>): boolean =>
  spawnSync(program, parameters, { stdio: "ignore" }).status === 0

/** Programs that can make the system call, with their sources; Node cannot. */
const CALLERS: ReadonlyArray<readonly [string, (folder: string) => ReadonlyArray<string>]> = [
  [
    "python3",
    (folder) => [
      "-c",
      `import fcntl,os,struct,sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), ${SHUTDOWN}, struct.pack("I", ${WITHOUT_FLUSH}))`,
      folder
    ]
  ],
  [
    "perl",
    (folder) => ["-e", `open(F, "<", $ARGV[0]); ioctl(F, ${SHUTDOWN}, pack("I", ${WITHOUT_FLUSH})) or die`, folder]
  ]
]

const UNMOUNT_MILLIS_MAX = 15_000
const PIECE = Buffer.alloc(1 << 20)

export class Disk {
  /** The mount point. */
  readonly folder: string
  readonly #image: string

  private constructor(folder: string) {
    this.folder = Path.join(folder, "disk")
    this.#image = `${folder}/disk.image`
  }

  /** Creates a file system below a folder; returns the reason as text if it cannot. */
  static make(folder: string, megabytes: number): Disk | string {
    if (process.platform !== "linux" || process.geteuid?.() !== 0) return "mounting a file system takes root on Linux"
    const disk = new Disk(folder)
    try {
      fs.closeSync(fs.openSync(disk.#image, "w"))
      fs.truncateSync(disk.#image, megabytes * 1_048_576)
      run("mkfs.ext4", "-q", "-F", "-m", "0", disk.#image)
      fs.mkdirSync(disk.folder)
      disk.#mount()
      return disk
    } catch (error) {
      return `a file system in a file cannot be mounted here (${String(error).split("\n")[0]})`
    }
  }

  #mount(): void {
    run("mount", "-o", "loop", this.#image, this.folder)
  }

  /** Cuts the power; returns false where that is impossible. */
  cut(): boolean {
    return CALLERS.some(([program, parameters]) => works(program, ...parameters(this.folder)))
  }

  async unmount(): Promise<void> {
    const end = performance.now() + UNMOUNT_MILLIS_MAX
    while (!works("umount", this.folder)) {
      if (performance.now() > end) throw new Error(`${this.folder} cannot be unmounted`)
      await pause(50)
    }
  }

  /** Mounts the file system again with what is on the disk, and nothing else. */
  async remount(): Promise<void> {
    await this.unmount()
    this.#mount()
  }

  get #filler(): string {
    return Path.join(this.folder, "filler")
  }

  /** Fills the free space. */
  fill(): void {
    const file = fs.openSync(this.#filler, "a")
    for (let size = PIECE.length; size >= 512;) {
      try {
        fs.writeSync(file, PIECE, 0, size)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error
        size /= 2
      }
    }
    fs.closeSync(file)
  }

  free(): void {
    fs.rmSync(this.#filler, { force: true })
  }

  /** Unmounts and removes the file system, after all of its users have ended. */
  async close(): Promise<void> {
    await this.unmount()
    fs.rmSync(this.#image)
  }
}

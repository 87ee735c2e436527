/**
 * The exact process that a backend wants started: an argv array and descriptors, never a shell string.
 * Bulk goes by descriptor, the command's secrets only by the environment of the launched program.
 */

export type LaunchDescriptor =
  /** The child reads these bytes, then end of file. */
  | { readonly fd: number; readonly carries: 'bytes'; readonly bytes: Uint8Array; readonly what: string }
  /** The same from a file that is there for longer than this run. */
  | { readonly fd: number; readonly carries: 'file'; readonly path: string; readonly what: string }
  /** The child writes JSON lines here; see backends/outcome.ts. */
  | { readonly fd: number; readonly carries: 'status' }

export interface RunRequest {
  /** The command's words; bytes where they may not be UTF-8. */
  readonly words: readonly (string | Uint8Array)[]
  /** The command has its own terminal, whose bytes go to the runner's stdout. */
  readonly tty: boolean
  /** Entries of a launch file: what must be on disk still, or nothing is run. */
  readonly guards?: Uint8Array
}

export interface Launch {
  readonly file: string
  readonly argv: readonly string[]
  /** Complete environment of `file`; of the command, where there is a `request`: then that of `file` is empty. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly descriptors: readonly LaunchDescriptor[]
  /** For the native runner, which gets its command by frames (native/lib/frames.h). */
  readonly request?: RunRequest
  /** The command that ends it when the runner must (docker kill); absent where the end of the caller is enough. */
  readonly stop?: { readonly file: string; readonly argv: readonly string[] }
}

/** Of the native runner. */
export type NativeLaunch = Launch & { readonly request: RunRequest }

export const isNative = (launch: Launch): launch is NativeLaunch => launch.request !== undefined

/**
 * The exact process that a backend wants started: an argv array and descriptors, never a shell string.
 * Bulk goes by descriptor, the command's secrets only by the environment of the launched helper.
 */

export type LaunchDescriptor =
  /** The child reads these bytes, then end of file. */
  | { readonly fd: number; readonly carries: 'bytes'; readonly bytes: Uint8Array; readonly what: string }
  /** The same from a file that is there for longer than this run. */
  | { readonly fd: number; readonly carries: 'file'; readonly path: string; readonly what: string }
  /** The child writes JSON lines here; see backends/outcome.ts. */
  | { readonly fd: number; readonly carries: 'status' }
  /** End of file on it means that the runner is gone: the child ends everything. */
  | { readonly fd: number; readonly carries: 'liveness' }

export interface Launch {
  readonly file: string
  readonly argv: readonly string[]
  /** Complete environment of `file`. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly descriptors: readonly LaunchDescriptor[]
  /** With `--framed` it bears the command's streams itself: native/lib/frames.h. */
  readonly canFrame?: boolean
  /** What to run to end it when the runner must (docker kill); absent where closing the liveness pipe is enough. */
  readonly stop?: { readonly file: string; readonly argv: readonly string[] }
}

/**
 * Looks at files and directories that need not be there. What is gone, hidden by the kernel or a container, or closed to this user is absent.
 * Edge: the file system.
 */
import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  realpathSync,
} from 'node:fs'

/** @returns `absent` where the look fails */
export function orElse<T, U>(absent: U, look: () => T): T | U {
  try {
    return look()
  } catch {
    return absent // The caller says what that means.
  }
}

/** The whole of a file; empty where it is absent. */
export const textOf = (file: string): string => orElse('', () => readFileSync(file, 'utf8'))

/** The names in a directory, in no order. */
export const namesIn = (directory: string): readonly string[] => orElse([], () => readdirSync(directory))

/** Whether this user has the rights of access(2) to a path: to run a program, to make files in a directory. */
export const may = (path: string, rights = constants.X_OK): boolean =>
  orElse(false, () => accessSync(path, rights) === undefined)

/** The canonical path. */
export const realOf = (path: string): string | undefined => orElse(undefined, () => realpathSync.native(path))

/**
 * Works with a file while it is open for reading. A FIFO in its place does not make us wait for its writer.
 * @param flags of open(2), in addition
 * @throws what open(2) or `work` fails with
 */
export function withOpenFile<T>(file: string, work: (fd: number) => T, flags = 0): T {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY | flags)
  try {
    return work(fd)
  } finally {
    closeSync(fd)
  }
}

/** The first bytes of an open file, which may grow or shrink meanwhile. */
export function readUpTo(fd: number, most: number): Buffer {
  const buffer = Buffer.alloc(most)
  let length = 0
  for (let bytes = -1; bytes !== 0 && length < most; length += bytes)
    bytes = readSync(fd, buffer, length, most - length, null)
  return buffer.subarray(0, length)
}

/** The first bytes of an ordinary file as text; undefined for anything else, and where it is absent. */
export const startOf = (file: string, most: number): string | undefined =>
  orElse(undefined, () =>
    withOpenFile(file, (fd) => (fstatSync(fd).isFile() ? readUpTo(fd, most).toString('utf8') : undefined)),
  )

/**
 * Directories in which tasks work. A task's is made for it and gone with it; its path is used again, so that the plan for it is, too.
 * Edge: the file system.
 */
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { removeTree } from './task-files.ts'

export interface TaskPlace {
  /** Where the commands work: empty at first. */
  readonly work: string
  /** Next to it, for the archive that is unpacked. */
  readonly archive: string
}

const MODE = 0o755

export class TaskPlaces {
  private readonly free: string[] = []
  private made = 0

  /** @param parent exists, is empty, and is this user's alone */

  constructor(private readonly parent: string) {}

  /** A place that cannot be emptied is not used again. */
  async use<T>(task: (place: TaskPlace) => Promise<T>): Promise<T> {
    const work = this.free.pop() ?? this.newPath()
    const archive = `${work}.zip`
    await mkdir(work)
    // Whatever the umask of this process is.
    await chmod(work, MODE)
    try {
      return await task({ work, archive })
    } finally {
      for (const left of [work, archive]) await removeTree(left)
      this.free.push(work)
    }
  }

  private newPath(): string {
    this.made += 1
    return join(this.parent, `task-${this.made}`)
  }
}

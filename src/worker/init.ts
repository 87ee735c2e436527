/**
 * `llm-do init`: a commented workshop and a first worker for this project. Never overwrites, follows no link.
 * Edge: makes directories and files in the project.
 */
import { open } from 'node:fs/promises'
import path from 'node:path'
import { SandboxError } from '../error.ts'
import { makeDirectories } from '../os/make-directories.ts'
import { quoteText } from '../text/units.ts'
import { firstFiles } from './templates.ts'

export interface Initialised {
  /** Relative to the project, in the order they were written. */
  readonly written: readonly string[]
  /** Files that were there already and are as they were. */
  readonly kept: readonly string[]
}

/**
 * Writes what is missing.
 * @param cwd absolute directory of the project
 * @throws SandboxError SETUP_FAILED when a file cannot be written
 */
export async function initProject(cwd: string): Promise<Initialised> {
  const files = firstFiles(path.basename(cwd))
  const written: string[] = []
  const kept: string[] = []
  for (const { file, text } of files)
    (await writeNew(path.join(cwd, file), text)) ? written.push(file) : kept.push(file)
  return { written, kept }
}

/** @returns false when something is there already */
async function writeNew(file: string, text: string): Promise<boolean> {
  try {
    makeDirectories(path.dirname(file))
    const handle = await open(file, 'wx')
    try {
      await handle.writeFile(text)
    } finally {
      await handle.close()
    }
    return true
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'EEXIST') return false
    const message = `init: ${quoteText(file)} cannot be written (${code ?? 'unknown error'}).`
    throw new SandboxError('SETUP_FAILED', message, { hint: `ls -ld ${quoteText(path.dirname(file))}`, cause })
  }
}

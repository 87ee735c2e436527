/** Directories full of files, and commands whose output is text: what the tests of real programs are about. */
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type CliOptions, runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'

/** Path below the place -> text; what begins with `#!` is executable. */
export type Files = Readonly<Record<string, string>>

/** A directory with these files, removed when the test ends. */
export async function directoryWith(files: Files = {}): Promise<string> {
  const directory = await temporaryDirectory()
  await fill(directory, files)
  return directory
}

export async function fill(directory: string, files: Files): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    const file = join(directory, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
    if (text.startsWith('#!')) await chmod(file, 0o755)
  }
}

export interface TextRun {
  readonly status: number | undefined
  readonly out: string
  readonly err: string
}

/** The built command, for programs that print text. */
export async function runForText(argv: readonly string[], options: CliOptions = {}): Promise<TextRun> {
  const { status, stdout, stderr } = await runCli(argv, options)
  return { status, out: stdout.toString(), err: stderr.toString() }
}

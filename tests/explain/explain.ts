/** Shared by the tests of --explain: a caller's directory, files of the host next to it, and watched runs. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Denial, Result } from '../../src/report/result.ts'
import { type InProcess, runHere } from '../real/in-process.ts'
import { temporaryDirectory } from '../support/directory.ts'

export interface Site {
  /** Holds `file`, and is the caller's directory. */
  readonly cwd: string
  /** Not shown: holds `file`, the program `tool`, the directory `place` and a server's place. */
  readonly hidden: string
}

export async function makeSite(): Promise<Site> {
  const base = await temporaryDirectory({ mode: 0o755 })
  const [cwd, hidden] = [join(base, 'work'), join(base, 'hidden')]
  for (const directory of [cwd, hidden, join(hidden, 'place')]) mkdirSync(directory, { mode: 0o755 })
  for (const directory of [cwd, hidden, join(hidden, 'place')]) writeFileSync(join(directory, 'file'), 'text\n')
  writeFileSync(join(hidden, 'tool'), '#!/bin/sh\necho tool\n', { mode: 0o755 })
  return { cwd, hidden }
}

export interface Watched extends Omit<InProcess, 'cwd'> {
  readonly cwd: string
  readonly options?: readonly string[]
}

export const run = (command: readonly string[], { options = [], ...caller }: Watched): Promise<Result> =>
  runHere([...options, '--', ...command], caller)

export const explained = (command: readonly string[], { options = [], ...watched }: Watched): Promise<Result> =>
  run(command, { ...watched, options: ['--explain', ...options] })

export const sh = (script: string): readonly string[] => ['sh', '-c', script]

/** A denial in one line. */
export const shown = ({ layer, operation, target, fix, key }: Denial): string =>
  [layer, operation, target, '->', fix, key].join(' ').trim()

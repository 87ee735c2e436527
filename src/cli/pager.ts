/**
 * Shows a long text to the person at the terminal, by the program that PAGER names, as git does.
 * Edge: processes, the terminal.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { isatty } from 'node:tty'
import type { Environment } from './call.ts'
import { writeStdout } from './stdio.ts'

const STANDARD = 'less'
/** That the person has named none: the text is shown at once, and with its colours. */
const STANDARD_ENVIRONMENT = { LESS: 'FRX', LV: '-c' }
/** Exit status of a shell that does not find the program. */
const NOT_FOUND = 127

/** Without a terminal, and where the pager cannot be had, the text is printed as it is. */
export async function page(text: string, env: Environment): Promise<void> {
  const { PAGER: pager = STANDARD } = env
  if (!isatty(1) || pager === '' || pager === 'cat' || !(await isPaged(pager, text, env))) await writeStdout(text)
}

/** @returns false when the pager has not been started */
async function isPaged(pager: string, text: string, env: Environment): Promise<boolean> {
  // The person's own words, as in any shell; nothing of a run is among them.
  const child = spawn('/bin/sh', ['-c', pager], {
    cwd: '/',
    env: { ...STANDARD_ENVIRONMENT, ...env },
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  child.stdin.on('error', () => undefined) // It was left before its end was read.
  child.stdin.end(text)
  const [status] = (await once(child, 'close').catch(() => [NOT_FOUND])) as [number | null]
  return status !== NOT_FOUND
}

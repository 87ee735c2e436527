/** Another user who exchanges two names of a directory all the time (tests/programs/swap.c). */
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { temporaryDirectory } from '../support/directory.ts'
import { becoming, type User } from '../support/users.ts'

const SOURCE = join(import.meta.dirname, '../programs/swap.c')

/** Begins before it returns. `stop` rejects if the exchange did not go on to the end: then nothing was tried. */
export async function startSwapping(
  a: string,
  b: string,
  pauseUs: number,
  as: User = 'plain',
): Promise<{ readonly stop: () => Promise<void> }> {
  const program = join(await temporaryDirectory({ mode: 0o755 }), 'swap')
  await execa('gcc', ['-D_GNU_SOURCE=', '-O1', '-Wall', '-Wextra', '-Werror', '-o', program, SOURCE])
  chmodSync(program, 0o755)
  const [file = program, ...words] = [...becoming(as), program, a, b, String(pauseUs)]
  const swapping = execa(file, words, { stdin: 'pipe' })
  const began = new Promise<void>((resolve, reject) => {
    swapping.stdout.once('data', () => resolve())
    swapping.catch(reject)
  })
  await began
  return {
    stop: async () => {
      swapping.stdin.end()
      await swapping
    },
  }
}

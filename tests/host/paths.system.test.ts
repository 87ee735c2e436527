import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildSync } from 'esbuild'
import { expect, test } from 'vitest'

const isRoot = process.getuid?.() === 0

/** Only root can become another user; a plain user is denied as he is. */
test('A path behind a closed directory is denied to a plain user and seen by root', () => {
  const root = mkdtempSync(join(tmpdir(), 'llm-do-denied-'))
  try {
    chmodSync(root, 0o755)
    mkdirSync(join(root, 'closed'))
    writeFileSync(join(root, 'closed/file'), '')
    chmodSync(join(root, 'closed'), isRoot ? 0o700 : 0o000)
    const script = join(root, 'look.mjs')
    buildSync({
      stdin: {
        contents: `import { observePaths } from './src/host/paths.ts'; console.log(JSON.stringify(Object.values(observePaths([process.argv[2]]))[0]))`,
        resolveDir: join(import.meta.dirname, '../..'),
      },
      bundle: true,
      platform: 'node',
      format: 'esm',
      outfile: script,
      logLevel: 'silent',
    })
    const command = [process.execPath, script, join(root, 'closed/file')]
    const asUser = isRoot ? ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', ...command] : command
    const run = ([file, ...args]: string[]): { kind: string; real: string } =>
      JSON.parse(execFileSync(file!, args, { encoding: 'utf8', cwd: '/' }))
    expect(run(asUser)).toMatchObject({ kind: 'denied', real: join(root, 'closed/file') })
    if (isRoot) expect(run(command).kind).toBe('file')
  } finally {
    chmodSync(join(root, 'closed'), 0o700)
    rmSync(root, { recursive: true, force: true })
  }
})

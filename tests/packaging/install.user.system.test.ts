/** The files of `make install` are writable for their owner alone and run for root and for a plain user. */
import { readdirSync } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { recordFailingNode } from '../support/package.ts'
import { becoming, callers } from '../support/users.ts'
import { installed } from './installed.ts'

describeWith('userns', 'make install', () => {
  test.each(callers())('the commands run as %s, and nobody else could have changed them', async (user) => {
    const prefix = await installed()
    const lib = join(prefix, 'lib/llm-do-exec')
    const entries = readdirSync(lib, { recursive: true, encoding: 'utf8' })
    const looks = await Promise.all(entries.map((entry) => lstat(join(lib, entry))))
    expect(entries.filter((_, at) => looks[at]?.uid !== process.getuid?.())).toEqual([])
    expect(entries.filter((_, at) => ((looks[at]?.mode ?? 0) & 0o022) !== 0)).toEqual([])
    const own = () => temporaryDirectory({ owner: user })
    const [cwd, home, runtime] = [await own(), await own(), await own()]
    const [file = '', ...words] = [...becoming(user), join(prefix, 'bin/llm-do')]
    const options = { cwd, extendEnv: false, env: { PATH: process.env.PATH, HOME: home, XDG_RUNTIME_DIR: runtime } }
    const planned = await execa(file, [...words, 'exec', '--', 'echo', 'inside'], options)
    expect(planned.stdout).toBe('inside')
    // The first run of a user makes the directory of its records, which a plan is made of, too.
    await execa(file, [...words, 'exec', '--', 'true'], options)
    recordFailingNode(join(prefix, 'lib/llm-do-exec'))
    const cached = await execa(file, [...words, 'exec', '--', 'echo', 'again'], options)
    expect(cached.stdout).toBe('again')
  })
})

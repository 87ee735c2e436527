/** The files of `make install` as shells, man and AppArmor find them; install.user.system.test.ts runs the commands. */
import { readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { beforeAll, expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { installed, make, PREFIX } from './installed.ts'

const ZSH_DRIVER = join(import.meta.dirname, '../programs/type-and-tab.zsh')
describeWith('userns', 'make install', () => {
  test('and make uninstall leaves nothing', async () => {
    const prefix = await installed()
    expect(await readlink(join(prefix, 'bin/llm-do-exec'))).toBe('../lib/llm-do-exec/bin/llm-do-exec')
    await make('uninstall', prefix.slice(0, -PREFIX.length))
    const left = await execa('find', [prefix, '!', '-type', 'd'])
    expect(left.stdout).toBe('')
  })
})

let prefix: string
beforeAll(async () => {
  prefix = await installed()
})

describeWith('man', 'the installed manual', () => {
  test.each(['llm-do', 'llm-do-exec'])('man %s shows it, without a warning', async (page) => {
    const where = await execa('man', ['-M', join(prefix, 'share/man'), '-w', page])
    expect(where.stdout).toBe(join(prefix, `share/man/man1/${page}.1`))
    const env = { MANWIDTH: '80', LC_ALL: 'C.UTF-8', MAN_KEEP_FORMATTING: '' }
    const shown = await execa('man', ['--warnings', '-l', where.stdout], { env })
    expect(shown.stderr).toBe('')
    expect(shown.stdout).toContain('run one command in a sandbox')
    expect(shown.stdout).toContain('--memory SIZE')
  })

  testWith('mandoc', 'has nothing that mandoc finds wrong', async () => {
    const { stdout } = await execa('mandoc', ['-T', 'lint', join(prefix, 'share/man/man1/llm-do.1')], { reject: false })
    expect(stdout).toBe('')
  })
})

test('bash finds the completion by the name of the command', async () => {
  const share = join(prefix, 'share')
  const script = 'source "$1"; complete -p llm-do llm-do-exec'
  for (const name of ['llm-do', 'llm-do-exec']) {
    const file = join(share, 'bash-completion/completions', name)
    const { stdout } = await execa('bash', ['--norc', '-c', script, 'bash', file])
    expect(stdout.split('\n')).toEqual(['llm-do', 'llm-do-exec'].map((it) => `complete -o filenames -F _llm_do ${it}`))
  }
})

testWith('zsh', 'zsh completes from $fpath, the first time too', async () => {
  const share = join(prefix, 'share')
  const told = join(await temporaryDirectory(), 'told')
  const lines = ['llm-do pool sto', 'llm-do exec --memo']
  const env = { PATH: `${join(prefix, 'bin')}:${process.env.PATH}` }
  const { stdout } = await execa('zsh', ['-f', ZSH_DRIVER, join(share, 'zsh/site-functions'), told, ...lines], { env })
  expect(stdout.split('\n').map((line) => line.trimEnd())).toEqual(['llm-do pool stop', 'llm-do exec --memory'])
})

testWith('fish', 'fish completes from its vendor directory', async () => {
  // It looks only for completions of what is there.
  const PATH = `${join(prefix, 'bin')}:${process.env.PATH}`
  const env = { PATH, XDG_DATA_DIRS: join(prefix, 'share'), HOME: await temporaryDirectory() }
  for (const line of ['llm-do exec --memo', 'llm-do-exec --memo']) {
    const { stdout } = await execa('fish', ['-c', `complete -C '${line}'`], { env })
    expect(stdout, line).toContain('--memory')
  }
})

test('the AppArmor profile names the programs where they are', async () => {
  const profile = await readFile(join(prefix, 'lib/llm-do-exec/apparmor'), 'utf8')
  expect(profile).toContain(`profile llm-do "${PREFIX}/lib/llm-do-exec/bin/{llm-do,llm-do-exec}"`)
})

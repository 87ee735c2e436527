/** What `make install` puts below DESTDIR and PREFIX works from there, for root and for a plain user. */
import { readdirSync } from 'node:fs'
import { lstat, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { recordFailingNode } from '../support/package.ts'
import { becoming, callers, checkoutFor, currentUser } from '../support/users.ts'

const CHECKOUT = checkoutFor(currentUser())
const ZSH_DRIVER = join(import.meta.dirname, '../programs/type-and-tab.zsh')
const PREFIX = '/opt/my tools'

const make = (target: string, destdir: string) =>
  execa('make', ['-C', CHECKOUT, target, `DESTDIR=${destdir}`, `PREFIX=${PREFIX}`])

/** @returns the prefix as it is on this machine */
async function installed(): Promise<string> {
  const destdir = await temporaryDirectory({ mode: 0o755 })
  await make('install', destdir)
  return join(destdir, PREFIX)
}

describeWith('userns', 'make install', () => {
  test.each(callers())('the commands run as %s', async (user) => {
    const prefix = await installed()
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

  test('nobody else could have changed what is installed', async () => {
    const lib = join(await installed(), 'lib/llm-do-exec')
    const entries = readdirSync(lib, { recursive: true, encoding: 'utf8' })
    const looks = await Promise.all(entries.map((entry) => lstat(join(lib, entry))))
    expect(entries.filter((_, at) => looks[at]?.uid !== process.getuid?.())).toEqual([])
    expect(entries.filter((_, at) => ((looks[at]?.mode ?? 0) & 0o022) !== 0)).toEqual([])
  })

  test('and make uninstall leaves nothing', async () => {
    const prefix = await installed()
    expect(await readlink(join(prefix, 'bin/llm-do-exec'))).toBe('../lib/llm-do-exec/bin/llm-do-exec')
    await make('uninstall', prefix.slice(0, -PREFIX.length))
    const left = await execa('find', [prefix, '!', '-type', 'd'])
    expect(left.stdout).toBe('')
  })
})

describeWith('man', 'the installed manual', () => {
  test.each(['llm-do', 'llm-do-exec'])('man %s shows it, without a warning', async (page) => {
    const prefix = await installed()
    const where = await execa('man', ['-M', join(prefix, 'share/man'), '-w', page])
    expect(where.stdout).toBe(join(prefix, `share/man/man1/${page}.1`))
    const env = { MANWIDTH: '80', LC_ALL: 'C.UTF-8', MAN_KEEP_FORMATTING: '' }
    const shown = await execa('man', ['--warnings', '-l', where.stdout], { env })
    expect(shown.stderr).toBe('')
    expect(shown.stdout).toContain('run one command in a sandbox')
    expect(shown.stdout).toContain('--memory SIZE')
  })

  testWith('mandoc', 'has nothing that mandoc finds wrong', async () => {
    const prefix = await installed()
    const { stdout } = await execa('mandoc', ['-T', 'lint', join(prefix, 'share/man/man1/llm-do.1')], { reject: false })
    expect(stdout).toBe('')
  })
})

test('bash finds the completion by the name of the command', async () => {
  const share = join(await installed(), 'share')
  const script = 'source "$1"; complete -p llm-do llm-do-exec'
  for (const name of ['llm-do', 'llm-do-exec']) {
    const file = join(share, 'bash-completion/completions', name)
    const { stdout } = await execa('bash', ['--norc', '-c', script, 'bash', file])
    expect(stdout.split('\n')).toEqual(['llm-do', 'llm-do-exec'].map((it) => `complete -o filenames -F _llm_do ${it}`))
  }
})

testWith('zsh', 'zsh completes from $fpath, the first time too', async () => {
  const share = join(await installed(), 'share')
  const told = join(await temporaryDirectory(), 'told')
  const lines = ['llm-do pool sto', 'llm-do exec --memo']
  const { stdout } = await execa('zsh', ['-f', ZSH_DRIVER, join(share, 'zsh/site-functions'), told, ...lines])
  expect(stdout.split('\n').map((line) => line.trimEnd())).toEqual(['llm-do pool stop', 'llm-do exec --memory='])
})

testWith('fish', 'fish completes from its vendor directory', async () => {
  const prefix = await installed()
  // It looks only for completions of what is there.
  const PATH = `${join(prefix, 'bin')}:${process.env.PATH}`
  const env = { PATH, XDG_DATA_DIRS: join(prefix, 'share'), HOME: await temporaryDirectory() }
  for (const name of ['llm-do', 'llm-do-exec']) {
    const { stdout } = await execa('fish', ['-c', `complete -C '${name} exec --memo'`], { env })
    expect(stdout, name).toContain('--memory')
  }
})

test('the AppArmor profile names the programs where they are', async () => {
  const prefix = await installed()
  const profile = await readFile(join(prefix, 'lib/llm-do-exec/apparmor'), 'utf8')
  expect(profile).toContain(`profile llm-do "${PREFIX}/lib/llm-do-exec/bin/{front,llm-do,llm-do-exec,launch}"`)
})

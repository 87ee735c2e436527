/** `llm-do why`: a failed run once more, watched, with nothing left of it. */
import { existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../support/cli.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { makeSite, type Site, sh } from './explain.ts'

interface Caller extends Site {
  readonly env: Readonly<Record<string, string>>
  readonly exec: (...words: readonly string[]) => ReturnType<typeof runCli>
  readonly why: (...words: readonly string[]) => Promise<{ readonly status: number | undefined; readonly out: string }>
  readonly kept: () => readonly string[]
}

/** root's records lie in /run/llm-do, where runs of other tests leave theirs, too. */
const ROOTS = '/run/llm-do/failed'

async function caller(): Promise<Caller> {
  const site = await makeSite()
  const home = await temporaryDirectory()
  const env = { HOME: home, XDG_RUNTIME_DIR: home }
  const place = currentUser() === 'root' ? ROOTS : join(home, 'llm-do/failed')
  return {
    ...site,
    env,
    exec: (...words) => runCli(['exec', ...words], { cwd: site.cwd, env, program: 'llm-do' }),
    why: async (...words) => {
      const { status, stdout, stderr } = await runCli(['why', ...words], { cwd: '/', env, program: 'llm-do' })
      return { status, out: `${stdout}${stderr}` }
    },
    kept: () => {
      const names = readdirSync(place).filter((name) => !name.startsWith('.'))
      return names.map((name) => join(place, name))
    },
  }
}

/** The IDs of runs with a word that only they have, the newest first. */
async function idsOf({ why }: Caller, word: string): Promise<readonly string[]> {
  const lines = (await why('--list')).out.split('\n').filter((line) => line.includes(word))
  return lines.map((line) => line.split(' ')[0] ?? '')
}

const idOf = async (one: Caller, word: string): Promise<string> => (await idsOf(one, word))[0] ?? ''

describeWith(['userns', 'unshare'], 'llm-do why', () => {
  // Node plans the first run, the client has the second one to itself.
  test.each([1, 2])(
    'tells what a run was refused that failed after %i such runs, and changes nothing',
    async (times) => {
      const one = await caller()
      const script = `echo new >file; cat ${one.hidden}/file; exit 7`
      for (let n = 0; n < times; n++) await one.exec('--rw', '.', '--', ...sh(script))
      writeFileSync(join(one.cwd, 'file'), 'mine\n')
      const { status, out } = await one.why(await idOf(one, one.hidden))
      expect({ status, out }).toEqual({
        status: 0,
        out: expect.stringContaining(`denied: read ${one.hidden}/file; to allow it: --ro ${one.hidden}/file`),
      })
      expect(out).toContain('it failed again (7), with its changes thrown away; status 7 before')
      expect(readFileSync(join(one.cwd, 'file'), 'utf8')).toBe('mine\n')
      expect(readdirSync(one.cwd)).toEqual(['file'])
      const layers = await runCli(['ps', '--cow', '--json'], { env: one.env, program: 'llm-do' })
      expect(layers.stdout.toString()).not.toContain(one.cwd)
    },
  )

  test('sees calls that only ask about a file, too, and prints JSON', async () => {
    const one = await caller()
    const asks = ['ls', '-d', one.hidden] as const
    await one.exec('--', ...asks)
    const result = JSON.parse((await one.why(await idOf(one, one.hidden), '--json')).out)
    expect(result.denials).toEqual([
      expect.objectContaining({
        operation: 'read',
        target: one.hidden,
        fix: `--ro ${one.hidden}`,
        evidence: 'sandbox',
      }),
    ])
    expect(result.cow).toBeUndefined()
  })

  test('says when the second run succeeds, and that it has no stdin', async () => {
    const one = await caller()
    const script = `: ${one.cwd}; read line && exit 5; exit 0`
    await runCli(['exec', '--', ...sh(script)], { cwd: one.cwd, program: 'llm-do', stdin: 'text\n', env: one.env })
    const { out } = await one.why(await idOf(one, one.cwd))
    expect(out).toContain('it succeeded this time')
    expect(out).toContain('what it read from stdin then was not given to it again')
  })

  test('a record is private, and holds no value of a variable', async () => {
    const one = await caller()
    for (let n = 0; n < 2; n++) await one.exec('--env', 'TOKEN=geheim', '--', ...sh(`: ${one.hidden}; exit 3`))
    const ids = await idsOf(one, one.hidden)
    expect(ids).toHaveLength(2) // Node's, and the client's.
    for (const file of one.kept().filter((path) => ids.some((id) => path.endsWith(id)))) {
      expect(statSync(file).mode & 0o777).toBe(0o600)
      expect(statSync(join(file, '..')).mode & 0o777).toBe(0o700)
      expect(readFileSync(file, 'utf8')).not.toContain('geheim')
      expect(readFileSync(file, 'utf8').split('\0')).toContain('TOKEN')
    }
  })

  test.each([
    ['node', ['-c', 'exit 1']],
    ['the client', ['--', 'false']],
  ])('keeps sixteen records where more were left, when the last run is that of %s', async (_, last) => {
    const one = await caller()
    await one.exec('--', 'false')
    const place = dirname(one.kept()[0] ?? '')
    for (let n = 0x10; n < 0x30; n++) {
      const path = join(place, `000000000${n.toString(16)}`)
      writeFileSync(path, '', { mode: 0o600 })
      utimesSync(path, 0, 0)
    }
    await one.exec(...last)
    await expect.poll(() => one.kept().length).toBe(16)
  })

  test('names the limit that ended a run, and the flag that raises it', async () => {
    const one = await caller()
    await one.exec('--timeout', '1s', '--', ...sh(`: ${one.hidden}; sleep 60`))
    const { out } = await one.why(await idOf(one, one.hidden))
    expect(out).toContain('\nstopped after 1s (resources.timeout, --timeout)')
    expect(out).toContain('\nhint: raise --timeout or resources.timeout, for example --timeout 2s\n')
    expect(out).not.toContain('no limit ended')
  })

  test('a file that could be changed stays as it is', async () => {
    const one = await caller()
    const file = join(one.hidden, 'file')
    const rw = ['--rw', file]
    for (let n = 0; n < 2; n++) await one.exec(...rw, '--', ...sh(`: ${one.hidden}; echo more >>${file}; exit 4`))
    const before = readFileSync(file, 'utf8')
    const { status, out } = await one.why(await idOf(one, one.hidden))
    expect({ status, out }).toEqual({ status: 0, out: expect.stringContaining(`${file} could be changed then`) })
    expect(readFileSync(file, 'utf8')).toBe(before)
  })

  test('a run that succeeds, and an unknown ID, are nothing to it', async () => {
    const one = await caller()
    await one.exec('--', 'true', one.hidden)
    expect(await idOf(one, one.hidden)).toBe('')
    expect(await one.why('00000000000')).toEqual({ status: 125, out: expect.stringContaining('RUN_NOT_FOUND') })
    expect(existsSync(one.cwd)).toBe(true)
  })
})
